"""Scores and roles that Pande 2021 released; published.md says how they were read."""

from pathlib import Path

import pandas as pd

from analysis.errors import InputError

FOLDER = Path(__file__).parent
TASKS = ("mrpc", "qqp", "sst-2", "qnli")
KEYS = ["task", "layer", "head", "role"]


def scores(task: str | None = None) -> pd.DataFrame:
    """Published mean sieve bias scores: task, role, layer, head, mean, printed, lower, upper.

    `mean` is the midpoint of what the printed value and the colour (`lower` to `upper`) allow.
    Raises InputError for a task that was not published.
    """
    names = {"refined": "mean", "colour_lo": "lower", "colour_hi": "upper"}
    table = _read("published_scores.csv", task).rename(columns=names)
    return table[["task", "role", "layer", "head", "mean", "printed", "lower", "upper"]]


def roles(task: str | None = None) -> pd.DataFrame:
    """Published role map at tau = 3, a long table: task, state, layer, head, role, mean, assigned, basis.

    `assigned` is <NA> where a mark may be hidden (`block` under `sep`) and where the role is not
    defined (`block` of a single sentence). Raises InputError for a task that was not published.
    """
    table = _read("published_roles.csv", task).assign(state="finetuned")
    table = table.merge(scores(task)[[*KEYS, "mean"]], on=KEYS, how="left", validate="one_to_one")
    defined = ~table["basis"].str.startswith("not_defined")
    table["assigned"] = table["assigned_filled"].where(defined).astype("boolean")
    return table[["task", "state", "layer", "head", "role", "mean", "assigned", "basis"]]


def _read(name: str, task: str | None) -> pd.DataFrame:
    if task not in (None, *TASKS):
        raise InputError(f"task {task!r} has no published figures; use one of {', '.join(TASKS)}")
    table = pd.read_csv(FOLDER / name).replace({"role": {"all": "syntactic"}})
    return table if task is None else table[table["task"] == task].reset_index(drop=True)
