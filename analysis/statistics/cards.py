"""Single heads: the values of one head in all tables, and the heads that show a role most, without a threshold."""

from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.errors import InputError
from analysis.statistics.roles import HEAD, LABELS

STATUS = "_status"
BESIDE = ("seed", "gate_seed", "normalised")  # columns without text that a row is about too
OUTCOMES = ("task", "control", "status", "change", "gate_class")  # columns of text that a row is not about
CARD = ["table", "about", "quantity", "value", "rank", "heads"]
RULES = {name: label for label, name in LABELS.items()}
RANKING = ["role", "rank", *HEAD, "tasks", "mean", "control_mean", "beyond", *RULES]


def head_card(tables: Mapping[str, pd.DataFrame], task: str, layer: int, head: int) -> pd.DataFrame:
    """Every value of one head in the tables: table, about, quantity, value, rank, heads; a row per value.

    `tables` maps names to tables; tables without the columns layer and head do not count, and of a table with a column
    `task` only the rows of `task` do. `about` joins the seeds and the text columns of a row, such as state and role. A
    table with columns <quantity>_status, such as the atlas of heads, is about its seeds alone and gives the status in
    the place of a missing value. `rank` is the place of a number in its column among the `heads` with the same `about`,
    1 for the highest. Raises InputError if no table has the head.
    """
    parts = [_of_table(table, task, layer, head).assign(table=name) for name, table in tables.items()]
    card = pd.concat([part for part in parts if len(part)] or [pd.DataFrame(columns=CARD)], ignore_index=True)
    if card.empty:
        raise InputError(
            f"no table has layer {layer}, head {head} of task {task!r}: choose from {_held(tables.values())}"
        )
    return card[CARD]


def _held(tables: Iterable[pd.DataFrame]) -> str:
    """The layers, heads and tasks that tables of heads have, in words."""
    of_heads = [table for table in tables if {*HEAD} <= {*table.columns}]
    parts = []
    for name in (*HEAD, "task"):
        columns = [table[name].dropna().convert_dtypes() for table in of_heads if name in table]
        found = sorted({value for column in columns for value in column})
        parts.append(f"{name}s {', '.join(map(str, found)) or 'none'}")
    return "; ".join(parts)


def _of_table(table: pd.DataFrame, task: str, layer: int, head: int) -> pd.DataFrame:
    """The rows of one table on the card, without its name."""
    if not {*HEAD} <= {*table.columns}:
        return pd.DataFrame(columns=CARD)
    chosen = table[table["task"] == task] if "task" in table else table
    statuses = [name for name in chosen if name.endswith(STATUS)]
    keys = [name for name in chosen if name in BESIDE or (not statuses and _is_key(name, chosen[name]))]
    about = chosen[keys].map(str).agg(", ".join, axis=1) if keys else pd.Series("", chosen.index)
    values = chosen.drop(columns=[*keys, *statuses, *HEAD, "task"], errors="ignore")
    own = (chosen["layer"] == layer) & (chosen["head"] == head)
    if not own.any():
        return pd.DataFrame(columns=CARD)
    parts = []
    for quantity, column in values.items():
        number = pd.to_numeric(column, errors="coerce") if _is_number(column) else None
        groups = None if number is None else number.groupby(about)
        value = column[own].astype(object)
        for status in _status_of(quantity, statuses):
            value = value.where(value.notna(), chosen.loc[own, status])
        rows = pd.DataFrame({"about": about[own], "quantity": quantity, "value": value})
        rows["rank"] = groups.rank(ascending=False, method="min")[own] if groups is not None else pd.NA
        rows["heads"] = groups.transform("count")[own] if groups is not None else pd.NA
        parts.append(rows.assign(place=range(len(rows))))
    return pd.concat(parts).sort_values("place", kind="stable").astype({"rank": "Int64", "heads": "Int64"})


def _is_key(name: str, column: pd.Series) -> bool:
    """Whether a column of text says what a row is about."""
    return _is_text(column) and name not in OUTCOMES


def _status_of(quantity: str, statuses: list[str]) -> list[str]:
    """The column that says why a quantity is missing: of those whose names it begins with, the longest."""
    found = [name for name in statuses if f"{quantity}_".startswith(name.removesuffix("status"))]
    return sorted(found, key=len)[-1:]


def _is_text(column: pd.Series) -> bool:
    return not (_is_label(column) or _is_number(column))


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not _is_label(column)


def _is_label(column: pd.Series) -> bool:
    """Whether a column has only True, False and missing values, whatever its type."""
    return pd.api.types.infer_dtype(column, skipna=True) == "boolean" or pd.api.types.is_bool_dtype(column)


def ranking(table: pd.DataFrame, top: int = 3) -> pd.DataFrame:
    """The `top` heads of each role by their distance from the control, without a threshold: the columns RANKING.

    `table` is that of `controlled_table`, for one task or with a column task. The rank is that of `beyond`, the mean
    score minus the mean of the control over the tasks in which the head can be tested; `published`, `audited` and
    `controlled` count the tasks in which the head has the label. Raises InputError for a table without control columns
    or with several states.
    """
    if "control_mean" not in table:
        raise InputError("the role table has no column control_mean: make it with controlled_table")
    if "state" in table and table["state"].nunique() > 1:
        raise InputError("the role table is of several states: choose one")
    tested = table[table["assigned"].notna()]
    labels = tested.assign(**{name: tested[label].fillna(False).astype(int) for name, label in RULES.items()})
    summaries = {"tasks": ("assigned", "size")}
    summaries |= {name: (name, "mean") for name in ("mean", "control_mean")}
    summaries |= {name: (name, "sum") for name in RULES}
    heads = labels.groupby(["role", *HEAD], sort=False).agg(**summaries).reset_index()
    heads["beyond"] = heads["mean"] - heads["control_mean"]
    heads["rank"] = heads.groupby("role")["beyond"].rank(ascending=False, method="first").astype(int)
    order = pd.Categorical(heads["role"], table["role"].unique())
    found = heads.assign(order=order).sort_values(["order", "rank"], kind="stable")
    return found.loc[found["rank"] <= top, RANKING].reset_index(drop=True)
