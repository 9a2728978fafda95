"""How far measures of importance rank heads alike, and how far roles stay the same on another map."""

from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats

from analysis.statistics.resampling import resampled
from analysis.statistics.significance import quiet
from analysis.synthesis.sets import POOLED

RUN, HEAD = ["task", "seed"], ["layer", "head"]
ENDS = (0.025, 0.975)
COLUMNS = ["kind", "task", "first", "second", "role", "statistic", "value", "low", "high", "runs", "heads"]
IMPORTANCE, ROLES, GATES = "importance", "roles across maps", "gate seeds"

Values = Float[np.ndarray, "layer head"]
Function = Callable[[np.ndarray, np.ndarray], np.ndarray]
Drawn = Int[np.ndarray, "draw layer head"]


def spearman(
    first: Float[np.ndarray, "... n"], second: Float[np.ndarray, "... n"]
) -> Float[np.ndarray, "..."]:
    """Rank correlation along the last axis; NaN if one side is constant."""
    ranks = [stats.rankdata(each, axis=-1) for each in (first, second)]
    return _correlation(*ranks)


def within_layers(
    first: Float[np.ndarray, "... layer head"], second: Float[np.ndarray, "... layer head"]
) -> Float[np.ndarray, "..."]:
    """The same with ranks taken within each layer, so that differences between layers do not count."""
    ranks = [stats.rankdata(each, axis=-1) for each in (first, second)]
    return _correlation(*(each.reshape(*each.shape[:-2], -1) for each in ranks))


def _correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    first, second = (each - each.mean(axis=-1, keepdims=True) for each in (first, second))
    with quiet():
        return (first * second).sum(-1) / np.sqrt((first**2).sum(-1) * (second**2).sum(-1))


def kendall(
    first: Float[np.ndarray, "... n"], second: Float[np.ndarray, "... n"]
) -> Float[np.ndarray, "..."]:
    """Kendall's tau-b along the last axis; NaN if one side is constant."""
    signs = [np.sign(each[..., :, None] - each[..., None, :]).astype(np.int8) for each in (first, second)]
    with quiet():
        agreeing = np.einsum("...ij,...ij->...", *signs, dtype=np.float64)
        return agreeing / np.sqrt(
            np.prod([np.abs(each).sum((-1, -2), dtype=np.float64) for each in signs], axis=0)
        )


