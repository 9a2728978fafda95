"""Michel's measures on small tables with obvious answers, and the published numbers."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.michel2019.measures import (
    CLAIMS,
    agreeing,
    as_changes,
    later,
    one_head,
    prunable,
    published,
    rising,
    single_heads,
    spared,
    steadier,
)
from analysis.statistics.claims import judge

BY_ID = {claim.id: claim for claim in CLAIMS}
LABELS = {"mrpc": np.arange(100) % 2}  # the constant answer gets .5; the margin of a lead is .1


def verdict(name: str, frame: pd.DataFrame) -> str:
    claim = BY_ID[name]
    return judge(frame, claim.relation, claim.bound, claim.units).verdict


def removed(change, low, high, baseline: float = 0.9) -> pd.DataFrame:
    """Changes of accuracy; a lead of .4 makes losses up to .08 count as none."""
    return pd.DataFrame({"task": "mrpc", "seed": 0, "metric": "accuracy", "baseline": baseline,
                         "change": change, "low": low, "high": high})  # fmt: skip


def test_no_loss_is_one_of_at_most_a_fifth_of_the_lead():
    table = removed([-0.08, -0.09, -0.07, 0], [-0.08, -0.2, -0.1, np.nan], [0, -0.085, 0, np.nan])
    found = spared(table, LABELS)
    assert found[["value", "low", "high"]].to_numpy().tolist() == [
        [True, True, True], [False, False, False], [True, False, True], [True, False, True],
    ]  # fmt: skip
    assert single_heads(found)[["value", "low", "high", "n"]].to_numpy().tolist() == [[0.75, 0.25, 0.75, 4]]
    assert spared(removed([0], [0], [0], baseline=0.58), LABELS).empty  # at chance
    assert verdict("M1", single_heads(found)) == "undecided"
    assert verdict("M1", single_heads(found[:1])) == "holds"
    assert verdict("M1", single_heads(found[1:2])) == "does not hold"
    assert verdict("M1", single_heads(found[:0])) == "untestable"


def test_layers_count_as_a_mean_over_tasks():
    found = pd.DataFrame(
        {"task": ["a", "a", "a", "b"], "value": [1, 1, 0, 0], "low": [1, 0, 0, 0], "high": 1}
    )
    assert one_head(found)[["value", "low", "high"]].to_numpy()[0] == pytest.approx([1 / 3, 1 / 6, 1])
    assert verdict("M3", one_head(found)) == "undecided"


def test_prunable_share_is_one_of_heads_and_ends_at_the_first_loss():
    """28 of 72 heads are 39 %, though they are four of ten steps."""
    heads = [72 * step // 10 for step in range(11)]
    change = np.array([0, 0, 0, 0, 0, -0.2, 0, 0, 0, 0, -0.4])
    curves = pd.DataFrame({"task": "mrpc", "seed": 0, "order": "importance", "heads": heads, "metric": "accuracy",
                           "value": 0.9 + change, "change": change, "low": 0.87 + change,
                           "high": 0.93 + change})  # fmt: skip
    late = curves.assign(order="random 0", value=0.7, change=-0.2).where(
        curves["heads"] > 0, curves.assign(order="random 0")
    )
    steps = spared(as_changes(pd.concat([curves, late])), LABELS)
    frame = prunable(steps)
    assert frame[["value", "low", "high"]].to_numpy()[0] == pytest.approx([28 / 72] * 3)
    assert frame[["control", "n"]].to_numpy()[0].tolist() == [0, 10]
    assert verdict("M5", frame) == "does not hold"


def test_rises_need_one_beyond_chance():
    table = pd.DataFrame(
        {"task": ["mrpc", "qqp"], "variants": 12, "raised": 5, "raised_by_chance": 7.0, "beyond": [0, 1],
         "largest": ["0-1", "2-3"], "rise": [0.03, 0.02], "low": [-0.01, 0.001], "high": [0.07, 0.03],
         "highest_end": [0.07, 0.04], "p": [0.3, 0.01]}
    )  # fmt: skip
    assert verdict("M2", rising(table)) == "holds"
    assert verdict("M2", rising(table[:1])) == "undecided"
    assert rising(table)["high"].tolist() == [0.07]


def test_effects_agree_only_where_values_and_ranks_of_loss_and_accuracy_do():
    keys = [(metric, name) for metric in ("loss", "accuracy") for name in ("Pearson", "Spearman")]
    table = pd.DataFrame(keys, columns=["metric", "correlation"]).assign(
        data_a="mrpc", data_b="qqp", value=0.6, low=0.2, high=0.8, largest="2-9", heads=72
    )
    halves = table.assign(data_a="mrpc, one half", value=[0.8, 0.5, 0.7, 0.4])
    both = pd.concat([table, halves], ignore_index=True)
    assert verdict("M4", agreeing(both)) == "holds"
    assert agreeing(both)["control"].tolist() == [0.8, 0.5, 0.7, 0.4]
    for number in range(4):  # each of them counts
        one_lower = both.assign(low=both["low"].where(both.index != number, -0.1))
        assert verdict("M4", agreeing(one_lower)) == "undecided"
    assert verdict("M4", agreeing(halves)) == "untestable"


def test_importance_prunes_better_on_the_mean_over_tasks():
    index = pd.MultiIndex.from_product([["a", "b"], range(41)], names=["task", "replicate"])
    values = np.tile([0.2, *[0.1, 0.3] * 20], 2) + np.repeat([0.0, 0.1], 41)
    means = pd.DataFrame(
        {"importance": values, "single-head score": 0.0, "random 0": 0.0, "random 1": 0.2}, index
    )
    frame = steadier(means)
    assert frame["value"].to_numpy()[:2] == pytest.approx([0.25, 0.15])
    assert frame["control"].unique() == pytest.approx([0.15])
    assert verdict("M6", frame) == "holds"
    assert verdict("M6", steadier(pd.DataFrame())) == "untestable"


def test_few_heads_matter_later_in_every_task_or_there_is_no_test():
    gain = np.array([0.2, *[0.1, 0.3] * 20])
    assert verdict("M8", later({"a": gain, "b": gain}, 10)) == "holds"
    assert verdict("M8", later({"a": gain, "b": -gain}, 10)) == "does not hold"
    assert verdict("M8", later({"a": gain, "b": np.full(41, np.nan)}, 10)) == "untestable"
    assert verdict("M8", later({}, 10)) == "untestable"


def test_published_importance_has_unit_norm_and_the_known_changes():
    heads = published("single_heads")
    norms = (heads["importance"] ** 2).groupby(heads["layer"]).sum()
    assert norms.to_numpy() == pytest.approx(1, abs=0.05)  # two decimals are printed
    assert 100 * heads["change"].mean() == pytest.approx(-0.074, abs=0.001)
    assert ((heads["change"] > 0).sum(), len(heads)) == (55, 144)
    assert heads.loc[heads["change"].idxmin(), ["layer", "head"]].tolist() == [6, 0]
