"""All heads of a role ablated at once, compared with random sets of as many heads from the same layers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures import theme
from analysis.figures.colours import colour, ink, marker
from analysis.roles import Head
from analysis.statistics.bootstrap import resampled
from analysis.statistics.effects import EFFECT_METRICS, costs_by_metric
from analysis.statistics.head_sets import random_sets
from analysis.statistics.significance import TESTED, adjust

LABEL_COLUMNS = {"corrected": "assigned_corrected", "controlled": "assigned_controlled"}
LEAST_SETS = 3  # random sets, without which a role's set cannot be tested
LEVEL = 0.95
SET_KEYS = ["task", "role", "label"]
KINDS = ("pairs of texts", "single texts")  # of tasks, which are pooled apart
SET_COLUMNS = [*SET_KEYS, "heads", "sets", "tasks", "metric", "change", "random", "random_low", "random_high"]
SET_COLUMNS += ["excess", "low", "high", "least", "p", "p_holm", "status"]
# The changes of one task under the role's set, then under its random sets (unit of the metric): under the null, each
# is equally likely to be the role's.
Pool = Float[np.ndarray, "1+set sequence"]


class RoleSet(NamedTuple):
    """The heads that have a role by one label in one task, and the random sets that they are compared with, if any."""

    task: str
    role: str
    label: str
    heads: tuple[Head, ...]
    status: str
    random: tuple[tuple[Head, ...], ...] = ()


def named(heads: Iterable[Head]) -> str:
    """A set of heads as text: if several roles have the same set, it is one intervention."""
    return " ".join(f"{layer}-{head}" for layer, head in sorted(heads))


def role_sets(table: pd.DataFrame, task: str, count: int, seed: int = 0) -> list[RoleSet]:
    """The set of every role by its corrected label, and by the controlled label if that leaves two heads or more.

    `table` is the role table of one task and state; `count` random sets are drawn for each set. A set that is empty, or
    more than two thirds of the heads of its layers, is not applicable.
    """
    width, result = table["head"].nunique(), []
    for role, rows in table.groupby("role", sort=False):
        for label, column in LABEL_COLUMNS.items():
            labelled = rows.loc[rows[column].fillna(False).astype(bool), ["layer", "head"]]
            heads = tuple(sorted(map(tuple, labelled.to_numpy().tolist())))
            if label == "corrected" or len(heads) >= 2:
                status = _status(heads, width, rows[column].notna().any())
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
    """The ablation effect of every intervention by sequence, (set, metric) x sequence; larger is worse.

    Means are falls of AUC and accuracy, and rises of the losses (nats). `logits` (intervention, sequence, class) have
    the row "none"; the AUC ranks the log odds of class `positive`.
    """
    values = logits.transpose("intervention", "sequence", "class").values
    names, sequences = logits["intervention"].values.tolist(), logits["sequence"].values
    effects = {
        metric: pd.DataFrame(costs - costs[names.index("none")], names, sequences)
        for metric, costs in costs_by_metric(values, labels, positive).items()
    }
    return pd.concat(effects, names=["metric", "set"]).swaplevel().sort_index()


def pooled_p(means: Sequence[Float[np.ndarray, "1+set"]], combinations: int = 9999, seed: int = 0) -> float:
    """Two-sided p of what the role's sets do together, from combinations of one set per task.

    `means` holds the change under the role's set, then under its random sets, by task; what counts is the distance from
    their mean. A combination may take the role's own set: without it, one task with 19 random sets could give p = 1 /
    (1 + `combinations`). At most `combinations` are all tried; p is then exact.
    """
    means = [np.asarray(values) - np.mean(values) for values in means]
    observed = abs(sum(values[0] for values in means))
    if np.prod([float(len(values)) for values in means]) <= combinations:
        sums = np.abs([sum(combination) for combination in product(*means)])
        return float((sums >= observed - 1e-12).mean())
    rng = np.random.default_rng(seed)
    sums = np.abs(sum(values[rng.integers(len(values), size=combinations)] for values in means))
    return float((1 + (sums >= observed - 1e-12).sum()) / (1 + combinations))


def excess_draws(pools: Sequence[Pool], draws: int = 999, seed: int = 0) -> Float[np.ndarray, " draw"]:
    """Harm of the role's sets minus that of one random set per task, mean over tasks, with sequences resampled.

    The draws cover other sequences, and the chance that any set of heads stands out, which the mean of the random sets
    would miss. As in `pooled_p`, the role's own set counts as a random set.
    """
    rng, parts = np.random.default_rng(seed), []
    for pool in pools:
        n = pool.shape[1]
        counts = resampled(n, draws, rng)[1:]
        means = counts @ pool.T / n
        places = rng.integers(len(pool), size=draws)
        parts.append(means[:, 0] - means[np.arange(draws), places])
    return np.mean(parts, axis=0)


def set_means(role_sets: Iterable[RoleSet], changes: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The mean change without each tested set (own) and each of its random sets: task, role, label, metric, own,
    change.
    """
    rows = [
        (*(getattr(role_set, key) for key in SET_KEYS), metric, place == 0, change)
        for role_set in role_sets
        if role_set.status == TESTED
        for metric in EFFECT_METRICS
        for place, change in enumerate(_pool(role_set, changes, metric).mean(axis=1))
    ]
    return pd.DataFrame(rows, columns=[*SET_KEYS, "metric", "own", "change"]).astype({"own": bool})


