"""Scores and roles that Pande 2021 released; published.md says how they were read."""

from functools import partial
from pathlib import Path

import pandas as pd

from analysis import tables
from analysis.errors import InputError

published = partial(tables.published, Path(__file__).parent)
POOLED = {"role": {"all": "syntactic"}}  # the names of the released files
MAP_CELL = ["task", "layer", "head", "role"]
LAYERS = {"0-11": range(12), "0-5": range(6), "6-11": range(6, 12)}


def scores() -> pd.DataFrame:
    """Published mean sieve bias scores: task, role, layer, head, mean, printed, lower, upper.

    `mean` is the midpoint of the interval (`lower` to `upper`) that the printed value and the colour allow.
    """
    names = {"refined": "mean", "colour_lo": "lower", "colour_hi": "upper"}
    table = published("scores").replace(POOLED).rename(columns=names)
    return table[["task", "role", "layer", "head", "mean", "printed", "lower", "upper"]]


def roles() -> pd.DataFrame:
    """Published role map at tau = 3, a long table: task, state, layer, head, role, mean, assigned, basis.

    `assigned` is <NA> if a mark may be hidden (`block` under `sep`) or the role is not defined (`block` for a single
    sentence).
    """
    table = published("roles").replace(POOLED).assign(state="finetuned")
    table = table.merge(scores()[[*MAP_CELL, "mean"]], on=MAP_CELL, how="left", validate="one_to_one")
    defined = ~table["basis"].str.startswith("not_defined")
    table["assigned"] = table["assigned_filled"].where(defined).astype("boolean")
    return table[["task", "state", "layer", "head", "role", "mean", "assigned", "basis"]]


def compare_maps(ours: pd.DataFrame, released: pd.DataFrame) -> pd.DataFrame:
    """Mean scores of this study and the published ones, compared over the heads of all, lower and upper layers.

    `ours` is a role table with a column task, `released` comes from `scores`. Columns task, role, layers, heads,
    correlation (Spearman), deviation (largest absolute, in units of the score), and the layer and head where it is.
    Raises InputError unless our model has 12 layers of 12 heads.
    """
    for name in ("layer", "head"):
        if {*ours[name]} != {*range(12)}:
            raise InputError(f"the role table must have 12 {name}s, as the published maps of BERT-base have")
    both = ours.merge(released[[*MAP_CELL, "mean"]], on=MAP_CELL, suffixes=("", "_published"))
    both = both.dropna(subset="mean")
    rows = []
    for (task, role), group in both.groupby(["task", "role"], sort=False):
        for name, layers in LAYERS.items():
            part = group[group["layer"].isin(layers)]
            deviation = (part["mean"] - part["mean_published"]).abs()
            worst = part.loc[deviation.idxmax()]
            correlation = part["mean"].corr(part["mean_published"], method="spearman")
            row = (task, role, name, len(part), correlation, deviation.max())
            rows.append((*row, int(worst["layer"]), int(worst["head"])))
    columns = ["task", "role", "layers", "heads", "correlation", "deviation", "layer", "head"]
    return pd.DataFrame(rows, columns=columns)
