"""How far measures of importance rank heads equally, and how far roles stay the same on another map."""

from collections.abc import Mapping
from itertools import combinations, product

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from analysis.statistics.answers import pearson
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import head_grid

POOLED = "all tasks"
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


def importance_agreement(table: pd.DataFrame, measures: Mapping[str, str]) -> pd.DataFrame:
    """COLUMNS for each pair of `measures` (column of the atlas, its name) and each of STATISTICS, kind "importance".

    value: by task the mean over its runs (seeds) in which both measures exist for all heads, and in the rows POOLED the
    mean over tasks with its t interval. Pairs that no run has are left out.
    """
    grids, rows = {column: _grids(table, column) for column in measures}, []
    for (first, second), statistic in product(combinations(measures, 2), STATISTICS):
        by_task: dict[str, list[float]] = {}
        for run in (run for run in grids[first] if run in grids[second]):
            value = correlation(statistic, grids[first][run], grids[second][run])
            by_task.setdefault(run[0], []).append(float(value))
        if not by_task:
            continue
        heads = next(iter(grids[first].values())).size
        facts = {"first": measures[first], "second": measures[second], "statistic": statistic, "heads": heads}
        means = {task: np.mean(values) for task, values in by_task.items()}
        runs = {task: len(values) for task, values in by_task.items()}
        rows += [facts | {"task": task, "value": means[task], "runs": runs[task]} for task in means]
        value, low, high = mean_interval(np.array([*means.values()]))
        pooled = {"task": POOLED, "value": value, "low": low, "high": high, "runs": sum(runs.values())}
        rows.append(facts | pooled)
    return pd.DataFrame(rows).assign(kind=IMPORTANCE, role="").reindex(columns=COLUMNS)


def _grids(table: pd.DataFrame, column: str) -> dict[tuple, Values]:
    """The values of every run that has a value for each head."""
    runs = table.groupby(["task", "seed"], sort=False)
    grids = {run: head_grid(rows, column) for run, rows in runs}
    return {run: grid for run, grid in grids.items() if np.isfinite(grid).all()}


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
