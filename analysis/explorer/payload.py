"""The numbers of the page: role tables and other tables of heads as lists over heads, those of layer 0 first."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.errors import InputError
from analysis.statistics.controls import share_of_control
from analysis.statistics.roles import HEAD, LABELS
from analysis.statistics.significance import TESTED

NUMBERS = ("mean", "low", "high")
YES, NO, NOT_APPLICABLE, ABSENT = "1", "0", "?", "-"

Shape = tuple[int, int]


def digits(values: Iterable[float]) -> list[float | None]:
    """Numbers with four significant digits; None if one is missing or infinite."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]


def with_groups(tables: pd.DataFrame) -> pd.DataFrame:
    """Role tables with columns task and state; both are empty texts if the tables have no such columns.

    Raises InputError for a head that has a role twice.
    """
    table = tables.assign(**{key: "" for key in ("task", "state") if key not in tables})
    repeated = table.duplicated(["task", "state", "role", *HEAD])
    if repeated.any():
        row = table[repeated].iloc[0]
        raise InputError(
            f"the role tables hold head {row['layer']}-{row['head']} twice for role {row['role']}: add columns task "
            "and state that tell the tables apart"
        )
    return table


def scores_of(tables: pd.DataFrame, shape: Shape) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Numbers and labels by task, state and role."""
    scores: dict[str, dict] = {}
    for (task, state, role), rows in tables.groupby(["task", "state", "role"], sort=False):
        scores.setdefault(task, {}).setdefault(state, {})[role] = _entry(rows, shape)
    return scores


def _entry(rows: pd.DataFrame, shape: Shape) -> dict[str, Any]:
    by_head = rows.set_index(HEAD)
    table = by_head.reindex(_heads(shape))
    present = table.index.isin(by_head.index)
    sizes = table["n"].fillna(0).astype(int).tolist()
    entry = {"n": sizes[0] if len({*sizes}) == 1 else sizes}
    entry |= {name: digits(table[name].astype(float)) for name in NUMBERS if name in table}
    if "control_mean" in table:
        entry["share"] = digits(share_of_control(table["control_mean"], table["mean"]))
    entry |= {name: _codes(table[column], present) for column, name in LABELS.items() if column in table}
    status = table["status"].fillna(TESTED).tolist() if "status" in table else []
    if any(text != TESTED for text in status):
        entry["status"] = status
    controls = rows["control"].dropna().unique() if "control" in rows else []
    return entry | ({"control": ", ".join(map(str, controls))} if len(controls) else {})


def _codes(label: pd.Series, present: np.ndarray) -> str:
    codes = label.astype("boolean").map({True: YES, False: NO}, na_action="ignore").fillna(NOT_APPLICABLE)
    return "".join(np.where(present, codes, ABSENT))


def values_of(values: Mapping[str, pd.DataFrame], shape: Shape) -> dict[str, dict[str, list[float | None]]]:
    """The medians of `value` over the rows of each head, by name and task; the task is "" in a table without tasks."""
    by_name: dict[str, dict] = {name: {} for name in values}
    for name, table in values.items():
        tasks = table["task"] if "task" in table else pd.Series("", table.index)
        for task, rows in table.groupby(tasks, sort=False):
            medians = rows.groupby(HEAD)["value"].median().reindex(_heads(shape))
            by_name[name][task] = digits(medians)
    return by_name


def _heads(shape: Shape) -> pd.MultiIndex:
    return pd.MultiIndex.from_product([range(size) for size in shape], names=HEAD)
