"""The judge of claims: rules for every and for some unit, missing draws, ready intervals, controls, and the file."""

import numpy as np
import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.statistics.claim_tables import claim_table, short_table
from analysis.statistics.claims import Claim, judge, read_claims, sampled, tabled, untestable


def drawn(centre: float, spread: float = 0.01, draws: int = 400, seed: int = 0) -> np.ndarray:
    """The sample and its draws, around one centre."""
    return np.r_[centre, np.random.default_rng(seed).normal(centre, spread, draws)]


def claim(**changed: object) -> Claim:
    """A claim above one half."""
    told = {"id": "A1", "brief": "short", "statement": "long", "source": "section 1", "definition": "a share"}
    return Claim(**(told | {"published": "most", "relation": ">", "bound": 0.5} | changed))


@pytest.mark.parametrize(
    ("relation", "bound", "verdict"),
    [(">", 0.5, "holds"), (">", 0.65, "does not hold"), (">", 0.6, "undecided"), ("<=", 0.75, "holds")]
    + [("<=", 0.65, "does not hold"), (">=", 0.6, "undecided")],
)
def test_a_claim_about_every_unit_needs_every_interval(relation, bound, verdict):
    frame = sampled({"a": drawn(0.6), "b": drawn(0.7, seed=1)}, n=10)
    found = judge(frame, relation, bound)
    assert found.verdict == verdict
    assert found.unit == ("a" if relation.startswith(">") else "b")
    assert (found.unit_count, found.pooled) == (2, pytest.approx(0.65))


def test_without_an_interval_a_claim_is_undecided():
    assert judge(sampled({"": [0.9]}, 3), ">", 0.1).verdict == "undecided"
    assert judge(untestable("no runs"), ">", 0.1).verdict == "untestable"


def test_one_of_many_units_refutes_only_beyond_the_corrected_level():
    ends = {"low": [0.405] + [0.8] * 15, "high": [0.495] + [0.95] * 15}
    rows = pd.DataFrame({"unit": range(16), "value": [0.45] + [0.9] * 15, **ends})
    found = judge(tabled(rows, "unit", "value", n=5), ">=", 0.5)
    assert found.verdict == "undecided"
    assert judge(tabled(rows.head(1), "unit", "value", n=5), ">=", 0.5).verdict == "does not hold"
    assert (found.holding, found.unit_count, found.pooled) == (15, 16, 0.9)


def test_some_unit_decides_an_existential_claim():
    frame = sampled({"nothing": np.zeros(401), "best": drawn(0.3)}, n=5)
    assert judge(frame, ">", 0.1, "some").verdict == "holds"
    assert judge(frame, ">", 0.1, "every").verdict == "does not hold"
    wide = sampled({"nothing": np.zeros(401), "wide": drawn(0.05, 0.2)}, n=5)
    assert judge(wide, ">", 0.1, "some").verdict == "undecided"
    assert judge(sampled({"nothing": np.zeros(401)}, n=5), ">", 0, "some").verdict == "does not hold"


@pytest.mark.parametrize(("relation", "bound"), [("<=", 0.9), (">=", 0.1)])
def test_draws_without_a_measure_favour_no_side(relation, bound):
    values = drawn(0.5)
    assert judge(sampled({"": values}, 3), relation, bound).verdict == "holds"
    values[1:40] = np.nan
    found = judge(sampled({"": values}, 3), relation, bound)
    assert found.verdict == "undecided"
    assert found.p == pytest.approx(40 / 401)


def test_a_run_without_the_measure_leaves_the_median_of_the_others():
    frame = sampled({"": np.r_[np.nan, 0.4, 0.6, drawn(0.5)]}, n=3, runs=3)
    found = judge(frame, ">", 0.3)
    assert (found.estimate, found.lowest_run, found.highest_run) == (0.5, 0.4, 0.6)


def test_the_verdict_turns_where_the_table_says():
    frame = sampled({"a": drawn(0.6), "b": drawn(0.7, seed=1)}, n=10)
    found = judge(frame, ">", 0.5)
    for shift, verdict in ((-1e-6, "holds"), (1e-6, "undecided")):
        assert judge(frame, ">", found.turns_low + shift).verdict == verdict
    for shift, verdict in ((-1e-6, "undecided"), (1e-6, "does not hold")):
        assert judge(frame, ">", found.turns_high + shift).verdict == verdict


def test_a_claim_that_its_control_fulfils_says_so():
    frame = sampled({"": drawn(0.6)}, n=3, control={"": 0.58})
    table = claim_table([claim(control="random heads")], {"A1": frame}, drawn="sequences")
    assert table.loc[0, ["verdict", "control_verdict", "control_value"]].tolist() == [
        "holds", "holds", "random heads: 58%",
    ]  # fmt: skip
    assert short_table(table).loc[0, "mark"] == "✓ †"
    apart = claim_table([claim()], {"A1": frame.assign(control=0.2)})
    assert apart.loc[0, "control_verdict"] == "does not hold"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {id: A1, shade: red}", "unknown field 'shade'"),
        ("- {id: A1, brief: b}", "claim A1"),
        ("- {id: A1, brief: b, statement: s, source: s, definition: d, published: p, relation: '~', bound: 1}",
         "one of"),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_named(tmp_path, text, message):
    path = tmp_path / "claims.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_claims(path)


def test_a_bound_keeps_the_decimal_that_its_unit_would_round_away():
    claims = [claim(bound=bound) for bound in (0.725, 0.1)]
    asked = short_table(claim_table(claims, {}), claims)["asked"]
    assert asked.tolist() == ["> 72.5%", "> 10%"]