def _flat(function: Function) -> Function:
    """A statistic over all heads, ignoring layers."""

    def of_layers(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return function(*(each.reshape(*each.shape[:-2], -1) for each in (first, second)))

    return of_layers


STATISTICS = {"spearman": _flat(spearman), "kendall": _flat(kendall), "spearman within layers": within_layers}


def importance_agreement(
    table: pd.DataFrame, measures: Mapping[str, str], draws: int = 499, seed: int = 0
) -> pd.DataFrame:
    """COLUMNS for each pair of `measures` (column of the atlas, its name) and each of STATISTICS, kind "importance".

    value: mean over tasks of the mean over a task's runs (its seeds) in which both measures exist for all heads; low,
    high: 95 % interval from resampling tasks, and within every run the heads of each layer, anew for each run. With one
    task, the interval does not cover other tasks. Pairs that no run has are left out.
    """
    grids = {column: _grids(table, column) for column in measures}
    rng, parts = np.random.default_rng(seed), []
    for first, second in combinations(measures, 2):
        runs = [run for run in grids[first] if run in grids[second]]
        pairs = {run: (grids[first][run], grids[second][run]) for run in runs}
        for name, function in STATISTICS.items() if runs else ():
            facts = {"first": measures[first], "second": measures[second], "statistic": name}
            parts.append(facts | _interval(pairs, function, draws, rng))
    return pd.DataFrame(parts).assign(kind=IMPORTANCE, task=POOLED, role="").reindex(columns=COLUMNS)


def _grids(table: pd.DataFrame, column: str) -> dict[tuple, Values]:
    """The values of every run that has a value for each head."""
    found = {}
    for run, rows in table.groupby(RUN, sort=False):
        grid = rows.pivot(index="layer", columns="head", values=column).to_numpy(float)
        if np.isfinite(grid).all():
            found[run] = grid
    return found


def _interval(
    pairs: Mapping[tuple, tuple[Values, Values]], function: Function, draws: int, rng: np.random.Generator
) -> dict:
    tasks = [*dict.fromkeys(task for task, _ in pairs)]
    of_task = {task: [] for task in tasks}  # mean over the task's runs: the sample first, then every draw
    for (task, _), (first, second) in pairs.items():
        layers, heads = first.shape
        order: Drawn = rng.integers(heads, size=(draws, layers, heads))
        again = [
            np.take_along_axis(np.broadcast_to(each, order.shape), order, -1) for each in (first, second)
        ]
        of_task[task].append(np.concatenate([[function(first, second)], function(*again)]))
    means = np.stack([np.mean(each, axis=0) for each in of_task.values()])
    counts = resampled(len(tasks), draws, rng)[1:]
    with quiet():
        low, high = np.nanquantile((counts * means[:, 1:].T).sum(axis=1) / len(tasks), ENDS)
    heads = int(next(iter(pairs.values()))[0].size)
    return {"value": means[:, 0].mean(), "low": low, "high": high, "runs": len(pairs), "heads": heads}


def survival_agreement(survival: pd.DataFrame | None, state: str) -> pd.DataFrame:
    """COLUMNS of the kappa of each role's labels between attention and another map, kind "roles across maps"; empty
    without a table.

    `survival` has task, state, role, map, heads, kappa, low, high, on the same sequences for both maps. Rows for the
    mean over tasks follow; its interval treats the tasks as independent estimates with normal errors. `heads` counts
    the heads that have the role on the other map, over all tasks in the rows of the mean.
    """
    if survival is None:
        return pd.DataFrame(columns=COLUMNS)
    rows = survival[survival["state"] == state].dropna(subset="kappa")
    own = rows.rename(columns={"kappa": "value", "map": "second"}).assign(runs=1)
    means = []
    for (second, role), group in own.groupby(["second", "role"], sort=False):
        spread = (group["high"] - group["low"]) / (2 * stats.norm.ppf(ENDS[1]))
        error = stats.norm.ppf(ENDS[1]) * np.sqrt((spread**2).sum()) / len(group)
        value = group["value"].mean()
        limits = {"low": value - error, "high": min(value + error, 1.0)}
        means.append({"task": POOLED, "second": second, "role": role, "value": value} | limits
                     | {"runs": len(group), "heads": int(group["heads"].sum())})  # fmt: skip
    both = pd.concat([own, pd.DataFrame(means)], ignore_index=True)
    return both.assign(kind=ROLES, first="attention", statistic="kappa").reindex(columns=COLUMNS)


def gate_agreement(gates: pd.DataFrame, draws: int = 499, seed: int = 0) -> pd.DataFrame:
    """COLUMNS of how well two seeds agree on the gates, kind "gate seeds": kappa of classes, Spearman of both gates.

    `gates` has task, seed, gate_seed, layer, head, opened, closed, gate_class; values are means over pairs of gate
    seeds. The intervals resample tasks and the heads of each layer.
    """
    codes = gates.assign(code=gates["gate_class"].astype("category").cat.codes)
    rng, rows = np.random.default_rng(seed), []
    for column, name, function in (("code", "kappa of classes", _flat(kappa)),
                                   ("opened", "spearman", STATISTICS["spearman"]),
                                   ("closed", "spearman", STATISTICS["spearman"])):  # fmt: skip
        grids = {number: _grids(part, column) for number, part in codes.groupby("gate_seed")}
        pairs = {
            (run[0], (run[1], first, second)): (grids[first][run], grids[second][run])
            for first, second in combinations(grids, 2)
            for run in grids[first]
        }
        if pairs:
            shown = "gate class" if column == "code" else column
            facts = {"first": shown, "second": shown, "statistic": name}
            rows.append(facts | _interval(pairs, function, draws, rng))
    return pd.DataFrame(rows).assign(kind=GATES, task=POOLED, role="").reindex(columns=COLUMNS)


def kappa(first: Float[np.ndarray, "... n"], second: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "..."]:
    """Cohen's kappa of several classes (whole numbers) along the last axis; NaN if all are of one class."""
    classes = range(int(max(first.max(), second.max())) + 1)
    agreeing = (first == second).mean(-1)
    chance = sum((first == each).mean(-1) * (second == each).mean(-1) for each in classes)
    with quiet():
        return np.where(chance < 1, (agreeing - chance) / (1 - chance), np.nan)
