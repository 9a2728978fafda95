"""The atlas of heads: the measurements of all papers in one row per task, fine-tuning seed and head."""

from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr

from analysis.statistics.effects import AUC, REFITTED
from analysis.statistics.roles import LABELS

RUN, HEAD = ["task", "seed"], ["layer", "head"]
KEYS = [*RUN, *HEAD]
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
    """The mean score and the labels of every head for every role, by run: KEYS, role, mean, and the three labels.

    `scores` are composed roles by task and seed; `labels` is the table of labels of all runs.
    """
    means = [
        composed.mean("sequence").reset_coords(drop=True).to_dataframe("mean").assign(task=task, seed=seed)
        for (task, seed), composed in scores.items()
    ]
    finetuned = labels.dropna(subset="seed").astype({"seed": int})
    return pd.concat(means).reset_index().merge(finetuned, on=[*KEYS, "role"], how="left")


def atlas_table(roles: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """KEYS, then <role>_mean and <role>_<label> of every role in `roles`, then MEASURES; missing if not measured.

    `tables` holds those of TABLES that exist. A table without tasks is about the pre-trained encoder and holds for
    every run; a table with one run per task belongs to the first seed.
    """
    wide = roles.pivot(index=KEYS, columns="role", values=["mean", *LABELS])
    wide.columns = [f"{role}_{quantity}" for quantity, role in wide.columns]
    table = wide.reset_index()
    for name, (source, rows, column) in MEASURES.items():
        if source not in tables:
            table[name] = float("nan")
            continue
        measured = tables[source].query(rows) if rows else tables[source]
        if "task" in measured and "seed" not in measured:
            measured = measured.assign(seed=table["seed"].min())
        keys = [key for key in KEYS if key in measured]
        values = measured[[*keys, column]].rename(columns={column: name}).astype(dict.fromkeys(HEAD, int))
        table = table.merge(values, on=keys, how="left", validate="many_to_one")
    return table


def role_scores(table: pd.DataFrame, roles: Sequence[str], response: str) -> pd.DataFrame:
    """KEYS, one measure of the atlas as `response`, and the mean score of each role by the role's name."""
    names = {f"{role}_mean": role for role in roles} | {response: "response"}
    numbers = table[[*names]].apply(pd.to_numeric).rename(columns=names)
    return pd.concat([table[KEYS], numbers], axis=1)
