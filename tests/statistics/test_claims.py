from io import StringIO

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from analysis.statistics import claim_texts as texts
from analysis.statistics import claims
from analysis.statistics.claims import (
    Claim,
    claim_row,
    claim_table,
    frame,
    not_applicable,
    threshold_table,
    with_control,
)
from analysis.statistics.intervals import draws_interval
from analysis.study import claim_pages as pages

HALF = norm.ppf(0.975)


def claim(**changed: object) -> Claim:
    """A claim that a share is above one half."""
    words = {"id": "A1", "statement": "most heads do", "source": "section 1", "measure": "A share."}
    return Claim(**(words | {"threshold": 0.5, "relation": ">"} | changed))


def around(*values: float, half: float = 0.05) -> pd.DataFrame:
    return frame({f"u{number}": (value, value - half, value + half) for number, value in enumerate(values)})


@pytest.mark.parametrize(
    ("values", "words", "verdict"),
    [
        ([0.6], {}, "supported"),
        ([0.52], {}, "inconclusive"),
        ([0.4], {}, "not supported"),
        ([0.4], {"relation": "<"}, "supported"),
        ([0.6], {"relation": "<"}, "not supported"),
        ([0.7, 0.8, 0.3], {}, "mixed"),
        ([0.52, 0.3], {}, "not supported"),  # one unit decides nothing
        ([0.7, 0.52], {}, "supported"),  # about the mean
        ([0.7, 0.52], {"every": True}, "inconclusive"),  # about the least favourable unit
        ([0.7, 0.46], {"every": True}, "inconclusive"),
        ([0.4, 0.46], {"every": True}, "not supported"),
        ([0.9, 0.49, 0.49], {}, "inconclusive"),  # most units lie on the other side
        ([0.9, 0.49], {}, "inconclusive"),  # half of them do
        ([0.9, 0.51], {}, "supported"),
    ],
)
def test_a_verdict_follows_from_the_intervals_of_units(values, words, verdict):
    assert claim_row(claim(**words), around(*values))["verdict"] == verdict


@pytest.mark.parametrize(("every", "correlation"), [(False, 0.0), (False, 0.8), (True, 0.8)])
def test_verdicts_err_in_few_studies_where_every_unit_sits_at_the_threshold(every, correlation):
    rng, units, studies = np.random.default_rng(0), 12, 600
    common, own_rows = rng.normal(size=(studies, 1)), rng.normal(size=(studies, units))
    values = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own_rows
    options = {"threshold": 0.0, "every": every, "independent": not correlation}
    verdicts = [claims.judge(row, row - HALF, row + HALF, **options).verdict for row in values]
    assert np.isin(verdicts, ["supported", "not supported"]).mean() < 0.07


def test_a_row_holds_estimate_range_control_and_reason():
    units = with_control(around(0.6, 0.8), {"u0": (0.7, 0.6, 0.8), "u1": (0.9, 0.8, 1.0)})
    units = pd.concat([units, not_applicable("no run trained successfully", "u2")], ignore_index=True)
    row = claim_table([claim(unit="task", control="twins")], {"A1": units}).iloc[0]
    assert [*row.index] == claims.CLAIM_COLUMNS
    assert row[["estimate", "smallest", "largest", "units", "supporting"]].tolist() == [0.7, 0.6, 0.8, 2, 2]
    assert row["low"] == pytest.approx(0.7 - 0.05 / np.sqrt(2))  # tasks are independent
    assert row[["control", "control_low"]].tolist() == [0.8, pytest.approx(0.8 - 0.1 / np.sqrt(2))]
    assert (row["largest_unit"], row["reason"]) == ("u1", "u2: no run trained successfully")
    assert row[["runs", "robust"]].tolist() == [0, "no"]  # at .6 the smaller unit decides nothing
    assert claim_row(claim(), units.assign(reason="by rules"))["reason"] == "by rules"  # of all units
    least_favourable = claim_row(claim(every=True), units)
    assert (least_favourable["estimate"], least_favourable["control"]) == (0.6, 0.7)


@pytest.mark.parametrize(
    ("changed", "has_mark"),
    [
        ({}, True),
        ({"control_high": 0.54}, False),
        ({"control": 0.54, "control_high": np.nan}, False),
        ({"relation": "<"}, False),
        ({"verdict": "inconclusive"}, False),
        ({"control": np.nan, "control_high": np.nan}, False),
    ],
)
def test_a_supported_claim_that_does_not_exceed_its_control_has_a_mark(changed, has_mark):
    row = {"relation": ">", "verdict": "supported", "low": 0.55, "control": 0.5, "control_high": 0.6}
    assert texts.marked(row | changed) == has_mark


