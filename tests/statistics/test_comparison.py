import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from headtables import score_array
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from analysis.statistics.comparison import TESTS, compare, sign_flip
from analysis.statistics.significance import Rule

ROLES, LAYERS, HEADS, N = ["local", "nsubj"], 3, 4, 40
FAST, FLIPS = Rule(resamples=199), 999
RARE = slice(None, None, 2)  # the sequences without nsubj


def scores(values: np.ndarray) -> xr.DataArray:
    return score_array(values.astype(np.float32), ROLES, cluster=np.arange(len(values)) // 2)


def labels(array: xr.DataArray) -> pd.DataFrame:
    """A role table that says a head has the role where its mean score exceeds 3."""
    means = array.mean("sequence").to_series().rename("mean").reset_index()
    return means.assign(assigned_corrected=(means["mean"] > 3).astype("boolean"))


@pytest.fixture
def states() -> tuple[xr.DataArray, xr.DataArray]:
    """Scores that differ by noise, but for heads that move: of `local`, (1, 2) up past 3, (2, 0) down below it."""
    rng = np.random.default_rng(3)
    before = rng.gamma(4, 0.4, (N, len(ROLES), LAYERS, HEADS))
    before[:, :, 2, :2] += 3
    after = before + rng.normal(0, 0.3, before.shape)
    after[:, 0, 1, 2] += 4
    after[:, 0, 2, 0] -= 3
    for array in (before, after):
        array[RARE, 1] = np.nan
    return scores(before), scores(after)


def compared(before: xr.DataArray, after: xr.DataArray, rule: Rule = FAST, margin=0.5) -> pd.DataFrame:
    return compare(before, after, labels(before), labels(after), rule, margin, FLIPS)


def test_equals_scipy_and_statsmodels_head_by_head(states):
    before, after = states
    table = compared(before, after, margin=0.4)
    for _, family in table.groupby("role"):
        adjusted = multipletests(family["p_sign_flip"], method="fdr_by")[1]
        np.testing.assert_allclose(family["p_by"], adjusted)
    for row in table.itertuples():
        head = {"role": row.role, "layer": row.layer, "head": row.head}
        first, second = (state.sel(head).dropna("sequence").values.astype(float) for state in states)
        assert (row.pretrained, row.finetuned) == pytest.approx((first.mean(), second.mean()))
        assert row.difference == pytest.approx(np.mean(second - first))
        tested = stats.ttest_rel(second, first)
        assert row.p == pytest.approx(tested.pvalue)
        assert (row.low, row.high) == pytest.approx([*tested.confidence_interval(0.95)])
        assert row.p_equivalence == pytest.approx(ttost_paired(second, first, -0.4, 0.4)[0])


def test_all_flips_of_few_sequences_are_exact():
    difference = np.random.default_rng(0).normal(0.5, 1, (10, 6))
    for column, p in zip(difference.T, sign_flip(difference), strict=True):
        flips = 1 - 2 * ((np.arange(2**10)[:, None] >> np.arange(10)) & 1)
        extreme = np.abs(flips @ column) >= abs(column.sum()) * (1 - 1e-12)
        assert p == pytest.approx(extreme.mean())


def test_planted_changes_are_found(states):
    table = compared(*states)
    local = table[table["role"] == "local"].set_index(["layer", "head"])["change"]
    assert local.loc[[(1, 2), (2, 0), (2, 1)]].tolist() == ["gained", "lost", "kept"]
    assert local.value_counts()["equivalent"] == 9


def test_a_change_needs_evidence_that_survives_the_correction(states):
    before, after = (state.copy() for state in states)
    after[:, 0, 0, 0] = before[:, 0, 0, 0] + np.linspace(-1, 1.6, N)
    tables = labels(before), labels(after)
    tables[1].loc[0, "assigned_corrected"] = True
    row = compare(before, after, *tables, Rule(alpha=0.1, resamples=199), permutations=FLIPS).loc[0]
    assert row["p_sign_flip"] < 0.1 < row["p_by"]
    assert row["change"] == "inconclusive"
    # Labels that contradict the scores, and a scatter too wide for equivalence.
    swapped = compare(*states, labels(states[1]), labels(states[0]), FAST)
    assert set(swapped["change"]) == {"kept", "equivalent", "inconclusive"}
    assert set(compared(*states, margin=0.001)["change"]) == {"gained", "lost", "kept", "inconclusive"}


@pytest.mark.parametrize("present", [1, 2])
def test_one_sequence_has_a_difference_but_no_test(states, present):
    before, after = (state.copy() for state in states)
    before[present:, 1], after[present:, 1] = np.nan, np.nan
    before[:present, 1], after[:present, 1] = 1.0, np.arange(1, 1 + present).reshape(-1, 1, 1)
    rare = compared(before, after).query("role == 'nsubj'")
    assert rare["difference"].notna().all()
    assert rare[TESTS].isna().all(axis=None) == (present == 1)


@pytest.mark.parametrize(
    ("shift", "p", "p_equivalence", "change"),
    [(0.0, 1, 0, "equivalent"), (0.25, 0, 0, "equivalent"), (0.75, 0, 1, "inconclusive")],
)
def test_constant_difference_is_exact(states, shift, p, p_equivalence, change):
    before = states[0].copy(data=np.round(states[0] * 8) / 8)  # exact in binary, as is the shift
    after = before.copy()
    after[:, 0, 0, 0] += shift
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = compared(before, after).loc[0]
    assert (row["p"], row["p_equivalence"], row["change"]) == (p, p_equivalence, change)
    assert (row["low"], row["difference"], row["high"]) == (shift, shift, shift)
    assert (row["p_sign_flip"] == 1) == (shift == 0)


def test_doubled_sequences_count_once_as_clusters(states):
    local = [state.sel(role=["local"]) for state in states]
    doubled = []
    for state in local:
        copies = [state.assign_coords(sequence=[f"{number}-{copy}" for number in range(N)]) for copy in "ab"]
        clusters = ("sequence", [*range(N), *range(N)])
        doubled.append(xr.concat(copies, "sequence").assign_coords(cluster=clusters))
    single = compared(*local)
    clustered, naive = compared(*doubled, Rule(resamples=199, unit="cluster")), compared(*doubled)
    columns = ["difference", *TESTS]
    pd.testing.assert_frame_equal(clustered[columns], single[columns], rtol=1e-6)
    assert (naive["high"] - naive["low"] < 0.9 * (single["high"] - single["low"])).all()
