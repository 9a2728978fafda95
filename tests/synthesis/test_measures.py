"""The claims of the synthesis, and its sentences, on made-up tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest

from analysis.statistics.claim_tables import claim_table
from analysis.statistics.claims import Verdict, judge
from analysis.statistics.roles import ROLES
from analysis.synthesis.agreement import ROLES as ACROSS_MAPS
from analysis.synthesis.atlas import KEYS
from analysis.synthesis.front import foretold, matching_heads, overview, roles_against_random
from analysis.synthesis.measures import (
    ABLATION,
    CLAIMS,
    IMPORTANCE,
    TUNING,
    frames,
    heads_with_role,
    measured,
)
from analysis.synthesis.regression import ALL_ROLES, RAW
from analysis.synthesis.regression import COLUMNS as REGRESSION
from analysis.synthesis.sets import LABELS, POOLED

BY_ID = {claim.id: claim for claim in CLAIMS}
COLUMNS = "task role label metric excess first second statistic kind value low high".split()
NONE = pd.DataFrame(columns=COLUMNS)
TASKS, SEEDS, LAYERS, HEADS = ("mrpc", "sst-2"), (0, 1), 4, 5
NUMBERS = ["ablation_loss", "ablation_accuracy", "disable", "importance", "cosine"]


def made_atlas() -> pd.DataFrame:
    """Random labels on two maps, random numbers and classes of gates."""
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([TASKS, SEEDS, range(LAYERS), range(HEADS)], names=KEYS)
    names = [f"{source}_{role}_{label}"
             for source in ("attention", "attribution") for role in ROLES for label in LABELS]  # fmt: skip
    labels = pd.DataFrame(rng.random((len(index), len(names))) < 0.4, index, names)
    numbers = pd.DataFrame(rng.normal(size=(len(index), len(NUMBERS))), index, NUMBERS)
    classes = np.resize(["facilitating", "interfering", "irrelevant", "mixed"], len(index))
    return labels.join(numbers).assign(gate_class=classes).reset_index()


def made_sets(excess: float = 0.2) -> pd.DataFrame:
    """A table of sets in which every role has the same excess."""
    facts = {"task": POOLED, "metric": "loss", "heads": 7, "least": 0.15, "p": 0.01, "p_holm": 0.04}
    facts |= {"excess": excess, "low": excess - 0.1, "high": excess + 0.1}
    return pd.DataFrame([facts | {"role": role, "label": label} for role in ROLES for label in LABELS])


def made_agreement(kappa: float = 0.8) -> pd.DataFrame:
    """Agreement of two pairs of measures, and of the labels of all roles on two maps."""
    facts = {"task": POOLED, "low": kappa - 0.1, "high": kappa + 0.1, "runs": 2, "heads": 40}
    roles = {"kind": ACROSS_MAPS, "first": "attention", "second": "attribution", "statistic": "kappa"}
    rows = [facts | roles | {"role": role, "value": kappa} for role in ROLES]
    for second, value in ((IMPORTANCE, 0.7), (TUNING, -0.3)):
        order = facts | {"first": ABLATION, "second": second, "low": value - 0.1, "high": value + 0.1}
        rows += [order | {"statistic": "spearman", "value": value},
                 order | {"statistic": "spearman within layers", "value": value / 2}]  # fmt: skip
    return pd.DataFrame(rows)


def made_regression() -> pd.DataFrame:
    """A regression in which only the first role predicts something."""
    alone = pd.DataFrame({"term": [*ROLES], "model": "alone", "estimate": 0.1, "share": 0.05})
    alone["p_holm"] = [0.01, *[0.5] * (len(ROLES) - 1)]
    every = pd.DataFrame([{"term": ALL_ROLES, "model": "together", "share": 0.1, "share_shuffled": 0.04,
                           "p_holm": 0.01, "r2_left_out": -0.02}])  # fmt: skip
    return pd.concat([alone, every]).assign(variant=RAW).reindex(columns=REGRESSION)


def found(
    name: str, atlas=NONE, sets=NONE, agreement=NONE, label: str = "audited"
) -> tuple[pd.DataFrame, Verdict]:
    claim = BY_ID[name]
    frame = frames(atlas, sets, agreement, label)[name]
    return frame, judge(frame, claim.relation, claim.bound, claim.units)


def verdict(name: str, **tables) -> str:
    return found(name, **tables)[1].verdict


def test_without_tables_every_claim_is_untestable():
    table = claim_table(CLAIMS, frames(NONE, NONE, NONE))
    assert len(table) == 10
    assert (table["verdict"] == "untestable").all()


@pytest.mark.parametrize(
    ("excess", "expected"), [(0.2, "holds"), (0.05, "undecided"), (-0.2, "does not hold")]
)
def test_sets_are_judged_by_their_excess(excess: float, expected: str):
    sets = made_sets(excess)
    sets.loc[sets["label"] == "controlled", ["excess", "low", "high"]] *= -1
    assert verdict("S1a", sets=sets) == expected
    assert found("S1a", sets=sets, label="controlled")[1].estimate == -excess


def test_measures_that_order_heads_alike():
    frame, judged = found("S2", agreement=made_agreement())
    assert (judged.estimate, judged.verdict) == (0.7, "holds")
    assert frame["control"].item() == 0.35
    assert verdict("S5", agreement=made_agreement()) == "does not hold"


@pytest.mark.parametrize(("kappa", "expected"), [(0.8, "holds"), (0.65, "undecided"), (0.4, "does not hold")])
def test_survival_needs_every_coarse_role(kappa: float, expected: str):
    agreement = made_agreement(kappa)
    assert verdict("S3", agreement=agreement) == expected
    agreement.loc[agreement["role"] == "block", ["value", "low", "high"]] = [0.1, 0.0, 0.2]
    judged = found("S3", agreement=agreement)[1]
    assert (judged.verdict, judged.pooled, judged.unit) == ("does not hold", kappa, "block")


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


def test_interfering_heads():
    atlas = made_atlas()
    held = heads_with_role(atlas)
    others = [role for role in ROLES if role not in ("delimiter", "cls", "sep")]
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
    atlas.loc[atlas.index[interfering][4:], "gate_class"] = "mixed"
    assert verdict("S6", atlas=atlas) == "untestable"  # four heads are too few


def test_measures_are_larger_where_a_head_matters_more():
    atlas = made_atlas()
    table = measured(atlas.assign(importance=pd.NA))
    np.testing.assert_allclose(table["ablation_fall"], -atlas["ablation_accuracy"])
    np.testing.assert_allclose(table["disable_fall"], -atlas["disable"])
    np.testing.assert_allclose(table["tuning"], 1 - atlas["cosine"])
    assert table["importance"].isna().all()


class Saved:
    """Results with the given tables."""

    def __init__(self, **tables: pd.DataFrame):
        self.tables = tables

    def claims(self, name: str) -> pd.DataFrame:
        return self.tables.get(name, pd.DataFrame())


def test_the_front_page_tells_what_was_tested_and_what_was_not():
    regression = made_regression()
    assert "explain 10%" in foretold(regression)
    assert "Of 11 roles alone, local (more) explains" in foretold(regression)
    assert "local (less)" in foretold(regression.assign(estimate=-regression["estimate"]))
    lost = regression.assign(share=np.nan, estimate=np.nan)  # a coefficient that is missing has no sign
    assert foretold(lost).startswith("Heads were not removed one by one")
    assert "for 11 of 11 roles: local (+0.20 nats), " in roles_against_random(made_sets())
    assert "for none of 11 roles (two-sided" in roles_against_random(made_sets().assign(p_holm=1.0))
    tests = pd.DataFrame({"task": ["mrpc", "mrpc", "qqp", "sst-2", "qnli"], "seed": [0, 1, 0, 0, 0],
                          "trained": [True, True, True, True, False], "heads": "1-1, 2-9",
                          "p": [0.01, 0.2, 0.01, 0.6, 0.01]})  # fmt: skip
    assert "in 2 of 3 runs on pairs of texts and in 0 of 1 on single texts" in matching_heads(tests)
    assert matching_heads(tests.assign(p=np.nan)).startswith("No head attends")
    tables = {"atlas": made_atlas(), "synthesis_sets": made_sets(), "synthesis_agreement": made_agreement(),
              "synthesis_regression": regression, "matching_tests": tests}  # fmt: skip
    assert len(overview(Saved(**tables), "tiny")) == 5
    assert len(overview(Saved(), "tiny")) == 2
