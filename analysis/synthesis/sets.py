"""All heads of a role ablated at once, compared with random sets of as many heads from the same layers."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from analysis.statistics.effects import EFFECT_METRICS, costs_by_metric
from analysis.statistics.resampling import Head, random_sets, resampled
from analysis.statistics.significance import TESTED, adjust

LABELS = {"corrected": "assigned_corrected", "controlled": "assigned_controlled"}
LEAST_SETS = 3  # random sets, without which a role's set cannot be tested
LEVEL = 0.95
KEYS = ["task", "role", "label"]
POOLED = "all tasks"
COLUMNS = [*KEYS, "heads", "sets", "tasks", "metric", "change", "random", "random_low", "random_high"]
COLUMNS += ["excess", "low", "high", "least", "p", "p_holm", "status"]


class RoleSet(NamedTuple):
    """The heads that have a role by one label in one task, and the random sets that they are compared with, if any."""

    task: str
    role: str
    label: str
    heads: tuple[Head, ...]
    status: str
    random: tuple[tuple[Head, ...], ...] = ()

    @property
    def name(self) -> str:
        """The heads of the set as layer-head: if several roles have the same set, it is one intervention."""
        return named(self.heads)


def named(heads: Iterable[Head]) -> str:
    """A set of heads as text."""
    return " ".join(f"{layer}-{head}" for layer, head in sorted(heads))


def role_sets(table: pd.DataFrame, task: str, count: int, seed: int = 0) -> list[RoleSet]:
    """The set of every role by its corrected label, and by the controlled label if that leaves two heads or more.

    `table` is a role table with the three labels, for one task and state; `count` random sets are drawn for each set
    (see `random_sets`). A set that is empty, or more than two thirds of the heads of its layers, is not applicable.
    """
    width, result = table["head"].nunique(), []
    for role, rows in table.groupby("role", sort=False):
        for label, column in LABELS.items():
            labelled = rows[rows[column].fillna(False).astype(bool)]
            places = zip(labelled["layer"].tolist(), labelled["head"].tolist(), strict=True)
            heads = tuple(sorted(places))
            testable = rows[column].notna().any()
            if label == "corrected" or len(heads) >= 2:
                status = _status(heads, width, testable)
                random = tuple(random_sets(heads, width, count, seed)) if status == TESTED else ()
                result.append(RoleSet(task, str(role), label, heads, status, random))
    return result


def _status(heads: Sequence[Head], width: int, testable: bool) -> str:
    if not testable:
        return "not applicable: the role itself cannot be tested"
    if not heads:
        return "not applicable: no head has the role"
    if len(random_sets(heads, width, LEAST_SETS)) < LEAST_SETS:
        return "not applicable: more than two thirds of the heads of its layers"
    return TESTED


def interventions(role_sets: Iterable[RoleSet]) -> dict[str, list[Head]]:
    """The heads of every tested set and of its random sets, by name; equal sets occur once."""
    tested = [role_set for role_set in role_sets if role_set.status == TESTED]
    sets = [role_set.heads for role_set in tested]
    sets += [heads for role_set in tested for heads in role_set.random]
    return {named(heads): [*heads] for heads in sets}


def set_changes(
    logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], positive: int = 1
) -> pd.DataFrame:
    """The ablation effect of every intervention by sequence, (set, metric) x sequence.

    Their means are the fall of AUC and accuracy, and the rise of the losses (nats). `logits` (intervention, sequence,
    class) have the row "none", with which all are compared; the AUC ranks the log odds of class `positive`.
    """
    values = logits.transpose("intervention", "sequence", "class").values
    names, sequences = logits["intervention"].values.tolist(), logits["sequence"].values
    effects = {
        metric: pd.DataFrame(costs - costs[names.index("none")], names, sequences)
        for metric, costs in costs_by_metric(values, labels, positive).items()
    }
    return pd.concat(effects, names=["metric", "set"]).swaplevel().sort_index()


class Change(NamedTuple):
    """The changes in every sequence of one task under one role's set and its random sets (unit of the metric)."""

    role: Float[np.ndarray, " sequence"]
    random: Float[np.ndarray, "set sequence"]

    @property
    def pool(self) -> Float[np.ndarray, "1+set sequence"]:
        """The role's set, then the random sets: under the null, each is equally likely to be the role's."""
        return np.concatenate([self.role[None], self.random])


def pooled_p(means: Sequence[Float[np.ndarray, "1+set"]], combinations: int = 9999, seed: int = 0) -> float:
    """Two-sided p of what the role's sets do together, from combinations of one set per task.

    `means` holds the change under the role's set and then under its random sets, for every task. What counts is the
    distance from the mean of the sets, on either side. A combination may also take the role's own set: without it, a
    single task with 19 random sets could give p = 1 / (1 + `combinations`). If there are at most `combinations` of
    them, all are tried; p is then exact, and at least 1 / their number.
    """
    means = [np.asarray(values) - np.mean(values) for values in means]
    observed = abs(sum(values[0] for values in means))
    if np.prod([float(len(values)) for values in means]) <= combinations:
        sums = np.abs([sum(combination) for combination in product(*means)])
        return float((sums >= observed - 1e-12).mean())
    rng = np.random.default_rng(seed)
    sums = np.abs(sum(values[rng.integers(len(values), size=combinations)] for values in means))
    return float((1 + (sums >= observed - 1e-12).sum()) / (1 + combinations))


