"""The data of the page about heads: role tables, other head tables and claims as plain lists and numbers."""

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.errors import InputError

HEAD = ["layer", "head"]
ROLE_COLUMNS = (*HEAD, "role", "n", "mean", "assigned")
# The page's names for columns of a role table.
NUMBERS = {
    "mean": "mean",
    "low": "low",
    "high": "high",
    "control_mean": "control_mean",
    "share": "control_share",
}
LABELS = {
    "published": "assigned",
    "audited": "assigned_audited",
    "controlled": "assigned_controlled",
    "control_assigned": "control_assigned",
}
TESTED = "tested"
YES_NO = {True: "yes", False: "no"}
YES, NO, UNTESTABLE, ABSENT = "1", "0", "?", "-"
PAIRED = "other_layer"  # a table with this column is about pairs of heads
ROLES = "roles"  # the role tables of attention; those of another map are named roles-<map>
KEPT = (*HEAD, "role", "n", *NUMBERS.values(), *LABELS.values(), "status")  # for role tables of other maps
CLAIM_TABLE = re.compile(r"claims(?P<kind>_\w+)?(?:-(?P<paper>.+))?")

Shape = tuple[int, int]


def digits(values: Iterable[float]) -> list[float | None]:
    """Numbers with four significant digits; None if one is missing or infinite."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]


def role_tables(
    tables: Mapping[str, pd.DataFrame], tasks: Sequence[str], states: Sequence[str]
) -> pd.DataFrame | None:
    """The role tables of attention in a study, roles-<task>-<state>, as one table; None if there are none."""
    parts = []
    for stem, table in tables.items():
        name, origin = _origin(stem, tasks, states)
        if name == ROLES and {*ROLE_COLUMNS} <= {*table} and "state" in origin:
            parts.append((tasks.index(origin["task"]), states.index(origin["state"]), table.assign(**origin)))
    ordered = [table for *_, table in sorted(parts, key=lambda part: part[:2])]
    return pd.concat(ordered, ignore_index=True) if ordered else None


def grouped(tables: pd.DataFrame) -> pd.DataFrame:
    """Role tables with columns task and state; both are empty texts if the tables have no such columns.

    Raises InputError for a missing column, and for a head that has a role twice.
    """
    missing = [column for column in ROLE_COLUMNS if column not in tables]
    if missing:
        raise InputError(
            f"the role tables have no column {missing[0]!r}: give those of published_table or role_table"
        )
    found = tables.assign(**{key: "" for key in ("task", "state") if key not in tables})
    repeated = found.duplicated(["task", "state", "role", *HEAD])
    if repeated.any():
        row = found[repeated].iloc[0]
        raise InputError(
            f"the role tables hold head {row['layer']}-{row['head']} twice for role {row['role']}: add columns task "
            "and state that tell the tables apart"
        )
    return found


def shape_of(tables: pd.DataFrame) -> Shape:
    """The numbers of layers and heads in role tables."""
    return int(tables["layer"].max()) + 1, int(tables["head"].max()) + 1


def scores_of(tables: pd.DataFrame, shape: Shape) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """The numbers and labels of every role by task, state and role: lists over heads, those of layer 0 first."""
    found: dict[str, dict] = {}
    for (task, state, role), rows in tables.groupby(["task", "state", "role"], sort=False):
        found.setdefault(task, {}).setdefault(state, {})[role] = _entry(rows, shape)
    return found


def _entry(rows: pd.DataFrame, shape: Shape) -> dict[str, Any]:
    every = pd.MultiIndex.from_product([range(size) for size in shape], names=HEAD)
    given = rows.set_index(HEAD)
    there = every.isin(given.index)
    wide = given.reindex(every)
    numbers = {name: digits(wide[column].astype(float)) for name, column in NUMBERS.items() if column in wide}
    labels = {name: _labels(wide[column], there) for name, column in LABELS.items() if column in wide}
    sizes = wide["n"].fillna(0).astype(int).tolist()
    entry = {"n": sizes[0] if len({*sizes}) == 1 else sizes, **numbers, **labels}
    status = wide["status"].fillna(TESTED).tolist() if "status" in wide else []
    if any(text != TESTED for text in status):
        entry["status"] = status
    control = rows["control"].dropna().unique() if "control" in rows else []
    if len(control):
        entry["control"] = ", ".join(map(str, control))
    return entry


def _labels(column: pd.Series, there: np.ndarray) -> str:
    codes = column.astype("boolean").map({True: YES, False: NO}, na_action="ignore").fillna(UNTESTABLE)
    return "".join(np.where(there, codes, ABSENT))


def head_tables(
    tables: Mapping[str, pd.DataFrame], tasks: Sequence[str], states: Sequence[str]
) -> dict[str, dict[str, list]]:
    """All tables with columns layer and head as rows of cells, except pairs of heads and the page's own role tables.

    Tables named <name>-<task> or <name>-<task>-<state> become one table with columns task and state. Role tables of
    other maps keep only the columns that the page shows.
    """
    parts: dict[str, list[pd.DataFrame]] = {}
    for stem, table in tables.items():
        name, origin = _origin(stem, tasks, states)
        of_roles = {*ROLE_COLUMNS} <= {*table}
        if {*HEAD} <= {*table} and PAIRED not in table and not (of_roles and name == ROLES):
            kept = table[[column for column in KEPT if column in table]] if of_roles else table
            known = kept.dropna(subset=HEAD).assign(**origin)
            parts.setdefault(name, []).append(
                known[[*origin, *known.columns.drop([*origin])]].astype(dict.fromkeys(HEAD, int))
            )
    return {name: listed(pd.concat(found, ignore_index=True)) for name, found in parts.items() if found}


def _origin(stem: str, tasks: Sequence[str], states: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The name of a table, and the task and state at the end of its file name."""
    endings = [(f"-{task}", {"task": task}) for task in tasks]
    endings += [
        (f"-{task}-{state}", {"task": task, "state": state}) for task in tasks for state in states if state
    ]
    for ending, origin in endings:
        if stem.endswith(ending) and len(ending) > 1:
            return stem.removesuffix(ending), origin
    return stem, {}


