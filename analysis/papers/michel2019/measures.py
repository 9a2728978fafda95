"""What each claim of Michel 2019 measures: a frame of units from the tables and scores of its notebooks."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.statistics.claims import frame, not_applicable, of_table, read_claims
from analysis.statistics.effects import AUC
from analysis.statistics.intervals import draws_interval
from analysis.texts.tasks import task_named

FOLDER = Path(__file__).parent
CLAIMS = read_claims(FOLDER / "claims.yaml")
IMPORTANCE, SCORE, REESTIMATED, RANDOM = "importance", "single-head score", "re-estimated", "random"  # orders
LARGE = 16  # sequences per batch from which on pruning pays (Michel 2019)
UNTRAINED = "no run trained successfully"


def published(name: str) -> pd.DataFrame:
    """A table of published values by its name; published.md says what each holds and where it comes from."""
    return pd.read_csv(FOLDER / f"published_{name}.csv")


def measures(
    harmless: pd.DataFrame,
    transfer: pd.DataFrame,
    prunable: pd.DataFrame,
    means: pd.DataFrame,
    speed: pd.DataFrame,
    gains: Mapping[str, Float[np.ndarray, " draw"]],
) -> dict[str, pd.DataFrame]:
    """The frame of every claim by its id, from what the functions of `ablation`, `pruning` and `speed` give."""
    return {
        "M1": harmless_share(harmless, "head"),
        "M3": harmless_share(harmless, "layer"),
        "M4": agreement_of_effects(transfer),
        "M5": prunable_share(prunable),
        "M6": gain_of_importance(means),
        "M7": speed_of_half(speed),
        "M8": gain_in_evenness(gains),
    }


def main_metric(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the first metric of their task."""
    return table[table["metric"] == table["task"].map(lambda task: task_named(task).metrics[0])]


def order_kinds(orders: pd.Series) -> pd.Series:
    """The names of orders without the number that tells random ones apart."""
    return orders.str.replace(r" \d+$", "", regex=True)


def harmless_share(harmless: pd.DataFrame, unit: str) -> pd.DataFrame:
    """M1, M3: the share of heads, or of layers reduced to one, without a loss above a fifth of the lead, by task."""
    rows = of_table(harmless[harmless["unit"] == unit], "task", runs="runs")
    return rows.assign(reason=np.where(rows["value"].isna(), UNTRAINED, ""))


def agreement_of_effects(transfer: pd.DataFrame) -> pd.DataFrame:
    """M4: Spearman's correlation of AUC effects on two sets; the control is that of halves of one set."""
    rows = transfer[(transfer["metric"] == AUC) & (transfer["correlation"] == "Spearman")]
    halves = rows["data_a"].str.contains(",")
    if halves.all():
        return not_applicable("no two data sets of one question")
    control = rows.loc[halves, ["value", "low", "high"]].to_numpy(float)[:1]
    units = of_table(rows[~halves])
    return units.assign(**dict(zip(["control", "control_low", "control_high"], control.T, strict=True)))


def prunable_share(prunable: pd.DataFrame) -> pd.DataFrame:
    """M5: the largest share of heads that is pruned by importance without harm at any step; control: random orders."""
    kinds = order_kinds(prunable["order"])
    values = prunable.groupby([kinds, "task"], sort=False)[["share", "low", "high"]].mean()
    if IMPORTANCE not in values.index:
        return not_applicable(UNTRAINED)
    control = values.loc[RANDOM].set_axis(["control", "control_low", "control_high"], axis=1)
    units = of_table(values.loc[IMPORTANCE].reset_index(), "task", "share").join(control, on="unit")
    return units.assign(reason=np.where(units["value"].isna(), UNTRAINED, ""))


def gain_of_importance(means: pd.DataFrame) -> pd.DataFrame:
    """M6: the metric of pruning by importance minus that by single-head effects, mean of the steps, by task."""
    if means.empty:
        return not_applicable(UNTRAINED)
    gain = means[IMPORTANCE] - means[SCORE]
    return frame({task: draws_interval(draws.to_numpy()) for task, draws in gain.groupby("task", sort=False)})


def speed_of_half(speed: pd.DataFrame) -> pd.DataFrame:
    """M7: the speed with half of the heads over that with all, mean of the batch sizes from LARGE on, by encoder."""
    rows = speed[speed["batch"] >= LARGE]
    if rows.empty:
        return not_applicable(f"no times at {LARGE} sequences at once or more")
    means = rows.groupby("model", sort=False)[["speedup", "low", "high"]].mean()
    return of_table(means.reset_index(), "model", "speedup")


def gain_in_evenness(gains: Mapping[str, Float[np.ndarray, " draw"]]) -> pd.DataFrame:
    """M8: how much more of its lead the final classifier keeps than the first one with a lead, by task."""
    rows = frame({task: draws_interval(draws) for task, draws in gains.items()})
    return rows.assign(reason=np.where(rows["value"].isna(), f"{UNTRAINED} early on", ""))
