import numpy as np
import pandas as pd
import pytest

from analysis.statistics.claims import claim_table
from analysis.synthesis.agreement import ACROSS_MAPS, AGREEMENT_COLUMNS, IMPORTANCE, POOLED
from analysis.synthesis.measures import (
    ABLATION,
    CLAIMS,
    TUNING,
    against_random,
    measured,
    order_alike,
    survive_on_attribution,
)
from analysis.synthesis.measures import IMPORTANCE as GRADIENT
from analysis.synthesis.sets import KINDS, SET_COLUMNS


def sets(**excess: float) -> pd.DataFrame:
    rows = [
        {"task": KINDS[0], "metric": "auc", "label": "corrected", "role": role, "excess": value, "low": value - 0.01,
         "high": value + 0.01, "status": "tested" if np.isfinite(value) else "not applicable in every task"}
        for role, value in excess.items()
    ]  # fmt: skip
    others = [row | {"metric": "loss", "excess": -1.0} for row in rows]
    return pd.DataFrame([*rows, *others]).reindex(columns=SET_COLUMNS)


def agreements(kappa: float = 0.8, importance: float = 0.7, tuning: float = -0.3) -> pd.DataFrame:
    rows = []
    for task in ("mrpc", "qqp", POOLED):
        for second, value in ((GRADIENT, importance), (TUNING, tuning)):
            for statistic, share in (("spearman", 1), ("kendall", 0.7), ("spearman within layers", 0.5)):
                rows.append({"kind": IMPORTANCE, "task": task, "first": ABLATION, "second": second, "runs": 3,
                             "statistic": statistic, "value": share * value})  # fmt: skip
    for role in ("local", "syntactic", "cls"):
        rows.append({"kind": ACROSS_MAPS, "task": POOLED, "first": "attention", "second": "attribution", "role": role,
                     "statistic": "kappa", "value": kappa})  # fmt: skip
    table = pd.DataFrame(rows)
    return table.assign(low=table["value"] - 0.05, high=table["value"] + 0.05).reindex(
        columns=AGREEMENT_COLUMNS
    )


def judged(of_sets: pd.DataFrame, of_agreement: pd.DataFrame) -> pd.DataFrame:
    frames = {
        "S1": against_random(of_sets),
        "S2": order_alike(of_agreement, ABLATION, GRADIENT),
        "S3": survive_on_attribution(of_agreement),
        "S5": order_alike(of_agreement, ABLATION, TUNING),
    }
    return claim_table(CLAIMS, frames).set_index("claim")


def test_every_claim_has_its_units_and_controls():
    table = judged(sets(local=0.05, syntactic=0.03, block=np.nan, match=0.2, cls=9.0), agreements())
    assert table["estimate"].to_dict() == pytest.approx({"S1": 0.28 / 3, "S2": 0.7, "S3": 0.8, "S5": -0.3})
    assert table["verdict"].tolist() == ["supported", "supported", "supported", "not supported"]
    assert table["units"].dropna().to_dict() == {"S1": 3, "S3": 2}
    assert table.loc["S1", "reason"] == "block (pairs of texts): not applicable in every task"
    assert table.loc["S1", "smallest_unit"] == "syntactic (pairs of texts)"
    assert table.loc[["S2", "S5"], "reference"].tolist() == pytest.approx([0.35, -0.15])
    assert table.loc["S3", "control"] == 0
    assert table.loc["S2", "runs"] == 3
    chapter_6 = pd.DataFrame({"task": ["mrpc", POOLED], "value": [0.1, 0.2]})
    chapter_6 = chapter_6.assign(low=[np.nan, 0.0], high=[np.nan, 0.4])
    assert order_alike(agreements(), ABLATION, GRADIENT, chapter_6)["value"].tolist() == [0.2]


def test_roles_that_matter_more_and_less_are_mixed_and_missing_tables_not_applicable():
    assert judged(sets(local=0.05, match=-0.05), agreements()).loc["S1", "verdict"] == "mixed"
    table = judged(sets().head(0), agreements().head(0))
    assert table["verdict"].eq("not applicable").all()
    low = judged(sets(local=0.1), agreements(0.4, 0.3))
    assert low.loc[["S2", "S3"], "verdict"].eq("not supported").all()


def test_measures_of_the_atlas_grow_with_what_matters():
    row = {"task": "mrpc", "seed": 0, "layer": 1, "head": 2, "ablation_auc": "0.2", "ablation_loss": 0.1}
    row |= {"ablation_refitted_loss": "0.3", "importance": 0.4, "disable": -0.3, "cosine": 0.9}
    row = measured(pd.DataFrame([row])).iloc[0]
    assert row[["ablation_auc", "disable_fall", "tuning"]].tolist() == pytest.approx([0.2, 0.3, 0.1])
