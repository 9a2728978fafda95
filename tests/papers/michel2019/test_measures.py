import numpy as np
import pandas as pd
import pytest

from analysis.papers.michel2019 import measures
from analysis.papers.michel2019.measures import CLAIMS, published
from analysis.statistics.claims import claim_table

TOLERATED = pd.DataFrame(
    [("head", "mrpc", 0.9, 0.8, 1.0, 0.7, 3, None), ("head", "qqp", 0.8, 0.7, 0.9, 0.6, 3, None),
     ("head", "rte", *[np.nan] * 4, 0, measures.UNTRAINED), ("layer", "mrpc", 0.3, 0.2, 0.4, 0.1, 3, None)],
    columns=["unit", "task", "value", "low", "high", "shown", "runs", "reason"],
)  # fmt: skip
TRANSFER = pd.DataFrame(
    [("mrpc", "qqp", "auc", "Spearman", 0.4), ("mrpc, one half", "mrpc, the other half", "auc", "Spearman", 0.8),
     ("mrpc", "qqp", "loss", "Pearson", -0.5)],
    columns=["data_a", "data_b", "metric", "correlation", "value"],
).assign(low=lambda table: table["value"] - 0.1, high=lambda table: table["value"] + 0.1)  # fmt: skip
PRUNABLE = pd.DataFrame(
    [("mrpc", "importance", 0.5), ("mrpc", "random 0", 0.1), ("mrpc", "random 1", 0.3)],
    columns=["task", "order", "share"],
).assign(seed=0)
SHARE = PRUNABLE["share"]
PRUNABLE = PRUNABLE.assign(shown=SHARE / 2, low=SHARE - 0.05, high=SHARE + 0.05)
SPEED = pd.DataFrame({"model": ["minilm"] * 3, "batch": [1, 16, 64], "speedup": [0.9, 1.1, 1.3]})
SPEED = SPEED.assign(low=SPEED["speedup"] - 0.05, high=SPEED["speedup"] + 0.05)
INDEX = pd.MultiIndex.from_product([["a", "b"], range(41)], names=["task", "replicate"])
MEANS = pd.DataFrame({"importance": np.tile([0.2, *[0.19, 0.21] * 20], 2), "single-head score": 0.0}, INDEX)
GAINS = {"a": np.array([0.2, *[0.1, 0.3] * 20]), "b": np.full(41, np.nan)}


def test_every_claim_has_its_value_and_reasons_name_tasks_that_did_not_train():
    table = claim_table(CLAIMS, {
        "M1": measures.harmless_share(TOLERATED, "head"),
        "M3": measures.harmless_share(TOLERATED, "layer"),
        "M4": measures.agreement_of_effects(TRANSFER),
        "M5": measures.prunable_share(PRUNABLE),
        "M6": measures.gain_of_importance(MEANS),
        "M7": measures.speed_of_half(SPEED),
        "M8": measures.gain_in_evenness(GAINS),
    }).set_index("claim")  # fmt: skip
    expected = {"M1": 0.85, "M3": 0.3, "M4": 0.4, "M5": 0.5, "M6": 0.2, "M7": 0.3, "M8": 0.2}
    assert table["estimate"].to_dict() == pytest.approx(expected)
    assert table.index[table["verdict"] == "supported"].tolist() == ["M1", "M4", "M5", "M6", "M8"]
    half = np.hypot(0.1, 0.1) / 2
    assert table.loc["M7", ["low", "high"]].tolist() == pytest.approx([0.3 - half, 0.3 + half])
    assert table.loc["M7", ["verdict", "reason"]].tolist() == ["not applicable", "times of one machine"]
    assert table.loc["M1", ["runs", "reason"]].tolist() == [3, "rte: no run trained successfully"]
    assert table.loc["M8", "reason"] == "b: no run trained successfully early on"
    assert table.loc[["M1", "M3", "M4"], "reference"].tolist() == pytest.approx([0.65, 0.1, 0.8])
    assert table.loc["M5", "control"] == pytest.approx(0.2)


def test_without_sets_runs_or_large_batches_claims_are_not_applicable():
    alone = TRANSFER[TRANSFER["data_a"].str.contains(",")]
    unmeasured = (
        measures.agreement_of_effects(alone), measures.prunable_share(PRUNABLE.head(0)),
        measures.gain_of_importance(pd.DataFrame()), measures.speed_of_half(SPEED.head(1)),
        measures.gain_in_evenness({}),
    )  # fmt: skip
    for units in unmeasured:
        assert units["value"].isna().all()
        assert units["reason"].all()


def test_published_importance_has_unit_norm_and_the_known_changes():
    heads = published("single_heads")
    norms = (heads["importance"] ** 2).groupby(heads["layer"]).sum()
    assert norms.to_numpy() == pytest.approx(1, abs=0.05)  # two decimals are printed
    assert 100 * heads["change"].mean() == pytest.approx(-0.074, abs=0.001)
    assert ((heads["change"] > 0).sum(), len(heads)) == (55, 144)
    assert heads.loc[heads["change"].idxmin(), ["layer", "head"]].tolist() == [6, 0]
