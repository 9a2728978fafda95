import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.errors import InputError
from analysis.papers.pande2021 import published
from analysis.papers.pande2021.claims import (
    CLAIMS,
    NEEDS,
    RoleClaim,
)
from analysis.papers.pande2021.evidence import ARRAYS, Evidence, evidence_of_labels, samples
from analysis.statistics.verdicts import MARKS, Finding, claim_table, seed_table, short_table

IDS = ["C1", "C1b", "C2a", "C2b", "C3", "C4", "C4b", "C5", "C6", "C7", "C8", "C9a", "C9b", "C9c", "C10"]
IDS += ["C11a", "C11b"]
PUBLISHED_VERDICTS = {
    "C1": "holds",
    "C1b": "holds",
    "C2a": "holds",
    "C2b": "does not hold",
    "C3": "holds",
    "C4": "holds",
    "C4b": "holds",
    "C5": "holds",
    "C6": "does not hold",
    "C7": "does not hold",
    "C8": "holds",
    "C9a": "untestable",
    "C9b": "untestable",
    "C9c": "untestable",
    "C10": "untestable",
    "C11a": "untestable",
    "C11b": "holds",
}
LABELLED = [name for name, verdict in PUBLISHED_VERDICTS.items() if verdict != "untestable"]
COLUMNS = ["claim", "source", "definition", "published", "ours", "n", "relation", "bound"]
COLUMNS += ["estimate", "low", "high", "p", "method", "verdict", "unit", "lowest_run", "highest_run"]
UNDER_CONTROL = ["controlled", "control_value", "control_verdict"]
COLUMNS += ["controlled", "control_value", "brief", "released", "found", "control_verdict"]


@pytest.fixture(scope="module")
def released() -> Evidence:
    return evidence_of_labels(published.roles())


def resampled(evidence: Evidence, replicates: int = 99, flipped: float = 0.02) -> Evidence:
    """Replicates in which a small share of the labels, drawn separately for each, is inverted."""
    labels = evidence.labels.isel(replicate=np.zeros(replicates, dtype=int))
    flips = np.random.default_rng(0).random(labels.shape) < flipped
    above = evidence.above.isel(replicate=np.zeros(replicates, dtype=int))
    return Evidence(labels=labels.where(~flips, 1 - labels), above=above, drawn="labels")


