"""Scores and roles of Pande 2021, tables and layer means of Clark 2019; README.md here says how they were read."""

from pathlib import Path

import pandas as pd

from ..errors import InputError

FOLDER = Path(__file__).parent
TASKS = ("mrpc", "qqp", "sst-2", "qnli")
CLARK_TABLES = ("dependencies", "coreference", "probes")
KEYS = ["task", "layer", "head", "role"]


def scores(task: str | None = None) -> pd.DataFrame:
    """Published mean sieve bias scores: task, role, layer, head, mean, printed, lower, upper.

    `mean` is the midpoint of what the printed value and the colour (`lower` to `upper`) allow.
    Raises InputError for a task that was not published.
    """
    names = {"refined": "mean", "colour_lo": "lower", "colour_hi": "upper"}
    table = _read("pande2021_scores.csv", task).rename(columns=names)
    return table[["task", "role", "layer", "head", "mean", "printed", "lower", "upper"]]


def roles(task: str | None = None) -> pd.DataFrame:
    """Published role map at tau = 3, a long table: task, state, layer, head, role, mean, assigned, basis.

    `assigned` is <NA> where a mark may be hidden (`block` under `sep`) and where the role is not
    defined (`block` of a single sentence). Raises InputError for a task that was not published.
    """
    table = _read("pande2021_roles.csv", task).assign(state="finetuned")
    table = table.merge(scores(task)[[*KEYS, "mean"]], on=KEYS, how="left", validate="one_to_one")
    defined = ~table["basis"].str.startswith("not_defined")
    table["assigned"] = table["assigned_filled"].where(defined).astype("boolean")
    return table[["task", "state", "layer", "head", "role", "mean", "assigned", "basis"]]


def clark(table: str) -> pd.DataFrame:
    """A table of Clark 2019: `dependencies` (Table 1), `coreference` (2) or `probes` (3); values are percentages.

    All are of BERT-base: dependencies and probes on the Penn Treebank, coreference on CoNLL-2012. Layers and heads
    count from 0. Raises InputError for another table.
    """
    if table not in CLARK_TABLES:
        raise InputError(f"Clark 2019 has no table {table!r} here; use one of {', '.join(CLARK_TABLES)}")
    return pd.read_csv(FOLDER / f"clark2019_{table}.csv", keep_default_na=False, na_values=[""])


def surface_layers() -> pd.DataFrame:
    """Mean over the heads of each layer of BERT-base (Clark 2019, figures 2 and 4), read off the figures.

    Columns layer, the proportions cls, sep, punct, rest_sep, sep_sep (within 0.015), and entropy, entropy_cls
    (nats, within 0.08), as `surface_table` calls them.
    """
    return pd.read_csv(FOLDER / "clark2019_layers.csv")


def specialists() -> pd.DataFrame:
    """How many heads of BERT-base have more than half of their attention on the previous or next token (3.1).

    Columns statistic, heads and layers (once for each head, separated by blanks) as the article's text has them,
    figure_heads and figure_layers as the figure of the authors' notebook shows them, of (all heads of the encoder).
    """
    return pd.read_csv(FOLDER / "clark2019_specialists.csv")


def _read(name: str, task: str | None) -> pd.DataFrame:
    if task not in (None, *TASKS):
        raise InputError(f"task {task!r} has no published figures; use one of {', '.join(TASKS)}")
    table = pd.read_csv(FOLDER / name).replace({"role": {"all": "syntactic"}})
    return table if task is None else table[table["task"] == task].reset_index(drop=True)
