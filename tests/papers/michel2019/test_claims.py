"""Michel's claims on small tables with obvious answers, and the figures and sentences from such tables."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.michel2019 import published
from analysis.papers.michel2019.claims import CLAIMS
from analysis.papers.michel2019.draws import rows
from analysis.papers.michel2019.findings import Evidence, least_losses
from analysis.statistics.verdicts import claim_table

BY_ID = {claim.id: claim for claim in CLAIMS}
LEAST = pd.Series({"M1": 2.0, "M3": 2.5, "M5": 3.0})


def evidence(**measures: dict[str, list[float]]) -> Evidence:
    """Measures of claims by unit, the sample first."""
    parts = [
        rows(claim, unit, 12, np.array(values))
        for claim, units in measures.items()
        for unit, values in units.items()
    ]
    return Evidence(pd.concat(parts), least=LEAST)


def verdict(name: str, found: Evidence) -> str:
    return BY_ID[name].judge(found)[1].verdict


def test_every_claim_is_complete():
    assert [*BY_ID] == [f"M{number}" for number in range(1, 9)]
    assert all(" n: " in claim.definition and claim.published and claim.source for claim in CLAIMS)


def test_without_tables_every_claim_is_untestable():
    empty = Evidence(pd.DataFrame(columns=["claim", "unit", "n", "replicate", "value"]))
    assert (claim_table(CLAIMS, empty)["verdict"] == "untestable").all()


def test_shares_must_hold_in_every_unit():
    high, low = [0.9] * 40, [0.2] * 40
    assert verdict("M1", evidence(M1={"mrpc, seed 0": high, "qqp, seed 0": high})) == "holds"
    assert verdict("M1", evidence(M1={"mrpc, seed 0": high, "qqp, seed 0": low})) == "does not hold"
    assert verdict("M5", evidence(M5={"mrpc": [0.5, *[0.3, 0.5] * 20]})) == "undecided"
    found = BY_ID["M5"].find(evidence(M5={"mrpc": high}, **{"M5 at random": {"mrpc": [0.1]}}))
    assert found.value == "mrpc 90% (steps of a tenth of the heads); losses below 3.0 points pass unseen"
    assert found.control == "random orders: mrpc 10%"


def test_a_test_that_sees_nothing_cannot_speak_of_no_loss():
    found = evidence(M1={"mrpc": [1.0] * 40})
    blind = Evidence(found.draws, least=LEAST + 10)
    assert verdict("M1", blind) == "untestable"
    assert "only losses from 12.0 points" in BY_ID["M1"].find(blind).value


def test_least_losses_are_those_of_classifiers_with_a_lead():
    pruned = pd.DataFrame(
        {"task": ["mrpc", "cola"], "order": "importance", "share": [0.5, np.nan], "least": [0.06, 0.3]}
    )
    one = pd.DataFrame({"task": ["mrpc", "cola"], "metric": ["accuracy", "matthews"], "least": [0.02, 0.2]})
    found = least_losses(one, one.assign(chosen_on="train"), pruned)
    assert found.to_dict() == pytest.approx({"M1": 2, "M3": 2, "M5": 6})


def test_rises_need_one_beyond_chance():
    table = pd.DataFrame(
        {"task": ["mrpc", "qqp"], "variants": 12, "raised": 5, "raised_by_chance": 7.0, "beyond": [0, 1],
         "largest": ["0-1", "2-3"], "rise": [0.03, 0.02], "low": [-0.01, 0.001], "high": [0.07, 0.03],
         "highest_end": [0.07, 0.04], "p": [0.3, 0.01]}
    )  # fmt: skip
    draws = evidence(M1={"": [1.0]}).draws
    assert verdict("M2", Evidence(draws, rises=table)) == "holds"
    assert verdict("M2", Evidence(draws, rises=table[:1])) == "undecided"
    nothing = table.assign(rise=0.0, low=-0.1, high=0.0)  # the head that stands out most does nothing
    assert verdict("M2", Evidence(draws, rises=nothing)) == "undecided"  # others may reach above none
    assert verdict("M2", Evidence(draws, rises=nothing.assign(highest_end=0.0))) == "does not hold"
    assert (
        BY_ID["M2"]
        .find(Evidence(draws, rises=table))
        .value.startswith("head 2-3 in qqp +2.0 points; 1 of 24")
    )


def test_effects_agree_where_the_interval_is_above_none():
    table = pd.DataFrame(
        {"model": "mrpc", "data_a": ["mrpc", "mrpc, one half"], "data_b": ["qqp", "mrpc, the other half"],
         "r": [0.6, 0.8], "low": [0.2, 0.5], "high": [0.8, 0.9], "spearman": [0.3, 0.4]}
    )  # fmt: skip
    draws = evidence(M1={"": [1.0]}).draws
    assert verdict("M4", Evidence(draws, transfer=table)) == "holds"
    assert BY_ID["M4"].find(Evidence(draws, transfer=table)).control == "halves of one set: 0.80"
    assert verdict("M4", Evidence(draws, transfer=table.assign(low=-0.1))) == "undecided"


def test_speed_is_judged_at_sixteen_sequences_and_more():
    table = pd.DataFrame(
        {
            "model": "minilm",
            "batch": [1, 16],
            "speedup": [0.9, 1.2],
            "low": [0.8, 1.1],
            "high": [0.95, 1.3],
            "bound": 1.2,
        }
    )
    draws = evidence(M1={"": [1.0]}).draws
    assert verdict("M7", Evidence(draws, speed=table)) == "holds"
    assert verdict("M7", Evidence(draws, speed=table[:1])) == "untestable"
    assert verdict("M7", Evidence(draws, speed=table.assign(low=0.5, high=0.9))) == "does not hold"


def test_differences_need_a_lead():
    assert verdict("M8", evidence(M8={"sst-2": [0.2] * 40})) == "holds"
    assert verdict("M8", evidence(M8={"sst-2": [np.nan] * 40})) == "untestable"
    assert verdict("M6", evidence(M6={"": [0.01, *[-0.01, 0.02] * 20]})) == "undecided"


def test_published_importance_has_unit_norm_and_the_known_changes():
    heads = published.single_heads()
    norms = (heads["importance"] ** 2).groupby(heads["layer"]).sum()
    assert norms.to_numpy() == pytest.approx(1, abs=0.05)  # two decimals are printed
    assert 100 * heads["change"].mean() == pytest.approx(-0.074, abs=0.001)
    assert ((heads["change"] > 0).sum(), len(heads)) == (55, 144)
    assert heads.loc[heads["change"].idxmin(), ["layer", "head"]].tolist() == [6, 0]


def test_published_curves_start_whole_and_end_at_the_constant_answer():
    curves = published.pruning().set_index(["task", "order", "heads"])["value"]
    assert curves["mnli", "importance", 0] == curves["mnli", "single-head score", 0] == 0.8368
    assert curves["cola", "importance", 144] == 0
    assert curves["sst-2", "importance", 144] == 0.5092
    assert published.all_but_one().groupby(["source", "task", "chosen_on"]).size().eq(12).all()
    assert published.translation()["significant"].sum() == 14
