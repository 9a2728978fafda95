"""Single heads: all that tables say of one, and which heads show a role most, whatever the threshold."""

from collections.abc import Mapping

import pandas as pd

from analysis.errors import InputError

HEAD = ["layer", "head"]
CARD = ["table", "about", "quantity", "value", "rank", "heads"]
RULES = {"published": "assigned", "audited": "assigned_audited", "controlled": "assigned_controlled"}
RANKING = ["role", "rank", *HEAD, "tasks", "mean", "control_mean", "beyond", *RULES]


def head_card(tables: Mapping[str, pd.DataFrame], task: str, layer: int, head: int) -> pd.DataFrame:
    """Everything that the tables say of one head: table, about, quantity, value, rank, heads; a row per value.

    `tables` maps names to tables with columns layer and head; where one has a column `task`, the rows of `task` count,
    and tables without layer and head are passed over. `about` is what the row is of: its text columns, such as state
    and role. `rank` is the place of a number among the `heads` that have one in the same column and about the same, 1
    for the highest. Raises InputError where no table has the head.
    """
    parts = [_of_table(table, task, layer, head).assign(table=name) for name, table in tables.items()]
    card = pd.concat([part for part in parts if len(part)] or [pd.DataFrame(columns=CARD)], ignore_index=True)
    if card.empty:
        raise InputError(f"no table has layer {layer}, head {head} of task {task!r}: see what they hold")
    return card[CARD]


def _of_table(table: pd.DataFrame, task: str, layer: int, head: int) -> pd.DataFrame:
    """The card's rows of one table, without its name."""
    if not {*HEAD} <= {*table.columns}:
        return pd.DataFrame(columns=CARD)
    chosen = table[table["task"] == task] if "task" in table else table
    keys = [
        name
        for name in chosen
        if _is_text(chosen[name]) and name not in ("task", "control", "status", "change")
    ]
    about = chosen[keys].astype(str).agg(", ".join, axis=1) if keys else pd.Series("", chosen.index)
    values = chosen.drop(columns=[*keys, *HEAD, "task"], errors="ignore")
    own = (chosen["layer"] == layer) & (chosen["head"] == head)
    if not own.any():
        return pd.DataFrame(columns=CARD)
    parts = []
    for quantity, column in values.items():
        number = pd.to_numeric(column, errors="coerce") if _is_number(column) else None
        groups = None if number is None else number.groupby(about)
        rows = pd.DataFrame({"about": about[own], "quantity": quantity, "value": column[own].astype(object)})
        rows["rank"] = groups.rank(ascending=False, method="min")[own] if groups is not None else pd.NA
        rows["heads"] = groups.transform("count")[own] if groups is not None else pd.NA
        parts.append(rows.assign(place=range(len(rows))))
    return pd.concat(parts).sort_values("place", kind="stable").astype({"rank": "Int64", "heads": "Int64"})


def _is_text(column: pd.Series) -> bool:
    return not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def ranking(table: pd.DataFrame, top: int = 3) -> pd.DataFrame:
    """The heads that show each role most, without a threshold: RANKING, the `top` of every role.

    `table` is that of `controlled_table`, of one task, or of several with a column task. Heads are ranked by `beyond`,
    the mean score minus the control's mean, over the tasks where they can be tested; `published`, `audited` and
    `controlled` count the tasks in which the head has the label. Raises InputError for a table without control columns,
    or of several states.
    """
    if "control_mean" not in table:
        raise InputError("the role table has no column control_mean: make it with controlled_table")
    if "state" in table and table["state"].nunique() > 1:
        raise InputError("the role table is of several states: choose one")
    tested = table[table["assigned"].notna()]
    labels = tested.assign(**{name: tested[label].fillna(False).astype(int) for name, label in RULES.items()})
    summaries = {
        "tasks": ("assigned", "size"),
        "mean": ("mean", "mean"),
        "control_mean": ("control_mean", "mean"),
    }
    summaries |= {name: (name, "sum") for name in RULES}
    heads = labels.groupby(["role", *HEAD], sort=False).agg(**summaries).reset_index()
    heads["beyond"] = heads["mean"] - heads["control_mean"]
    heads["rank"] = heads.groupby("role")["beyond"].rank(ascending=False, method="first").astype(int)
    order = pd.Categorical(heads["role"], table["role"].unique())
    found = heads.assign(order=order).sort_values(["order", "rank"], kind="stable")
    return found.loc[found["rank"] <= top, RANKING].reset_index(drop=True)