def excess_draws(changes: Sequence[Change], draws: int = 999, seed: int = 0) -> Float[np.ndarray, " draw"]:
    """Harm of the role's sets minus that of one random set per task, mean over tasks, with sequences resampled.

    The interval of these draws covers other sequences, and also the chance that any set of heads stands out; comparing
    with the mean of the random sets would miss the second. As in `pooled_p`, the role's own set counts as a random set.
    """
    rng, parts = np.random.default_rng(seed), []
    for change in changes:
        n = len(change.role)
        counts = resampled(n, draws, rng)[1:]
        means = counts @ change.pool.T / n
        places: Int[np.ndarray, " draw"] = rng.integers(len(change.pool), size=draws)
        parts.append(means[:, 0] - means[np.arange(draws), places])
    return np.mean(parts, axis=0)


def set_means(role_sets: Iterable[RoleSet], changes: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The mean change without each tested set and each of its random sets, as sets_table compares them.

    Columns task, role, label, metric, own (the role's heads, or a random set) and change (fall of AUC and accuracy,
    rise of losses).
    """
    rows = [
        (*(getattr(role_set, key) for key in KEYS), metric, place == 0, change)
        for role_set in role_sets
        if role_set.status == TESTED
        for metric in EFFECT_METRICS
        for place, change in enumerate(_change(role_set, changes, metric).pool.mean(axis=1))
    ]
    return pd.DataFrame(rows, columns=[*KEYS, "metric", "own", "change"]).astype({"own": bool})


def sets_table(
    role_sets: Sequence[RoleSet],
    changes: dict[str, pd.DataFrame],
    learned: Sequence[str],
    count: int,
    combinations: int = 9999,
    draws: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """The effect of ablating the heads of each role, beside random sets: COLUMNS, a row per task, role, label, metric.

    `changes` holds a frame (set name, metric) x sequence for every task: changes from no intervention. `count` is the
    number of random sets asked for. Columns: change: the effect, mean over sequences (fall of AUC and accuracy, rise of
    losses); random, random_low, random_high: mean and 95 % range over the random sets; excess: change minus random;
    low, high: 95 % interval from `excess_draws`; least: half of the 95 % range of the random sets, the least excess
    that stands out from them; p: two-sided, from `pooled_p`. Rows of "all tasks" pool the testable tasks among
    `learned`, those whose classifier trained successfully; p_holm corrects them over the roles.
    """
    groups: dict[tuple[str, str], list[RoleSet]] = {}
    for role_set in role_sets:
        groups.setdefault((role_set.role, role_set.label), []).append(role_set)
    rows = []
    for ((role, label), group), metric in product(groups.items(), EFFECT_METRICS):
        pooled = [role_set for role_set in group if role_set.status == TESTED and role_set.task in learned]
        of_all = RoleSet(POOLED, role, label, (), TESTED if pooled else "not applicable in every task")
        for row, parts in [*((role_set, [role_set]) for role_set in group), (of_all, pooled)]:
            measured = [_change(part, changes, metric) for part in parts if part.status == TESTED]
            sizes = {"heads": sum(len(part.heads) for part in parts), "sets": count, "tasks": len(measured)}
            numbers = _measured(measured, combinations, draws, seed)
            rows.append(row._asdict() | sizes | {"metric": metric} | numbers)
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    of_all = table["task"] == POOLED
    families = table[of_all].groupby(["label", "metric"])["p"]
    return table.assign(p_holm=families.transform(adjust, "holm").reindex(table.index))


def _change(role_set: RoleSet, changes: dict[str, pd.DataFrame], metric: str) -> Change:
    rows = changes[role_set.task].xs(metric, level="metric")
    names = [named(heads) for heads in role_set.random]
    return Change(rows.loc[role_set.name].to_numpy(), rows.loc[names].to_numpy())


def _measured(changes: Sequence[Change], combinations: int, draws: int, seed: int) -> dict[str, float]:
    """The numbers of one row; all missing if no set can be tested, or if the metric is undefined for a task."""
    if not changes or any(np.isnan(change.role).any() for change in changes):
        return {}
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    effect = np.mean([change.role.mean() for change in changes])
    fewest = min(len(change.random) for change in changes)
    random = np.mean([change.random[:fewest].mean(axis=1) for change in changes], axis=0)
    spread = np.quantile(random, ends)
    low, high = np.quantile(excess_draws(changes, draws, seed), ends)
    means = [change.pool.mean(axis=1) for change in changes]
    return {
        "change": effect, "random": random.mean(),
        "random_low": spread[0], "random_high": spread[1], "least": (spread[1] - spread[0]) / 2,
        "excess": effect - random.mean(), "low": low, "high": high,
        "p": pooled_p(means, combinations, seed),
    }  # fmt: skip
