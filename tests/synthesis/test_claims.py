"""The claims of the synthesis on made-up tables with obvious answers."""

from dataclasses import replace

import numpy as np
import pytest
from syntheses import LAYERS, TASKS, made_agreement, made_atlas, made_sets

from analysis.statistics.roles import CONTROLS
from analysis.statistics.verdicts import short_table
from analysis.synthesis import findings
from analysis.synthesis.claims import CLAIMS, judge_all, needs
from analysis.synthesis.findings import Tables, heads_with_role, measured

BY_ID = {claim.id: claim for claim in CLAIMS}


def verdict(name: str, tables: Tables) -> str:
    return BY_ID[name].judge(tables)[1].verdict


def test_every_claim_is_complete():
    assert [*BY_ID] == ["S1a", "S1b", "S1c", "S1d", "S2", "S3", "S4a", "S4b", "S5", "S6"]
    assert all("n: " in claim.definition and claim.source and claim.brief for claim in CLAIMS)
    assert len(needs()) == len(CLAIMS)


def test_without_tables_every_claim_is_untestable():
    table = judge_all(Tables())
    assert (table["verdict"] == "untestable").all()
    assert (judge_all(Tables(made_atlas(measure=False)))["verdict"] == "untestable").all()
    assert short_table(table)["mark"].eq("–").all()


def test_no_article_has_a_figure_for_them():
    table = judge_all(Tables(made_atlas(), made_sets(), made_agreement()))
    assert (table["published"] == "").all()
    assert (table["verdict"] != "untestable").all()
    assert table.set_index("claim").filter(like="S1a", axis=0)["controlled"].str.endswith(": holds").all()


@pytest.mark.parametrize(
    ("excess", "expected"), [(0.2, "holds"), (0.05, "undecided"), (-0.2, "does not hold")]
)
def test_sets_are_judged_by_their_excess(excess: float, expected: str):
    tables = Tables(sets=made_sets(excess))
    assert verdict("S1a", tables) == expected
    found = findings.set_against_random(tables, "local")
    assert found.value.startswith("+0.500 nats without the 7 heads of 2 tasks, p = 0.01, 0.04")
    assert found.control == f"random sets: {0.5 - excess:+.3f} nats"
    assert findings.set_against_random(tables, "sep").measures is None


def test_measures_that_order_heads_alike():
    tables = Tables(agreement=made_agreement())
    rows = tables.agreement.set_index(["first", "second", "statistic"])["value"]
    found, judged = BY_ID["S2"].judge(tables)
    assert judged.estimate == rows[findings.ABLATION, findings.IMPORTANCE, "spearman"]
    assert f"{rows[findings.ABLATION, findings.IMPORTANCE, 'spearman within layers']:.2f}" in found.control
    assert verdict("S5", tables) in ("undecided", "does not hold")


@pytest.mark.parametrize(("kappa", "expected"), [(0.8, "holds"), (0.65, "undecided"), (0.4, "does not hold")])
def test_survival_needs_every_coarse_role(kappa: float, expected: str):
    tables = Tables(agreement=made_agreement(kappa))
    assert verdict("S3", tables) == expected
    one = tables.agreement.copy()
    one.loc[(one["role"] == "block") & (one["second"] == "attribution"), ["value", "low", "high"]] = [
        0.1,
        0.0,
        0.2,
    ]
    assert verdict("S3", Tables(agreement=one)) == "does not hold"


def test_layers_without_a_role():
    atlas = made_atlas()
    column = "attribution_local_audited"
    atlas[column] = True
    assert verdict("S4a", Tables(atlas)) == "holds"
    atlas.loc[(atlas["task"] == "sst-2") & (atlas["layer"] == 2), column] = False
    found = findings.layers_without(Tables(atlas), "local")
    assert found.measures.sel(unit="sst-2")[0] == 1
    assert found.measures.sel(unit="mrpc")[0] == 0
    assert (found.measures >= found.measures.isel(replicate=0)).all()  # draws only lose labelled heads
    assert verdict("S4a", Tables(atlas)) == "does not hold"
    atlas["attribution_syntactic_audited"] = atlas["layer"] < LAYERS - 1
    assert verdict("S4b", Tables(atlas)) == "holds"
    assert set(found.measures["unit"].values) == set(TASKS)


def test_interfering_heads():
    atlas = made_atlas()
    held = heads_with_role(atlas)
    others = [role for role in CONTROLS if role not in ("delimiter", "cls", "sep")]
    expected = [any(atlas.loc[row, f"attention_{role}_audited"] for role in others) for row in atlas.index]
    assert held.tolist() == expected
    labels = [name for name in atlas if name.startswith("attention_") and name.endswith("_audited")]
    interfering = atlas["gate_class"] == "interfering"
    atlas.loc[interfering, labels] = False
    found = findings.interfering_with_role(Tables(atlas))
    assert found.value == f"0 of {interfering.sum()} interfering heads"
    assert found.control == f"of all other heads {held[~interfering].mean():.0%}"
    assert verdict("S6", Tables(atlas)) == "undecided"  # 0 of 20: the share can be 17 %
    without = atlas.assign(**dict.fromkeys(labels, False))
    assert verdict("S6", Tables(without.assign(gate_class="interfering"))) == "holds"
    without.loc[without.index[interfering][5:], "gate_class"] = "mixed"
    few = findings.interfering_with_role(Tables(without))
    assert few.value == "0 of 5 interfering heads"
    assert few.limits.values[0] == pytest.approx([0, 1 - 0.025 ** (1 / 5)])
    atlas.loc[interfering, "attention_local_audited"] = True
    assert verdict("S6", Tables(atlas)) == "does not hold"
    assert verdict("S6", replace(Tables(atlas), label="controlled")) != "holds"
    atlas.loc[atlas.index[interfering][4:], "gate_class"] = "mixed"
    assert findings.interfering_with_role(Tables(atlas)).value.startswith(
        "4 heads interfere in both gate seeds"
    )


def test_measures_are_larger_where_a_head_matters_more():
    table, atlas = measured(made_atlas()), made_atlas()
    np.testing.assert_allclose(table["ablation_fall"], -atlas["ablation_accuracy"].astype(float))
    np.testing.assert_allclose(table["tuning"], 1 - atlas["cosine"].astype(float))
    assert measured(made_atlas(measure=False))["importance"].isna().all()
