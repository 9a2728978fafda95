import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import findings, published
from analysis.claims import CLAIMS, NEEDS, Claim, claim_table, compare_maps
from analysis.errors import InputError
from analysis.findings import Evidence

IDS = [f"C{number}" for number in range(1, 12)]
PUBLISHED_VERDICTS = {
    "C1": "holds",
    "C2": "does not hold",
    "C3": "holds",
    "C4": "holds",
    "C5": "holds",
    "C6": "holds",
    "C7": "does not hold",
    "C8": "holds",
    "C9": "untestable",
    "C10": "untestable",
    "C11": "untestable",
}
COLUMNS = ["claim", "source", "definition", "published", "ours", "n", "verdict"]


@pytest.fixture(scope="module")
def released() -> Evidence:
    return Evidence(roles=published.roles())


def by_id(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(id=table["claim"].str.split(":").str[0]).set_index("id")


def test_every_claim_is_complete():
    assert [claim.id for claim in CLAIMS] == IDS
    assert len({claim.function for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert set(claim.needs) <= set(NEEDS)
        assert "holds" in claim.definition
        assert " n: " in claim.definition
        assert claim.statement
        assert claim.published


def test_table_without_evidence_is_untestable():
    table = claim_table(Evidence())
    assert [*table.columns] == COLUMNS
    assert (table["verdict"] == "untestable").all()
    assert (table["n"] == 0).all()
    assert by_id(table).loc["C10", "ours"] == "no testable p-values of a fine-tuned model"


def test_released_maps_support_some_claims(released):
    table = by_id(claim_table(released, released))
    assert table["verdict"].to_dict() == PUBLISHED_VERDICTS
    for name, row in table.iterrows():
        if row["verdict"] == "untestable":
            assert row["published"].endswith("(article); the released maps cannot tell"), name
        else:
            assert (
                f"(article); {row['ours']} recomputed from the released maps: {row['verdict']}"
                in row["published"]
            )


def test_values_of_the_released_maps(released):
    values = by_id(claim_table(released))
    assert values.loc["C1", "n"] == values.loc["C2", "n"] == 4 * 144
    assert values.loc["C2", "ours"] == "67% of heads (mrpc 68%, qnli 75%, qqp 63%, sst-2 63%)"
    assert values.loc["C3", "ours"].startswith("42% to 62%")
    assert values.loc["C3", "n"] == 36 + 12 + 39 + 11
    assert values.loc["C6", "ours"].endswith("(36 untestable)")
    assert "sst-2" not in values.loc["C6", "ours"]
    assert (values["published"].str.endswith("(article)")).all()


def test_article_counts_delimiter_heads_by_their_mean(released):
    """What the definition of C2 says: 73 % of the heads have a mean above 3."""
    delimiter = released.roles[released.roles["role"] == "delimiter"]
    assert (delimiter["mean"] > 3).mean() == pytest.approx(0.73, abs=0.005)
    assert delimiter["assigned"].mean() == pytest.approx(0.67, abs=0.005)


def test_local_heads_with_any_relation(released):
    """What the definition of C3 says: 87 % at most when any of the four relations counts."""
    wide = released.roles.pivot(index=["task", "layer", "head"], columns="role", values="assigned").fillna(
        False
    )
    local = wide[wide["local"]]
    shares = local[["nsubj", "dobj", "amod", "advmod"]].any(axis=1).groupby("task").mean()
    assert shares.max() == pytest.approx(0.87, abs=0.005)


def test_middle_layers_need_the_relations_as_syntactic_roles(released):
    """Counting the pooled role alone, MRPC has fewer multi-functional heads in its middle layers."""
    claim = next(claim for claim in CLAIMS if claim.id == "C4")
    pooled = released.roles[~released.roles["role"].isin(["nsubj", "dobj", "amod", "advmod"])]
    assert claim.judge(released).verdict == "holds"
    assert (
        claim.judge(Evidence(roles=pooled[~pooled["role"].isin(["cls", "sep"])])).verdict == "does not hold"
    )


def test_pretrained_roles_alone_are_untestable(released):
    pretrained = Evidence(roles=released.roles.assign(state="pretrained"))
    assert (claim_table(pretrained)["verdict"] == "untestable").all()


def test_roles_that_cannot_be_tested_make_a_claim_untestable(released):
    table = released.roles.copy()
    table.loc[table["role"].isin(["syntactic", "block"]), "assigned"] = pd.NA
    verdicts = by_id(claim_table(Evidence(roles=table)))
    assert (verdicts.loc[["C1", "C3", "C4", "C6", "C7", "C8"], "verdict"] == "untestable").all()
    assert verdicts.loc["C7", "ours"] == "no task where syntactic can be tested"
    assert verdicts.loc["C2", "verdict"] == "does not hold"
    assert verdicts.loc["C5", "verdict"] == "holds"


def test_fewer_tasks_are_named(released):
    table = by_id(claim_table(Evidence(roles=published.roles("qqp"))))
    values = table.loc[["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8"], "ours"]
    assert values.str.contains("qqp").all()
    assert not values.str.contains("mrpc").any()
    assert table.loc["C4", "n"] == 1


def test_claim_judges_by_its_function():
    found = findings.judged("all", 3, True)
    claim = Claim("C0", "s", "article", "d", "p", ("finetuned",), lambda evidence: found)
    table = pd.DataFrame({"state": ["finetuned"]})
    assert claim.judge(Evidence(roles=table)) == found
    assert claim.judge(Evidence(roles=table.assign(state="pretrained"))).verdict == "untestable"


def test_maps_equal_to_the_published_agree_perfectly():
    result = compare_maps(published.roles(), published.scores())
    assert len(result) == 39 * 3
    assert (result["deviation"] == 0).all()
    np.testing.assert_allclose(result["correlation"], 1)
    assert (result.loc[result["layers"] == "0-11", "heads"] == 144).all()


def test_maps_are_compared_role_by_role_and_by_layers():
    ours = published.roles("qqp").assign(mean=lambda table: 2 * table["mean"] + 0.01 * table["head"])
    shifted = (ours["role"] == "local") & (ours["layer"] == 8) & (ours["head"] == 3)
    ours.loc[shifted, "mean"] += 50
    result = compare_maps(ours, published.scores()).set_index(["role", "layers"])
    reference = published.scores("qqp").set_index(["role", "layer", "head"])["mean"]
    local = ours[ours["role"] == "local"].set_index(["layer", "head"])["mean"]
    whole, lower, upper = (result.loc[("local", name)] for name in ("0-11", "0-5", "6-11"))
    assert (whole["layer"], whole["head"]) == (upper["layer"], upper["head"]) == (8, 3)
    assert (
        whole["deviation"] == upper["deviation"] == pytest.approx(abs(local[8, 3] - reference["local", 8, 3]))
    )
    low = local[local.index.get_level_values("layer") < 6]
    expected = stats.spearmanr(low, reference["local"].reindex(low.index)).statistic
    assert lower["correlation"] == pytest.approx(expected)
    assert lower["heads"] == upper["heads"] == 72
    assert lower["deviation"] == pytest.approx((low - reference["local"].reindex(low.index)).abs().max())


def test_roles_without_scores_are_left_out():
    ours = published.roles("mrpc")
    ours.loc[ours["role"] == "nsubj", "mean"] = np.nan
    assert "nsubj" not in set(compare_maps(ours, published.scores())["role"])


def test_other_models_cannot_be_compared_with_the_published_maps():
    table = published.roles("qqp")
    with pytest.raises(InputError, match="12 layers"):
        compare_maps(table[table["layer"] < 6], published.scores())
    with pytest.raises(InputError, match="12 heads"):
        compare_maps(table[table["head"] < 8], published.scores())
