"""How far measures of importance rank heads equally, and how far roles stay the same on another map."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from analysis.statistics.answers import pearson
from analysis.statistics.intervals import percentile_interval
from analysis.statistics.layers import head_grid
from analysis.synthesis.sets import POOLED

COLUMNS = "kind task first second role statistic value low high runs heads".split()
IMPORTANCE, ROLES = "importance", "roles across maps"

SPEARMAN, WITHIN_LAYERS = STATISTICS = ("spearman", "spearman within layers")
Values = Float[np.ndarray, "layer head"]


def correlation(statistic: str, *values: Float[np.ndarray, "... layer head"]) -> Float[np.ndarray, "..."]:
    """The rank correlation of two maps, with ranks over all heads or within layers; NaN if one side is constant."""
    if statistic == WITHIN_LAYERS:
        values = [stats.rankdata(side, axis=-1) for side in values]
    values = [side.reshape(*side.shape[:-2], -1) for side in values]
    if statistic == SPEARMAN:
        values = [stats.rankdata(side, axis=-1) for side in values]
    return pearson(*values)


def importance_agreement(
    table: pd.DataFrame, measures: Mapping[str, str], draws: int = 499, seed: int = 0
) -> pd.DataFrame:
    """COLUMNS for each pair of `measures` (column of the atlas, its name) and each of STATISTICS, kind "importance".

    value: mean over tasks of the mean over a task's runs (its seeds) in which both measures exist for all heads; low,
    high: 95 % interval from resampling the heads of each layer, the same for all tasks and runs. It does not cover
    other tasks. Pairs that no run has are left out.
    """
    grids = {column: _grids(table, column) for column in measures}
    rng, parts = np.random.default_rng(seed), []
    for first, second in combinations(measures, 2):
        runs = [run for run in grids[first] if run in grids[second]]
        pairs = {run: (grids[first][run], grids[second][run]) for run in runs}
        for name in STATISTICS if runs else ():
            facts = {"first": measures[first], "second": measures[second], "statistic": name}
            parts.append(facts | _interval(pairs, name, draws, rng))
    return pd.DataFrame(parts).assign(kind=IMPORTANCE, task=POOLED, role="").reindex(columns=COLUMNS)


def agreement_by_task(
    table: pd.DataFrame, measures: Mapping[str, str], draws: int = 499, seed: int = 0
) -> pd.DataFrame:
    """The rows of `importance_agreement` for each task, whose intervals draw the heads of each layer."""
    parts = [
        importance_agreement(rows, measures, draws, seed).assign(task=task)
        for task, rows in table.groupby("task", sort=False)
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)


def _grids(table: pd.DataFrame, column: str) -> dict[tuple, Values]:
    """The values of every run that has a value for each head."""
    runs = table.groupby(["task", "seed"], sort=False)
    grids = {run: head_grid(rows, column) for run, rows in runs}
    return {run: grid for run, grid in grids.items() if np.isfinite(grid).all()}


def _interval(
    pairs: Mapping[tuple, tuple[Values, Values]], statistic: str, draws: int, rng: np.random.Generator
) -> dict:
    layers, heads = next(iter(pairs.values()))[0].shape
    order = rng.integers(heads, size=(draws, layers, heads))  # they are the same heads in all tasks and runs
    by_task: dict[str, list] = {}  # a task's runs: the sample first, then every draw
    for (task, _), measures in pairs.items():
        resampled = [np.take_along_axis(values[None], order, -1) for values in measures]
        correlations = (correlation(statistic, *sides) for sides in (measures, resampled))
        by_task.setdefault(task, []).append(np.hstack([*correlations]))
    means = np.mean([np.mean(runs, axis=0) for runs in by_task.values()], axis=0)
    low, high = percentile_interval(means)
    return {"value": means[0], "low": low, "high": high, "runs": len(pairs), "heads": layers * heads}


def survival_agreement(survival: pd.DataFrame | None, state: str) -> pd.DataFrame:
    """COLUMNS of the kappa of each role's labels between attention and another map; empty without a table.

    `survival` is the table `pascual_survival`. Rows for the mean over tasks follow; its interval treats the tasks as
    independent estimates with normal errors. `heads` counts the heads that have the role on the other map, over all
    tasks in the rows of the mean.
    """
    if survival is None:
        return pd.DataFrame(columns=COLUMNS)
    rows = survival[survival["state"] == state].dropna(subset="kappa")
    by_task = rows.rename(columns={"kappa": "value", "map": "second"}).assign(runs=1)
    means, z = [], stats.norm.ppf(0.975)
    for (second, role), group in by_task.groupby(["second", "role"], sort=False):
        spread = (group["high"] - group["low"]) / (2 * z)
        error = z * np.sqrt((spread**2).sum()) / len(group)
        value, counts = group["value"].mean(), {"runs": len(group), "heads": int(group["heads"].sum())}
        limits = {"low": value - error, "high": min(value + error, 1.0)}
        means.append({"task": POOLED, "second": second, "role": role, "value": value} | limits | counts)
    both = pd.concat([by_task, pd.DataFrame(means)], ignore_index=True)
    return both.assign(kind=ROLES, first="attention", statistic="kappa").reindex(columns=COLUMNS)
