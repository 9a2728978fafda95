"""The atlas of heads: every measurement of a head in one row per task, fine-tuning seed and head."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import xarray as xr

from analysis.errors import InputError
from analysis.roles import UNIFORM
from analysis.statistics.controls import share_of_control
from analysis.statistics.effects import AUC, REFITTED
from analysis.statistics.roles import LABELS, PUBLISHED_ROLES, ROLES

RUN, HEAD = ["task", "seed"], ["layer", "head"]
KEYS = [*RUN, *HEAD]
MEASURED = "measured"
MAPS = ("attention", "effective", "attribution")
STATE = "finetuned"
OF_ROLE = ("mean", *LABELS.values(), "control_share")
SURFACE = ("next", "previous", "self", "cls", "sep", "punct", "entropy")


class Measure(NamedTuple):
    """One column of the atlas: its name, the saved table it comes from, and how to read it.

    `read` returns rows of heads, with the value in a column `value` and those of KEYS that the table has.
    """

    name: str
    table: str
    read: Callable[[pd.DataFrame], pd.DataFrame]


def _column(name: str, **limits: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Reads one column of the rows in which other columns have the given values."""

    def read(table: pd.DataFrame) -> pd.DataFrame:
        for column, value in limits.items():
            table = table[table[column] == value]
        keys = [key for key in KEYS if key in table]
        return table[keys].assign(value=table[name])

    return read


