"""Matching heads: planted heads are found, costs are ranked exactly, and every claim can hold and fail."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.statistics.claims import UNTESTABLE, judge
from analysis.synthesis import matching
from analysis.synthesis.matching import CLAIMS, ROLES

LAYERS, HEADS, N = 3, 4, 150
OWN = [(1, 1), (2, 0)]


def scores(planted: float = 20.0) -> xr.DataArray:
    """Random scores of pairs, of which a third share no word; the heads OWN attend to matching pieces."""
    rng = np.random.default_rng(0)
    values = rng.gamma(2, 0.5, (N, len(ROLES), LAYERS, HEADS))
    for layer, head in OWN:
        values[:, 0, layer, head] += planted
    values[::3] = np.nan
    axes = {"sequence": range(N), "role": [*ROLES], "layer": range(LAYERS), "head": range(HEADS)}
    return xr.DataArray(values, axes, [*axes], attrs={"arithmetic": "corrected"})


def places(found: pd.DataFrame) -> list[tuple[int, int]]:
    return [*found.loc[found["assigned"].fillna(False), ["layer", "head"]].itertuples(index=False, name=None)]


def test_planted_heads_match():
    found = matching.matching_table(scores())
    assert places(found) == OWN
    row = found.set_index(["layer", "head"]).loc[1, 1]
    assert row["low"] < row["match"] < row["high"]


def test_a_head_that_attends_to_all_words_of_the_other_text_does_not_match():
    both = scores()
    both.loc[{"role": "match_control"}] = both.sel(role="match").values
    assert places(matching.matching_table(both)) == []


def test_too_few_pairs_with_a_shared_word_are_untestable():
    assert matching.matching_table(scores()[:120])["assigned"].isna().all()


def test_costs_are_changes_of_the_loss():
    logits = np.log([[[0.5, 0.5], [0.9, 0.1]], [[0.25, 0.75], [0.9, 0.1]]])  # "none", then a head
    array = xr.DataArray(logits, dims=("intervention", "sequence", "class"))
    assert matching.costs(array, np.array([0, 0])).ravel() == pytest.approx([np.log(2), 0])


def test_exact_p_counts_every_set_of_the_same_layers():
    costs = np.random.default_rng(1).random((LAYERS, HEADS))
    found, sets = matching.exact_p(costs, OWN)
    sums = [costs[1, one] + costs[2, other] for one, other in product(range(HEADS), repeat=2)]
    assert (found, sets) == (np.mean(np.array(sums) >= costs[1, 1] + costs[2, 0] - 1e-12), HEADS**2)
    many, drawn = matching.exact_p(np.tile(costs, 10), [(0, head) for head in range(10)], most=40_000)
    assert 0 < many < 1
    assert drawn < 40_000


def cost(own: float, others: float = 0.02, spread: float = 0.05) -> np.ndarray:
    """Costs of N sequences for all heads; those of OWN differ."""
    rng = np.random.default_rng(2)
    values = rng.normal(others, spread, (N, LAYERS * HEADS))
    for layer, head in OWN:
        values[:, layer * HEADS + head] = rng.normal(own, spread, N)
    return values


def test_lead_over_the_costliest_other_head():
    costs = cost(0.5)
    own = np.isin(np.arange(LAYERS * HEADS), [layer * HEADS + head for layer, head in OWN])
    found = matching.lead(costs, own)
    means = costs.mean(axis=0)
    assert found[0] == pytest.approx(means[own].mean() - means[~own].max())
    assert found[1:].std() > 0


def heads(planted: float, untrained: float) -> pd.DataFrame:
    parts = [
        matching.matching_table(scores(value)).assign(task="mrpc", state=state, seed=-1)
        for state, value in (("pretrained", planted), ("untrained", untrained))
    ]
    return pd.concat(parts, ignore_index=True)


PLACES = pd.DataFrame([*product(range(LAYERS), range(HEADS))], columns=["layer", "head"]).assign(role="local")


def verdicts(**changed: object) -> dict[str, str]:
    given = {
        "heads": heads(20, 0),
        "own": OWN,
        "costs": {"mrpc": cost(0.5), "sst-2": cost(0.0, 0.2)},
        "edges": {"mrpc": np.stack([np.full(N, 0.4), np.full(N, 0.05), np.full(N, 0.5)])},
        "roles": {"mrpc": PLACES.assign(mean=np.arange(LAYERS * HEADS)[::-1])},
        "pairs": ["mrpc"],
    }
    frames = matching.frames(**(given | changed))
    return {
        claim.id: judge(frames[claim.id], claim.relation, claim.bound, claim.units).verdict
        for claim in CLAIMS
    }


def test_claims_hold_where_planted_heads_cost_most():
    found = verdicts()
    assert found.pop("R1") == "undecided"  # two of twelve heads are more than a tenth, but not surely
    assert set(found.values()) == {"holds"}


def test_claims_fail_one_by_one():
    assert verdicts(heads=heads(0, 0))["R2"] == "does not hold"
    assert verdicts(costs={"mrpc": cost(0.0, 0.2), "sst-2": cost(0.0, 0.2)})["R3"] == "does not hold"
    assert verdicts(costs={"mrpc": cost(0.5), "sst-2": cost(0.5)})["R4"] == "does not hold"
    little = np.stack([np.full(N, 0.05), np.full(N, 0.05), np.full(N, 0.5)])
    assert verdicts(edges={"mrpc": little})["R5"] == "does not hold"
    told = PLACES.assign(mean=[float(place in OWN) for place in product(range(LAYERS), range(HEADS))])
    assert verdicts(roles={"mrpc": told})["R6"] == "does not hold"
    none = verdicts(own=[], edges={})
    assert {none[name] for name in ("R3", "R4", "R5", "R6")} == {UNTESTABLE}


def test_groups_have_means_and_intervals():
    values = np.array([1.0, 2.0, 3.0, -1.0])
    found = matching.by_group(values, {"first": np.array([1, 1, 1, 0], bool), "none": np.zeros(4, bool)})
    assert found.iloc[0][["group", "n", "mean"]].tolist() == ["first", 3, 2.0]
    assert found["low"][0] <= 2 <= found["high"][0]
    assert np.isnan(found["mean"][1])