def claim_tables(
    tables: Mapping[str, pd.DataFrame], papers: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The claim tables of each paper as rows of cells: claims-<paper>, claims_<kind>-<paper>.

    `papers` gives the papers in order; a table without a paper in its name belongs to the first. Without `papers`, the
    groups have the names that the table names contain.
    """
    titles = dict(papers or {})
    first = next(iter(titles), "")
    groups: dict[str, dict[str, Any]] = {
        paper: {"title": title, "tables": {}} for paper, title in titles.items()
    }
    for stem, table in tables.items():
        found = CLAIM_TABLE.fullmatch(stem)
        if found and "claim" in table:
            paper = found["paper"] or first
            group = groups.setdefault(paper, {"title": paper.replace("_", " "), "tables": {}})
            group["tables"][f"claims{found['kind'] or ''}"] = listed(table)
    return [group for group in groups.values() if group["tables"]]


def listed(table: pd.DataFrame) -> dict[str, list]:
    """A table as column names and rows: numbers with four digits, texts, and None for an empty cell."""
    columns = [_cells(table[column]) for column in table]
    return {"columns": [*map(str, table.columns)], "rows": [list(row) for row in zip(*columns, strict=True)]}


def _cells(column: pd.Series) -> list:
    if pd.api.types.is_bool_dtype(column):
        column = column.astype(object)
    if pd.api.types.is_integer_dtype(column) and not column.isna().any():
        return column.astype(int).tolist()
    if pd.api.types.is_numeric_dtype(column):
        return digits(column.astype(float))
    return [None if pd.isna(value) else YES_NO.get(value, str(value)) for value in column]


def deflated(value: Any) -> str:
    """Base64 of compressed JSON, for data that the page reads once it is ready."""
    return b64encode(zlib.compress(compact_json(value).encode(), 9)).decode()


def compact_json(value: Any) -> str:
    """JSON without blanks, keys sorted, in ASCII; raises ValueError for NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