def sets_table(
    role_sets: Sequence[RoleSet],
    changes: dict[str, pd.DataFrame],
    learned: Mapping[str, Sequence[str]],
    combinations: int = 9999,
    draws: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """The table `synthesis_sets` (docs/tables.yaml): the effect of ablating the heads of each role, and random sets.

    `changes` are those of `set_changes` by task. `learned` names by kind of task those whose classifier trained
    successfully: a row of the kind pools the testable ones, and p_holm corrects these rows over the roles.
    """
    groups: dict[tuple[str, str], list[RoleSet]] = {}
    for role_set in role_sets:
        groups.setdefault((role_set.role, role_set.label), []).append(role_set)
    rows = []
    for ((role, label), group), metric in product(groups.items(), EFFECT_METRICS):
        parts_of = [(role_set, [role_set]) for role_set in group]
        for kind, tasks in learned.items():
            pooled = [item for item in group if item.status == TESTED and item.task in tasks]
            status = TESTED if pooled else "not applicable in every task"
            parts_of.append((RoleSet(kind, role, label, (), status), pooled))
        for row, parts in parts_of:
            measured = [_pool(part, changes, metric) for part in parts if part.status == TESTED]
            sizes = {"heads": sum(len(part.heads) for part in parts), "tasks": len(measured)}
            sizes["sets"] = min((len(part.random) for part in parts), default=0)
            numbers = _measured(measured, combinations, draws, seed)
            rows.append(row._asdict() | sizes | {"metric": metric, "random": np.nan} | numbers)
    table = pd.DataFrame(rows).reindex(columns=SET_COLUMNS)
    families = table[table["task"].isin([*learned])].groupby(["task", "label", "metric"])["p"]
    return table.assign(p_holm=families.transform(adjust, "holm").reindex(table.index))


def _pool(role_set: RoleSet, changes: dict[str, pd.DataFrame], metric: str) -> Pool:
    rows = changes[role_set.task].xs(metric, level="metric")
    return rows.loc[[named(heads) for heads in (role_set.heads, *role_set.random)]].to_numpy()


def _measured(pools: Sequence[Pool], combinations: int, draws: int, seed: int) -> dict[str, float]:
    """The numbers of one row; all missing if no set can be tested, or if the metric is undefined for a task."""
    if not pools or any(np.isnan(pool[0]).any() for pool in pools):
        return {}
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    effect = np.mean([pool[0].mean() for pool in pools])
    fewest = min(map(len, pools))
    random = np.mean([pool[1:fewest].mean(axis=1) for pool in pools], axis=0)
    spread = np.quantile(random, ends)
    low, high = np.quantile(excess_draws(pools, draws, seed), ends)
    means = [pool.mean(axis=1) for pool in pools]
    return {
        "change": effect, "random": random.mean(),
        "random_low": spread[0], "random_high": spread[1], "least": (spread[1] - spread[0]) / 2,
        "excess": effect - random.mean(), "low": low, "high": high,
        "p": pooled_p(means, combinations, seed),
    }  # fmt: skip


def set_effects(excess: pd.DataFrame, names: dict[str, str]) -> Figure:
    """The excess effect of the heads of each role (marks) and of random sets (dashes), a panel for each task.

    `excess` has task, role, own and excess; `names` has the text beside every role.
    """
    order = theme.in_order(excess["role"])[::-1]
    figure, grid = theme.rows_of_axes(excess["task"].nunique(), 4, 2.9, sharey=True)
    for axes, (task, rows) in zip(grid, excess.groupby("task", sort=False), strict=True):
        random = rows[~rows["own"]]
        axes.axvline(0, color="black", linewidth=0.6)
        axes.plot(random["excess"], random["role"].map(order.index), "|", color="0.7", markersize=5)
        for row in rows[rows["own"]].itertuples():
            look = {"color": ink(row.role), "markerfacecolor": colour(row.role), "markersize": 5.5}
            axes.plot(row.excess, order.index(row.role), marker(row.role), **look)
        axes.set(title=task, yticks=range(len(order)), xlabel="excess fall in AUC")
        axes.set_yticklabels([names[role] for role in order])
        axes.locator_params(axis="x", nbins=4)
    random_set = Line2D([], [], color="0.7", marker="|", linestyle="", label="random set of heads")
    role_set = Line2D([], [], color="0.3", marker="o", linestyle="", label="heads of the role")
    figure.legend(handles=[random_set, role_set], ncols=2, loc="outside upper center")
    return figure