def _main_pattern(name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Reads the pattern that most maps of a head show, or its share of the maps."""

    def read(table: pd.DataFrame) -> pd.DataFrame:
        rows = table[table["state"] == STATE]
        first = rows.sort_values("share", ascending=False, kind="stable").drop_duplicates(["task", *HEAD])
        return first[["task", *HEAD]].assign(value=first[name])

    return read


def _best_relation(name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Reads the relation for which a head is the best head and most accurate, or its accuracy there."""

    def read(table: pd.DataFrame) -> pd.DataFrame:
        single = table[~table["relation"].str.startswith("all")]
        first = single.sort_values("accuracy", ascending=False, kind="stable").drop_duplicates(HEAD)
        return first[HEAD].assign(value=first[name])

    return read


def _disabled(table: pd.DataFrame) -> pd.DataFrame:
    """Reads the change when a head is uniform: of accuracy, or of the task's own metric if accuracy is missing."""
    heads = table[table["unit"] == "head"].astype(dict.fromkeys(HEAD, int))
    first = heads.assign(other=heads["metric"] != "accuracy").sort_values("other", kind="stable")
    rows = first.drop_duplicates(KEYS)
    return rows[KEYS].assign(value=rows["change"])


def _pruning_rank(table: pd.DataFrame) -> pd.DataFrame:
    """Reads the rank of a head in pruning by normalised importance; 1 is pruned first and has the lowest importance."""
    rows = table[(table["granularity"] == "example") & table["normalised"].astype(bool)]
    return rows[KEYS].assign(value=rows.groupby(RUN)["importance"].rank(method="first"))


MEASURES = (
    *(Measure(f"surface_{name}", "clark_surface", _column(name)) for name in SURFACE),
    Measure("pattern", "kovaleva_pattern_heads", _main_pattern("pattern")),
    Measure("pattern_share", "kovaleva_pattern_heads", _main_pattern("share")),
    Measure("cosine", "kovaleva_cosine", _column("mean", padding="cropped")),
    Measure("best_relation", "clark_best_heads", _best_relation("relation")),
    Measure("best_relation_accuracy", "clark_best_heads", _best_relation("accuracy")),
    Measure("ablation_auc", "michel_effects", _column("effect", metric=AUC)),
    Measure("ablation_refitted_loss", "michel_effects", _column("effect", metric=REFITTED)),
    Measure("ablation_loss", "michel_ablation", _column("change", metric="loss")),
    Measure("ablation_accuracy", "michel_ablation", _column("change", metric="accuracy")),
    Measure("disable", "kovaleva_disable", _disabled),
    Measure(
        "importance", "michel_importance",
        _column("importance", granularity="example", normalised=False),
    ),
    Measure("pruning_rank", "michel_importance", _pruning_rank),
)  # fmt: skip


def atlas_table(
    heads: pd.DataFrame,
    roles: Mapping[str, pd.DataFrame],
    tables: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """Everything measured of every head: KEYS, then for each role and map OF_ROLE and a status, then MEASURES.

    `heads` has the rows, KEYS. `roles` holds what `run_roles` or `map_roles` give for each of MAPS; `tables` holds the
    saved tables that MEASURES names, if they exist. A column is called <map>_<role>_<quantity> or as its measure.
    Beside it, <map>_<role>_status or <measure>_status says "measured", or why a value is missing. Tables without a task
    are about the pre-trained encoder and hold for every run. Raises InputError if a table has a head twice.
    """
    rows = heads[KEYS].reset_index(drop=True)
    parts = [rows]
    for source in MAPS:
        parts += [_of_role(rows, roles.get(source), source, role) for role in role_order()]
    parts += [_of_measure(rows, measure, tables.get(measure.table)) for measure in MEASURES]
    return pd.concat(parts, axis=1)


def role_order() -> list[str]:
    """The roles in the order of the atlas: new ones last, before them those with a uniform control."""
    return sorted(ROLES, key=lambda role: (role not in PUBLISHED_ROLES, ROLES[role].control == UNIFORM))


def wanted(tasks: Sequence[str]) -> set[str]:
    """The names of the saved tables that the synthesis reads, if they exist."""
    of_maps = {f"roles-{source}-{task}-{STATE}" for source in MAPS[1:] for task in tasks}
    of_attention = {f"roles-{task}-{STATE}" for task in tasks}
    return {measure.table for measure in MEASURES} | of_maps | of_attention | {"pascual_survival"}


def _of_role(heads: pd.DataFrame, table: pd.DataFrame | None, source: str, role: str) -> pd.DataFrame:
    """The columns of one role on one map."""
    names = {quantity: f"{source}_{role}_{quantity}" for quantity in (*OF_ROLE, "status")}
    if table is None:
        lost = f"no table roles-{source}"
        return pd.DataFrame({name: pd.NA for name in names.values()}, heads.index).assign(
            **{names["status"]: lost}
        )
    rows = _joined(heads, table[table["role"] == role].rename(columns=LABELS), f"roles on {source}")
    absent = rows["mean"].isna() & rows["status"].isna()
    reason = rows["status"].replace("tested", MEASURED).mask(absent, "not in this run")
    return rows.assign(status=reason)[[*names]].rename(columns=names)


def _of_measure(heads: pd.DataFrame, measure: Measure, table: pd.DataFrame | None) -> pd.DataFrame:
    """The column of one measure and its status."""
    name, status = measure.name, f"{measure.name}_status"
    if table is None or table.empty:
        lost = f"no table {measure.table}"
        return pd.DataFrame({name: pd.NA, status: lost}, heads.index)
    read = measure.read(table)
    pretrained = "" if "task" in read else " (pre-trained encoder)"
    value = _joined(heads, read, measure.table)["value"]
    lost = "not in this run" if "task" in read else "not of this head"
    known = value.notna().map({True: MEASURED + pretrained, False: lost})
    return pd.DataFrame({name: value, status: known})


def _joined(heads: pd.DataFrame, table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of a table in the order of the heads; a table with one run per task belongs to the first seed."""
    of_run = table.assign(seed=heads["seed"].iloc[0]) if "task" in table and "seed" not in table else table
    keys = [key for key in KEYS if key in of_run]
    repeated = of_run.duplicated(keys)
    if repeated.any():
        row = of_run.loc[repeated].iloc[0]
        raise InputError(
            f"{name} has head {row['layer']}-{row['head']} twice: delete it and run its notebook again"
        )
    return heads.merge(of_run, on=keys, how="left", validate="many_to_one")


def run_roles(
    scores: Mapping[tuple[str, int], xr.DataArray],
    controls: Mapping[tuple[str, int], xr.DataArray],
    labels: pd.DataFrame,
) -> pd.DataFrame:
    """Roles on attention in every run: task, seed, role, layer, head, mean, control_share, the three labels, status.

    `scores` and `controls` are composed roles by task and seed, and `labels` the table of labels of all runs.
    """
    parts = []
    for run, composed in scores.items():
        means = {"mean": composed.mean("sequence"), "control": controls[run].mean("sequence")}
        table = xr.Dataset(
            {name: mean.reset_coords(drop=True) for name, mean in means.items()}
        ).to_dataframe()
        task, seed = run
        parts.append(table.reset_index().assign(task=task, seed=seed))
    table = pd.concat(parts, ignore_index=True)
    joined = table.merge(labels.dropna(subset="seed").astype({"seed": int}), on=[*KEYS, "role"], how="left")
    tested = joined["assigned_corrected"].notna()
    status = tested.map({True: MEASURED, False: "untestable: too few sequences, or constant scores"})
    return joined.assign(control_share=share_of_control(joined["control"], joined["mean"]), status=status)


def map_roles(tables: Mapping[str, pd.DataFrame | None]) -> pd.DataFrame | None:
    """The role tables of another map as one table with a column for the task; None if there is none."""
    saved = [table.assign(task=task) for task, table in tables.items() if table is not None]
    return pd.concat(saved, ignore_index=True) if saved else None


def role_scores(
    table: pd.DataFrame, roles: Sequence[str], response: str, source: str = "attention"
) -> pd.DataFrame:
    """KEYS, one measure of the atlas as `response`, and the mean score of each role on a map by the role's name."""
    names = {f"{source}_{role}_mean": role for role in roles} | {response: "response"}
    numbers = table[[*names]].apply(pd.to_numeric).rename(columns=names)
    return pd.concat([table[KEYS], numbers], axis=1)
