"""What each claim of the synthesis measures: a frame of units from the tables of sets and of agreement."""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.statistics.claims import CONTROL, not_applicable, of_table, read_claims
from analysis.statistics.effects import AUC
from analysis.statistics.roles import COARSE
from analysis.synthesis import agreement, sets
from analysis.synthesis.agreement import POOLED

# Those on matching heads, X1 to X14, are measured in matching_measures.
CLAIMS = [claim for claim in read_claims(Path(__file__).with_name("claims.yaml")) if claim.id[0] == "S"]
ABLATION, IMPORTANCE, TUNING = "ablation, AUC", "gradient importance", "change in fine-tuning"
NAMES = {
    "ablation_auc": ABLATION,
    "ablation_refitted_loss": "ablation, refitted loss",
    "ablation_loss": "ablation, loss",
    "disable_fall": "uniform head, accuracy",
    "importance": IMPORTANCE,
    "tuning": TUNING,
}
SET_ROLES = ("local", "syntactic", "block", "match")
ENDS = ["value", "low", "high"]


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """The atlas with every measure of NAMES as a number; larger means that a head matters or changes more."""
    number = {name: pd.to_numeric(table[name]) for name in ("disable", "cosine")}
    ready = {name: pd.to_numeric(table[name]) for name in NAMES if name in table}
    columns = pd.DataFrame(ready | {"disable_fall": -number["disable"], "tuning": 1 - number["cosine"]})
    return pd.concat([table[["task", "seed", "layer", "head"]], columns], axis=1)


def against_random(of_sets: pd.DataFrame) -> pd.DataFrame:
    """S1: the fall in AUC without all heads of a role, minus the mean of random sets, by role and kind of task."""
    rows = of_sets[of_sets["task"].isin(sets.KINDS) & (of_sets["metric"] == AUC)]
    rows = rows[(rows["label"] == "corrected") & rows["role"].isin(SET_ROLES)]
    if rows.empty:
        return not_applicable("not measured")
    frame = of_table(rows.assign(unit=rows["role"] + " (" + rows["task"] + ")"), "unit", "excess")
    return frame.assign(runs=1, reason=np.where(frame["value"].isna(), rows["status"], ""))


def order_alike(
    agreements: pd.DataFrame, first: str, second: str, chapter_6: pd.DataFrame | None = None
) -> pd.DataFrame:
    """S2, S5: the rank correlation of two measures over heads, mean over tasks; the reference is that within layers.

    The table `michel_importance_agreement` has the number of `chapter_6`, which S2 takes over.
    """
    rows = agreements[(agreements["first"] == first) & (agreements["second"] == second)]
    rows = rows[(rows["task"] == POOLED) & rows["value"].notna()].set_index("statistic")
    if rows.empty:
        return not_applicable(
            f"{first} and {second} were not measured in the same run that trained successfully"
        )
    within = rows.loc[agreement.WITHIN_LAYERS, ENDS].set_axis(CONTROL)
    frame = of_table(rows.loc[[agreement.SPEARMAN]], runs="runs").assign(**within)
    return frame if chapter_6 is None else frame.assign(**chapter_6.set_index("task").loc[POOLED, ENDS])


def survive_on_attribution(agreements: pd.DataFrame) -> pd.DataFrame:
    """S3: kappa of the labels of each coarse role between attention and attribution, mean over tasks."""
    rows = agreements[(agreements["kind"] == agreement.ACROSS_MAPS) & (agreements["second"] == "attribution")]
    rows = rows[(rows["task"] == POOLED) & rows["role"].isin(COARSE)].dropna(subset=ENDS)
    if rows.empty:
        return not_applicable("roles on attribution were not measured")
    return of_table(rows, "role").assign(control=0.0)