def by_id(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(id=table["claim"].str.split(":").str[0]).set_index("id")


def test_every_claim_is_complete():
    assert [claim.id for claim in CLAIMS] == IDS
    assert len({claim.definition for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert set(claim.needs) <= set(NEEDS)
        assert claim.relation in (">=", ">", "<=")
        assert set(claim.needs) <= set(ARRAYS)
        assert " n: " in claim.definition
        assert claim.by_label == ("labels" in claim.needs)
        assert claim.statement
        assert claim.published


def test_table_without_evidence_is_untestable():
    table = claim_table(CLAIMS, Evidence())
    assert [*table.columns] == COLUMNS
    assert (table["verdict"] == "untestable").all()
    assert (table["n"] == 0).all()
    assert table[["estimate", "low", "high", "p"]].isna().all(axis=None)
    assert by_id(table).loc["C10", "ours"] == "no testable p-values of a fine-tuned model"


def test_released_maps_support_some_claims(released):
    table = by_id(claim_table(CLAIMS, released, published=released))
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
    values = by_id(claim_table(CLAIMS, released))
    assert values.loc["C1", "n"] == values.loc["C2a", "n"] == values.loc["C2b", "n"] == 4 * 144
    assert values.loc["C2b", "ours"] == "67% of heads (mrpc 68%, qnli 75%, qqp 63%, sst-2 63%)"
    assert values.loc["C3", "ours"].startswith("42% to 62%")
    assert values.loc["C3", "n"] == 36 + 12 + 39 + 11
    assert values.loc["C5", "n"] == 79  # [SEP] heads of MRPC, the unit that decides
    assert values.loc["C6", "ours"].endswith("(36 untestable)")
    assert (values.loc["C6", "unit"], values.loc["C6", "n"]) == ("qnli", 24)
    assert "sst-2" not in values.loc["C6", "ours"]
    assert (values["published"].str.endswith("(article)")).all()


def test_article_counts_delimiter_heads_by_their_mean():
    """What the definition of C2b says: 73 % of the heads have a mean above 3."""
    table = published.roles()
    delimiter = table[table["role"] == "delimiter"]
    assert (delimiter["mean"] > 3).mean() == pytest.approx(0.73, abs=0.005)
    assert delimiter["assigned"].mean() == pytest.approx(0.67, abs=0.005)


def test_local_heads_with_any_relation(released):
    """What the definition of C3 says: 87 % at most when any of the four relations counts."""
    held = released.labels.isel(replicate=0) == 1
    related = held.sel(role=["nsubj", "dobj", "amod", "advmod"]).any("role")
    shares = related.where(held.sel(role="local")).mean(["layer", "head"])
    assert shares.max().item() == pytest.approx(0.87, abs=0.005)


def test_middle_layers_need_the_relations_as_syntactic_roles(released):
    """If only the pooled role counts, MRPC has fewer multi-functional heads in its middle layers."""
    claim = next(claim for claim in CLAIMS if claim.id == "C4")
    finer = ["nsubj", "dobj", "amod", "advmod", "cls", "sep"]
    pooled = released.labels.where(~released.labels["role"].isin(finer))
    assert claim.judge(released)[1].verdict == "holds"
    assert claim.judge(Evidence(labels=pooled))[1].verdict == "does not hold"


def test_roles_that_cannot_be_tested_make_a_claim_untestable(released):
    known = released.labels.where(~released.labels["role"].isin(["syntactic", "block"]))
    verdicts = by_id(claim_table(CLAIMS, Evidence(labels=known)))
    assert (verdicts.loc[["C1", "C1b", "C3", "C4", "C4b", "C6", "C7", "C8"], "verdict"] == "untestable").all()
    assert verdicts.loc["C7", "ours"] == "no task where syntactic can be tested"
    assert verdicts.loc["C2b", "verdict"] == "does not hold"
    assert verdicts.loc["C5", "verdict"] == "holds"


def test_evidence_that_is_all_untestable_is_no_evidence(released):
    verdicts = claim_table(CLAIMS, Evidence(labels=released.labels * np.nan))
    assert (verdicts["verdict"] == "untestable").all()
    assert verdicts.loc[0, "ours"] == "no roles of a fine-tuned model"


def test_fewer_tasks_are_named():
    table = by_id(claim_table(CLAIMS, evidence_of_labels(published.roles("qqp"))))
    values = table.loc[LABELLED, "ours"]
    assert values.str.contains("qqp").all()
    assert not values.str.contains("mrpc").any()
    assert table.loc["C4", "n"] == 1


def test_replicates_change_the_verdict_and_not_the_finding(released):
    alone = by_id(claim_table(CLAIMS, released))
    found = by_id(claim_table(CLAIMS, released.followed_by(resampled(released))))
    assert found[["ours", "n", "published"]].equals(alone[["ours", "n", "published"]])
    tested = found.loc[LABELLED]
    assert (tested["low"] <= tested["high"]).all()
    assert tested["p"].between(0.01, 1).all()
    assert alone[["low", "high", "p"]].isna().all(axis=None)
    np.testing.assert_array_equal(found["estimate"], alone["estimate"])
    # 42 % of QNLI's local heads are syntactic too, 41.5 % are asked: another head or two decides.
    assert tested.loc["C3", "low"] < 0.415 < tested.loc["C3", "high"]
    verdicts = tested.loc[["C1", "C2b", "C3"], "verdict"].tolist()
    assert verdicts == ["holds", "does not hold", "undecided"]
    assert tested.loc["C3", "method"] == "95% percentile interval, 99 replicates, labels; worst of 4: qnli"
    assert (found.drop(LABELLED)["verdict"] == "untestable").all()


def test_interval_of_the_pooled_share_is_that_of_numpy(released):
    draws = resampled(released)
    row = by_id(claim_table(CLAIMS, released.followed_by(draws))).loc["C2b"]
    shares = draws.labels.sel(role="delimiter").mean(["task", "layer", "head"])
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.quantile(shares, [0.025, 0.975])))
    assert row["p"] == 1


def test_runs_are_judged_alone(released):
    other = Evidence(labels=1 - released.labels, above=released.above)
    table = seed_table(CLAIMS, {0: released, 3: other})
    assert [*table.columns] == ["claim", "seed", "estimate", "verdict"]
    assert table["claim"].tolist() == [name for name in IDS for _ in range(2)]
    first = table[table["seed"] == 0].set_index("claim")
    assert first["verdict"].to_dict() == PUBLISHED_VERDICTS
    delimiter = table[table["claim"] == "C2b"].set_index("seed")["estimate"]
    assert delimiter[0] + delimiter[3] == pytest.approx(1)


def test_short_table_marks_verdicts_and_what_controls_give(released):
    claims = claim_table(CLAIMS, released, released)
    table = short_table(claims)
    assert [*table.columns] == ["claim", "BERT-base", "here", "mark"]
    assert table["claim"].str.split().str.len().between(2, 8).all()
    assert table["claim"].is_unique
    assert table["mark"].tolist() == claims["verdict"].map(MARKS).tolist()
    assert table.loc[3, "here"] == table.loc[3, "BERT-base"] == "67%"
    named = claims.assign(control_verdict="holds", controlled="20% of heads: does not hold")
    assert (short_table(named)["mark"].str.endswith("✓ † ‡") == (claims["verdict"] == "holds")).all()
    assert not short_table(named.assign(verdict="does not hold"))["mark"].str.contains("[†‡]").any()


def test_claim_judges_by_its_function(released):
    measured = released.labels.sel(role="cls").mean(["task", "layer", "head"]).expand_dims(unit=["all"])
    found = Finding("all", 3, measured)
    claim = RoleClaim("C0", "s", "article", "d", "p", lambda evidence: found, ">=", 0.2, ("labels",))
    assert claim.judge(released) == (found, claim.judge(released)[1])
    assert claim.judge(released)[1].verdict == "holds"
    assert claim.judge(Evidence())[1].verdict == "untestable"


def test_median_and_range_of_the_runs(released):
    """Three runs; one has no delimiter heads, and one has only delimiter heads."""
    extremes = [released.labels.where(released.labels["role"] != "delimiter", label) for label in (0, 1)]
    runs = [released, *(Evidence(labels=each, above=released.above) for each in extremes)]
    row = by_id(claim_table(CLAIMS, samples(runs))).loc["C2a"]
    assert row["estimate"] == pytest.approx(0.674, abs=0.001)
    assert (row["lowest_run"], row["highest_run"]) == (0, 1)
    assert row["ours"].startswith("67% of heads (mrpc 68%")
    assert row["ours"].endswith("; median of 3 runs, which give 0 to 1")
    assert row["method"] == "estimate of the sample"
    drawn = by_id(claim_table(CLAIMS, samples(runs).followed_by(resampled(released)))).loc["C2a"]
    assert drawn["method"].startswith("95% percentile interval, 99 replicates, labels")
    assert drawn["estimate"] == row["estimate"]


def test_claims_under_control(released):
    """Controls without heads give no multi-functional heads; claims without a label have no value."""
    nothing, every = (Evidence(labels=released.labels * 0 + label, above=released.above) for label in (0, 1))
    table = by_id(claim_table(CLAIMS, released, controlled=nothing, control=every))
    plain = by_id(claim_table(CLAIMS, released))
    assert table[plain.columns.drop(UNDER_CONTROL)].equals(plain[plain.columns.drop(UNDER_CONTROL)])
    assert (plain[UNDER_CONTROL] == "").all(axis=None)
    assert table.loc["C2a", "controlled"] == (
        "0% of heads (mrpc 0%, qnli 0%, qqp 0%, sst-2 0%): does not hold"
    )
    assert table.loc["C2a", "control_value"].startswith("100% of heads")
    assert table.loc["C3", "controlled"] == "no local heads: untestable"
    assert table.loc["C5", "controlled"].endswith("0 [CLS] heads in sst-2: untestable")
    assert table.loc["C8", "controlled"].endswith(": holds")
    assert (table.loc[["C9a", "C10", "C11a"], "controlled"] == "").all()
    assert table.loc["C10", "control_value"] == "no testable p-values of a fine-tuned model"


def test_maps_equal_to_the_published_agree_perfectly():
    result = published.compare_maps(published.roles(), published.scores())
    assert len(result) == 39 * 3
    assert (result["deviation"] == 0).all()
    np.testing.assert_allclose(result["correlation"], 1)
    assert (result.loc[result["layers"] == "0-11", "heads"] == 144).all()


def test_maps_are_compared_role_by_role_and_by_layers():
    ours = published.roles("qqp").assign(mean=lambda table: 2 * table["mean"] + 0.01 * table["head"])
    shifted = (ours["role"] == "local") & (ours["layer"] == 8) & (ours["head"] == 3)
    ours.loc[shifted, "mean"] += 50
    result = published.compare_maps(ours, published.scores()).set_index(["role", "layers"])
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
    assert "nsubj" not in set(published.compare_maps(ours, published.scores())["role"])


def test_other_models_cannot_be_compared_with_the_published_maps():
    table = published.roles("qqp")
    with pytest.raises(InputError, match="12 layers"):
        published.compare_maps(table[table["layer"] < 6], published.scores())
    with pytest.raises(InputError, match="12 heads"):
        published.compare_maps(table[table["head"] < 8], published.scores())
