"""The claims of the synthesis on made-up tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest
from syntheses import LAYERS, TASKS, made_agreement, made_atlas, made_regression, made_sets

from analysis.statistics.claim_tables import claim_table, in_words, short_table
from analysis.statistics.claims import STUDY, Verdict, judge
from analysis.statistics.roles import CONTROLS
from analysis.synthesis.front import foretold, matching_heads, overview, roles_against_random
from analysis.synthesis.measures import ABLATION, CLAIMS, IMPORTANCE, frames, heads_with_role, measured

BY_ID = {claim.id: claim for claim in CLAIMS}
COLUMNS = "task role label metric excess first second statistic kind value low high".split()
NONE = pd.DataFrame(columns=COLUMNS)


def found(
    name: str, atlas=NONE, sets=NONE, agreement=NONE, label: str = "audited"
) -> tuple[pd.DataFrame, Verdict]:
    claim = BY_ID[name]
    frame = frames(atlas, sets, agreement, label)[name]
    return frame, judge(frame, claim.relation, claim.bound, claim.units)


def verdict(name: str, **tables) -> str:
    return found(name, **tables)[1].verdict


def test_every_claim_is_a_complete_question_of_this_study():
    assert [*BY_ID] == ["S1a", "S1b", "S1c", "S1d", "S2", "S3", "S4a", "S4b", "S5", "S6"]
    for claim in CLAIMS:
        assert claim.origin == STUDY
        assert "n: " in claim.definition or "n, " in claim.definition
        assert claim.brief
        assert not claim.published


def test_without_tables_every_claim_is_untestable():
    table = claim_table(CLAIMS, frames(NONE, NONE, NONE))
    assert (table["verdict"] == "untestable").all()
    assert short_table(table)["mark"].eq("– °").all()


@pytest.mark.parametrize(
    ("excess", "expected"), [(0.2, "holds"), (0.05, "undecided"), (-0.2, "does not hold")]
)
def test_sets_are_judged_by_their_excess(excess: float, expected: str):
    sets = made_sets(excess)
    assert verdict("S1a", sets=sets) == expected
    frame, _ = found("S1a", sets=sets)
    assert (
        in_words(frame, "{:+.3f}")
        == f"{excess:+.3f}; least excess beyond random sets 0.150; p = 0.01, 0.04 over all roles"
    )
    assert found("S1a", sets=sets, label="controlled")[1].verdict == expected


def test_measures_that_order_heads_alike():
    agreement = made_agreement()
    rows = agreement.set_index(["first", "second", "statistic"])["value"]
    frame, judged = found("S2", agreement=agreement)
    assert judged.estimate == rows[ABLATION, IMPORTANCE, "spearman"]
    assert frame["control"].item() == rows[ABLATION, IMPORTANCE, "spearman within layers"]
    assert verdict("S5", agreement=agreement) in ("undecided", "does not hold")


@pytest.mark.parametrize(("kappa", "expected"), [(0.8, "holds"), (0.65, "undecided"), (0.4, "does not hold")])
def test_survival_needs_every_coarse_role(kappa: float, expected: str):
    agreement = made_agreement(kappa)
    assert verdict("S3", agreement=agreement) == expected
    one = (agreement["role"] == "block") & (agreement["second"] == "attribution")
    agreement.loc[one, ["value", "low", "high"]] = [0.1, 0.0, 0.2]
    judged = found("S3", agreement=agreement)[1]
    assert judged.verdict == "does not hold"
    assert (judged.pooled, judged.unit) == (kappa, "block")


def test_layers_without_a_role():
    atlas = made_atlas()
    column = "attribution_local_audited"
    atlas[column] = True
    assert verdict("S4a", atlas=atlas) == "holds"
    atlas.loc[(atlas["task"] == "sst-2") & (atlas["layer"] == 2), column] = False
    frame, judged = found("S4a", atlas=atlas)
    sample = frame[frame["replicate"] == 0].set_index("unit")["value"]
    assert sample.to_dict() == {"mrpc": 0, "sst-2": 1}
    assert (frame["value"] >= frame["unit"].map(sample)).all()  # draws only lose labelled heads
    assert judged.verdict == "does not hold"
    atlas["attribution_syntactic_audited"] = atlas["layer"] < LAYERS - 1
    assert verdict("S4b", atlas=atlas) == "holds"
    assert set(frame["unit"]) == set(TASKS)


def test_interfering_heads():
    atlas = made_atlas()
    held = heads_with_role(atlas)
    others = [role for role in CONTROLS if role not in ("delimiter", "cls", "sep")]
    expected = [any(atlas.loc[row, f"attention_{role}_audited"] for role in others) for row in atlas.index]
    assert held.tolist() == expected
    labels = [name for name in atlas if name.startswith("attention_") and name.endswith("_audited")]
    interfering = atlas["gate_class"] == "interfering"
    atlas.loc[interfering, labels] = False
    frame, judged = found("S6", atlas=atlas)
    assert (judged.estimate, judged.verdict) == (0, "undecided")  # 0 of 20: the share can be 17 %
    assert frame["control"].item() == held[~interfering].mean()
    without = atlas.assign(**dict.fromkeys(labels, False))
    assert verdict("S6", atlas=without.assign(gate_class="interfering")) == "holds"
    without.loc[without.index[interfering][5:], "gate_class"] = "mixed"
    few = found("S6", atlas=without)[1]
    assert (few.low, few.high) == pytest.approx((0, 1 - 0.025 ** (1 / 5)))
    atlas.loc[interfering, "attention_local_audited"] = True
    assert verdict("S6", atlas=atlas) == "does not hold"
    assert verdict("S6", atlas=atlas, label="controlled") != "holds"
    atlas.loc[atlas.index[interfering][4:], "gate_class"] = "mixed"
    assert in_words(found("S6", atlas=atlas)[0]).startswith("4 heads interfere in both gate seeds")


def test_measures_are_larger_where_a_head_matters_more():
    table, atlas = measured(made_atlas()), made_atlas()
    np.testing.assert_allclose(table["ablation_fall"], -atlas["ablation_accuracy"].astype(float))
    np.testing.assert_allclose(table["tuning"], 1 - atlas["cosine"].astype(float))
    assert measured(made_atlas(measure=False))["importance"].isna().all()


class Saved:
    """Results with the given tables."""

    def __init__(self, **tables: pd.DataFrame):
        self.tables = tables

    def claims(self, name: str) -> pd.DataFrame:
        return self.tables.get(name, pd.DataFrame())


def test_the_front_page_tells_what_was_tested_and_what_was_not():
    regression = made_regression()
    assert "explain 10%" in foretold(regression)
    assert "local (more) of 11" in foretold(regression)
    less = regression.assign(estimate=-regression["estimate"])
    assert "local (less)" in foretold(less)
    lost = regression.assign(share=np.nan, estimate=np.nan)  # a coefficient that is missing has no sign
    assert foretold(lost).startswith("Heads were not removed one by one")
    assert "for local (+0.20 nats)" in roles_against_random(made_sets())
    tables = {"atlas": made_atlas(), "synthesis_sets": made_sets(), "synthesis_agreement": made_agreement()}
    told = overview(Saved(**tables, synthesis_regression=regression), "tiny")
    assert len(told) == 4
    tests = pd.DataFrame({"task": ["mrpc", "mrpc", "qqp", "sst-2", "qnli"], "seed": [0, 1, 0, 0, 0],
                          "trained": [True, True, True, True, False], "heads": "1-1, 2-9",
                          "p": [0.01, 0.2, 0.01, 0.6, 0.01]})  # fmt: skip
    assert (
        "(exact p < 0.05) in 2 of 3 runs on pairs of texts and in 0 of 1 on single texts"
        in matching_heads(tests)
    )
    assert "(1-1, 2-9)" in matching_heads(tests)
    assert matching_heads(tests.assign(p=np.nan)).startswith("No head attends")
    told = overview(Saved(**tables, synthesis_regression=regression, matching_tests=tests), "tiny")
    assert len(told) == 5
    assert len(overview(Saved(), "tiny")) == 2