def test_a_reference_is_a_number_that_no_mark_takes_into_account():
    units = with_control(around(0.6), {"u0": (0.7, 0.6, 0.8)})
    row = claim_table([claim(reference="halves of one set")], {"A1": units}).iloc[0]
    assert (row["reference"], row["verdict"], np.isnan(row["control"])) == (0.7, "supported", True)
    assert not texts.marked(row.to_dict())


@pytest.mark.parametrize(
    ("fields", "runs", "verdict", "reason", "covered"),
    [
        ({"interval": "runs and pairs"}, 1, "inconclusive", "1 run", "pairs"),
        ({"interval": "runs and pairs"}, 2, "inconclusive", "2 runs", "pairs"),
        ({"interval": "pairs"}, 1, "supported", "", "pairs"),
        ({"interval": "runs and pairs"}, 3, "supported", "", "runs and pairs"),
        ({"interval": "rounds"}, 0, "not applicable", "times of one machine", "rounds"),
    ],
)
def test_two_runs_and_times_of_one_machine_decide_nothing(fields, runs, verdict, reason, covered):
    """Nor does an interval of two runs say that it covers runs."""
    row = claim_row(claim(**fields), around(0.7).assign(runs=runs))
    assert (row["verdict"], row["reason"], row["runs"]) == (verdict, reason, runs)
    assert (row["estimate"], row["interval"]) == (0.7, covered)


def test_the_unit_with_fewest_runs_decides_whether_there_are_three():
    row = claim_row(claim(interval="runs"), around(0.7, 0.8).assign(runs=[3, 2]))
    assert (row["verdict"], row["reason"]) == ("inconclusive", "2 runs")


@pytest.mark.parametrize(
    ("value", "words", "expected"),
    [
        (0.52, {}, ("about 0.5", "no")),  # at .4 it is supported
        (0.59, {"threshold": 0.55}, ("about 0.55", "no")),
        (0.9, {}, ("", "yes")),
        (0.215, {"threshold": 0.2}, ("", "no")),  # one end is near, at .165, and one is not
        (0.02, {"threshold": 0.0}, ("", "")),
    ],
)
def test_a_row_says_what_lies_about_the_threshold_and_whether_another_one_would_matter(
    value, words, expected
):
    row = claim_row(claim(**words), around(value))
    assert (row["reason"], row["robust"]) == expected


def test_without_a_value_a_claim_is_not_applicable_and_without_spread_it_says_so():
    assert claim_row(claim(), around(0.5, half=0))["verdict"] == "inconclusive"
    alone = claim_row(claim(), around(0.6, half=0))
    assert (alone["verdict"], alone["reason"], "units" in alone) == ("supported", "no spread", False)
    partly = pd.concat([around(0.6, half=0), around(0.7).assign(unit="u1")], ignore_index=True)
    assert claim_row(claim(), partly)["reason"] == "u0: no spread"
    missing = claim_row(claim(interval="runs"), not_applicable("set-up not run"))
    assert missing["verdict"] == "not applicable"
    assert (missing["reason"], missing["robust"]) == ("set-up not run", "")
    assert claim_row(claim(), frame({"": (0.6, np.nan, np.nan)}))["verdict"] == "inconclusive"


def test_intervals_of_draws_widen_with_their_standard_deviation():
    draws = np.r_[1.0, np.random.default_rng(0).normal(3, 2, 4000)]
    value, low, high = draws_interval(draws)
    assert (value, high - value) == (1.0, pytest.approx(2 * HALF, rel=0.03))
    assert value - low == pytest.approx(high - value)


