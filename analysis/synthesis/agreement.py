"""The atlas: the measurements of all papers, a row per task, run and head; how far its measures rank heads equally."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy import stats

from analysis.figures import theme
from analysis.figures.theme import head_grid
from analysis.statistics.answers import pearson
from analysis.statistics.effects import AUC, REFITTED
from analysis.statistics.intervals import mean_interval
from analysis.statistics.roles import LABELS

RUN, HEAD = ["task", "seed"], ["layer", "head"]
RUN_HEAD = [*RUN, *HEAD]
SURFACE = ("next", "previous", "self", "cls", "sep", "punct", "entropy")
# The measurements by their columns in the atlas: the table of the study, its rows, and its column.
MEASURES = {
    **{f"surface_{name}": ("clark_surface", "", name) for name in SURFACE},
    "cosine": ("kovaleva_cosine", "", "mean"),
    "ablation_auc": ("michel_effects", f"metric == '{AUC}'", "effect"),
    "ablation_refitted_loss": ("michel_effects", f"metric == '{REFITTED}'", "effect"),
    "ablation_loss": ("michel_ablation", "metric == 'loss'", "change"),
    "ablation_accuracy": ("michel_ablation", "metric == 'accuracy'", "change"),
    "disable": ("kovaleva_disable", "unit == 'head' and metric == 'accuracy'", "change"),
    "importance": ("michel_importance", "granularity == 'example' and not normalised", "importance"),
}
TABLES = {table for table, _, _ in MEASURES.values()}


def run_roles(scores: Mapping[tuple[str, int], xr.DataArray], labels: pd.DataFrame) -> pd.DataFrame:
    """Mean score and labels of every head for every role: RUN_HEAD, role, mean, and the three labels of `labels`.

    `scores` are composed roles by task and seed.
    """
    means = [
        composed.mean("sequence").reset_coords(drop=True).to_dataframe("mean").assign(task=task, seed=seed)
        for (task, seed), composed in scores.items()
    ]
    finetuned = labels.dropna(subset="seed").astype({"seed": int})
    return pd.concat(means).reset_index().merge(finetuned, on=[*RUN_HEAD, "role"], how="left")


def atlas_table(roles: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """RUN_HEAD, <role>_mean and <role>_<label> of every role in `roles`, then MEASURES; missing where not measured.

    `tables` holds those of TABLES that exist. One without tasks is about the pre-trained encoder and holds for every
    run; one with a single run per task belongs to the first seed.
    """
    wide = roles.pivot(index=RUN_HEAD, columns="role", values=["mean", *LABELS])
    wide.columns = [f"{role}_{quantity}" for quantity, role in wide.columns]
    table = wide.reset_index()
    for name, (source, rows, column) in MEASURES.items():
        if source not in tables:
            table[name] = float("nan")
            continue
        measured = tables[source].query(rows) if rows else tables[source]
        if "task" in measured and "seed" not in measured:
            measured = measured.assign(seed=table["seed"].min())
        keys = [key for key in RUN_HEAD if key in measured]
        values = measured[[*keys, column]].rename(columns={column: name}).astype(dict.fromkeys(HEAD, int))
        table = table.merge(values, on=keys, how="left", validate="many_to_one")
    return table


def role_scores(table: pd.DataFrame, roles: Sequence[str], response: str) -> pd.DataFrame:
    """RUN_HEAD, one measure of the atlas as `response`, and the mean score of each role by the role's name."""
    names = {f"{role}_mean": role for role in roles} | {response: "response"}
    numbers = table[[*names]].apply(pd.to_numeric).rename(columns=names)
    return pd.concat([table[RUN_HEAD], numbers], axis=1)


POOLED = "all tasks"
AGREEMENT_COLUMNS = "kind task first second role statistic value low high runs heads".split()
IMPORTANCE, ACROSS_MAPS = "importance", "roles across maps"

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
    """AGREEMENT_COLUMNS for each pair of `measures` (column of the atlas, its name) that a run has, and each of
    STATISTICS.

    value: by task the mean over its runs; in the rows POOLED the mean over tasks with its t interval, cut to [-1, 1].
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
        value, low, high = np.clip(mean_interval(np.array([*means.values()])), -1, 1)
        pooled = {"task": POOLED, "value": value, "low": low, "high": high, "runs": sum(runs.values())}
        rows.append(facts | pooled)
    return pd.DataFrame(rows).assign(kind=IMPORTANCE, role="").reindex(columns=AGREEMENT_COLUMNS)


def _grids(table: pd.DataFrame, column: str) -> dict[tuple, Values]:
    """The values of every run that has a value for each head."""
    runs = table.groupby(["task", "seed"], sort=False)
    grids = {run: head_grid(rows, column) for run, rows in runs}
    return {run: grid for run, grid in grids.items() if np.isfinite(grid).all()}


def survival_agreement(survival: pd.DataFrame | None, state: str) -> pd.DataFrame:
    """AGREEMENT_COLUMNS of the kappa of each role's labels between attention and another map, from `pascual_survival`.

    Rows POOLED are means over tasks, whose intervals treat these as independent estimates with normal errors; `heads`
    counts the heads that have the role on the other map. Empty without a table.
    """
    if survival is None:
        return pd.DataFrame(columns=AGREEMENT_COLUMNS)
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
    return both.assign(kind=ACROSS_MAPS, first="attention", statistic="kappa").reindex(
        columns=AGREEMENT_COLUMNS
    )


def rank_correlations(pairs: pd.DataFrame) -> Figure:
    """Rank correlations of measures with their intervals, means over tasks: below the diagonal over all heads.

    Above it within layers. `pairs` are rows POOLED of `importance_agreement`.
    """
    names = [*dict.fromkeys([*pairs["first"], *pairs["second"]])]
    values = np.full((len(names), len(names)), np.nan)
    axes = theme.canvas(theme.DOUBLE, 0.5 * len(names) + 1.2)
    for row in pairs.itertuples():
        place = names.index(row.second), names.index(row.first)
        place = place if row.statistic == "spearman" else place[::-1]
        values[place] = row.value
        shade = "white" if abs(row.value) > 0.65 else "black"
        text = f"{row.value:.2f}" + (f"\n[{row.low:.2f}, {row.high:.2f}]" if np.isfinite(row.low) else "")
        axes.text(place[1], place[0], text, ha="center", va="center", fontsize=7, color=shade)
    theme.hatch_missing(axes)
    mesh = axes.imshow(np.ma.masked_invalid(values), cmap="vlag", vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(names)), [name.replace(" ", "\n", 1).replace(", ", ",\n") for name in names])
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("below the diagonal over all heads, above it within layers")
    axes.figure.colorbar(mesh, ax=axes, label="rank correlation")
    return axes.figure
