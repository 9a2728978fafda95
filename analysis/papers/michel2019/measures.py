"""What each claim of Michel 2019 measures: a frame of units from the tables and scores of its notebooks."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis import tables
from analysis.statistics.claims import CONTROL, frame, not_applicable, of_table, read_claims
from analysis.statistics.effects import AUC
from analysis.statistics.intervals import draws_interval
from analysis.texts.tasks import task_named

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
published = partial(tables.published, Path(__file__).parent)
IMPORTANCE, SCORE, REESTIMATED, RANDOM = "importance", "single-head score", "re-estimated", "random"  # orders
LARGE = 16  # sequences per batch from which on pruning pays (Michel 2019)
UNTRAINED = "no run trained successfully"


def published_course(task: str, order: str) -> pd.DataFrame:
    """The replication's curve of one order, with share (pruned heads of BERT-base) and kept (share of the lead).

    With all heads pruned the classifier gives the constant answer.
    """
    rows = published("pruning").query("task == @task and order == @order").sort_values("heads")
    constant = rows["value"].min() if len(rows) else 0.0
    lead = (rows["value"] - constant) / (rows["value"].head(1).sum() - constant)
    return rows.assign(share=rows["heads"] / rows["heads"].max(), kept=lead)


def main_metric(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the first metric of their task."""
    return table[table["metric"] == table["task"].map(lambda task: task_named(task).metrics[0])]


def order_kinds(orders: pd.Series) -> pd.Series:
    """The names of orders without the number that tells random ones apart."""
    return orders.str.replace(r" \d+$", "", regex=True)


def harmless_share(harmless: pd.DataFrame, unit: str) -> pd.DataFrame:
    """M1, M3: the share of heads, or of layers reduced to one, without a loss above a fifth of the lead, by task.

    The reference is the share for which the interval of the change shows it.
    """
    rows = harmless[harmless["unit"] == unit]
    return of_table(rows, "task", control="shown", runs="runs").assign(reason=[*rows["reason"].fillna("")])


def agreement_of_effects(transfer: pd.DataFrame) -> pd.DataFrame:
    """M4: Spearman's correlation of AUC effects on two sets; the reference is that of halves of one set."""
    rows = transfer[(transfer["metric"] == AUC) & (transfer["correlation"] == "Spearman")]
    halves = rows["data_a"].str.contains(",")
    if halves.all():
        return not_applicable("no two data sets of one question")
    control = rows.loc[halves, ["value", "low", "high"]].set_axis(CONTROL, axis=1).head(1)
    return of_table(rows[~halves]).assign(runs=1, **control.squeeze())


def prunable_share(prunable: pd.DataFrame) -> pd.DataFrame:
    """M5: the largest share of heads that is pruned by importance without harm at any step; control: random orders.

    The reason says how many can be shown to be pruned without harm.
    """
    by_kind = prunable.groupby([order_kinds(prunable["order"]), "task"], sort=False)
    values = by_kind[["share", "low", "high", "shown"]].mean().join(by_kind["seed"].nunique().rename("runs"))
    if IMPORTANCE not in values.index:
        return not_applicable(UNTRAINED)
    control = values.loc[RANDOM, ["share", "low", "high"]].set_axis(CONTROL, axis=1)
    rows = values.loc[IMPORTANCE].reset_index()
    reasons = [UNTRAINED if np.isnan(shown) else f"{shown:.2f} shown" for shown in rows["shown"]]
    return of_table(rows, "task", "share", runs="runs").join(control, on="unit").assign(reason=reasons)


def gain_of_importance(means: pd.DataFrame) -> pd.DataFrame:
    """M6: the metric of pruning by importance minus that by single-head effects, mean of the steps, by task."""
    if means.empty:
        return not_applicable(UNTRAINED)
    by_task = (means[IMPORTANCE] - means[SCORE]).groupby("task", sort=False)
    return frame({task: draws_interval(draws.to_numpy()) for task, draws in by_task}, runs=1)


def speed_of_half(speed: pd.DataFrame) -> pd.DataFrame:
    """M7: the speed-up without half of the heads, mean of the batch sizes from LARGE on, minus that of one sequence."""
    many, one = (
        speed[chosen].groupby("model", sort=False)[["speedup", "low", "high"]].mean()
        for chosen in (speed["batch"] >= LARGE, speed["batch"] == 1)
    )
    gain = (many["speedup"] - one["speedup"]).dropna()
    if gain.empty:
        return not_applicable(f"no times at one sequence and at {LARGE} or more")
    half = np.hypot(many["high"] - many["low"], one["high"] - one["low"])[gain.index] / 2
    ends = {"value": gain, "low": gain - half, "high": gain + half}
    return of_table(pd.DataFrame(ends).rename_axis("model").reset_index(), "model")


def gain_in_evenness(gains: Mapping[str, Float[np.ndarray, " draw"]]) -> pd.DataFrame:
    """M8: how much more of its lead the final classifier keeps than the first one with a lead, by task."""
    rows = frame({task: draws_interval(draws) for task, draws in gains.items()}, runs=1)
    return rows.assign(reason=np.where(rows["value"].isna(), f"{UNTRAINED} early on", ""))