def test_the_table_has_a_link_and_an_anchor_for_each_claim_and_explains_each_mark_once():
    known = [claim(figure="F1", control="twins"), claim(id="A2", threshold_from="paper")]
    units = with_control(around(0.6), {"u0": (0.7, 0.6, 0.8)})
    frames = {"A1": units.assign(released=0.25), "A2": around(0.3)}
    table = claim_table(known, frames)
    name, linked = '<a id="A1"></a>[A1](figures/F1.png)', pages.markdown_table(table, known, "figures")
    assert linked.splitlines()[2].startswith(f"| {name} most heads do |")
    text = pages.claims_markdown(table, known)
    assert "| A1 most heads do | 0.60 [0.55, 0.65] | > 0.5 ‡ | 0.70 [0.60, 0.80] |" in text
    assert f"released maps 0.25 | supported {texts.MARK} {texts.NEAR} |" in text
    assert "| > 0.5 |  |  | not supported |" in text
    assert [text.count(legend) for legend in texts.LEGENDS.values()] == [1, 1, 1]
    assert texts.LEGENDS[texts.MARK] not in pages.claims_markdown(table.tail(1), known)
    generated = claim_table(known, frames, made_up=True)
    assert generated[["published", "published_estimate"]].isna().all(axis=None)
    beside = pages.markdown_table(table, known, others={"Other": table.head(1)}).splitlines()
    assert beside[0].endswith("| verdict | Other |")
    first = table.iloc[0]
    ends = texts.bracketed(first["estimate"], first["low"], first["high"])
    assert beside[2].endswith(f"| {ends} {texts.MARK} {texts.NEAR} |")
    other = table.head(1).assign(verdict="mixed")
    assert f"| {ends} {texts.NEAR}, mixed |" in pages.markdown_table(table, known, others={"Other": other})
    assert beside[3].endswith("|  |")
    saved = pd.read_csv(StringIO(table.to_csv(index=False)))
    assert pages.claims_markdown(saved, known) == text


def test_a_reader_sees_units_runs_what_an_interval_covers_the_least_favourable_and_the_sink():
    words = {"statement": "{sink} gets most", "measure": "Mean on {sink}.", "control": "twins"}
    known = [claim(**words, unit="task", every=True, interval="documents")]
    units = with_control(around(0.9, 0.7), {"u1": (0.4, 0.3, 0.5)}).assign(runs=3, token="[CLS]", reason="")
    units.loc[0, "reason"] = "head 2-9"
    table = claim_table(known, {"A1": units})
    (row,) = texts.cells(table, known).to_dict("records")
    assert row["claim"] == "[CLS] gets most"
    assert row["estimate [95 % interval]"] == "0.70 [0.65, 0.75], least favourable of 2"
    assert (row["control"], row["verdict"]) == ("0.40 [0.30, 0.50]", "supported")
    assert " ".join(pages.definitions(table, known).split()) == (
        "- **A1** (section 1). Mean on [CLS]. 2 × task, 3 × run: 0.70 (u1) to 0.90 (u0). *Interval over*: documents. "
        "*Control*: twins. *Note*: u0: head 2-9."
    )
    unmeasured = claim_table(known, {})
    (row,) = texts.cells(unmeasured, known).to_dict("records")
    assert (row["claim"], row["verdict"]) == ("the sink gets most", "not applicable (not run)")
    assert pages.definitions(unmeasured, known) == "- **A1** (section 1). Mean on the sink."


def test_the_reason_stands_beside_a_verdict_that_asks_for_one_and_a_comparison_has_no_interval():
    known = [claim(reference="halves of one set", interval="runs and sequences")]
    table = claim_table(known, {"A1": with_control(around(0.7).assign(runs=2), {"u0": (0.6, 0.5, 0.7)})})
    (row,) = texts.cells(table, known).to_dict("records")
    assert (row["verdict"], row["control"]) == ("inconclusive (2 runs)", "0.60 (for comparison)")
    assert pages.definitions(table, known).endswith("A share. 2 × run. *For comparison*: halves of one set.")


def test_units_stand_together_and_none_has_a_reason():
    rows = claims.together([around(0.6), not_applicable("not run", "b")], "no task")
    assert rows["unit"].tolist() == ["u0", "b"]
    assert claims.together([], "no task")["reason"].tolist() == ["no task"]


def test_verdicts_at_other_thresholds_and_p_values_adjusted_over_all_claims():
    known = [claim(), claim(id="A2", threshold=0), claim(id="A3"), claim(id="A4", relation="<")]
    units = [
        around(0.53).assign(claim="A1", runs=0),
        around(0.08).assign(claim="A2", runs=0),
        not_applicable("not run").assign(claim="A3", runs=0),
        around(0.1).assign(claim="A4", runs=0),
    ]
    table = threshold_table(known, pd.concat(units, ignore_index=True)).set_index("claim")
    assert [*table.index] == ["A1", "A2", "A4"]
    verdicts = table[["at_0.8", "at_1", "at_1.25", "at_least"]].fillna("").to_numpy().tolist()
    assert verdicts == [
        ["supported", "inconclusive", "not supported", ""],
        ["", "supported", "", "inconclusive"],
        ["supported", "supported", "supported", ""],
    ]
    assert table.loc["A2", "p"] == pytest.approx(2 * norm.sf(0.08 / 0.05 * HALF))
    assert (table["p_by"] >= table["p"]).all()
