import numpy as np
import pytest
import xarray as xr
from headtables import score_array
from studies import error_of

from analysis.papers.pande2021.robustness import TAUS, label_stability, tau_sweep
from analysis.statistics.significance import Rule, published_table

MEANS = np.array([[2.0, 6.0, 0.5], [3.5, 1.0, 3.1]])  # layers x heads


@pytest.fixture
def scores() -> xr.DataArray:
    """120 sequences of two roles; half of them lack the second, whose scores scatter more."""
    noise = np.random.default_rng(3).normal(size=(120, 2, 2, 3))
    noise -= noise.mean(axis=0)
    values = MEANS + noise * np.array([0.4, 2.0])[:, None, None]
    values[::2, 1] = np.nan
    return score_array(values, ["local", "nsubj"])


def test_a_sweep_counts_the_published_labels_at_each_threshold(scores):
    sweep = tau_sweep(scores, rule=Rule(2.5)).set_index(["role", "tau"])
    for tau in TAUS:
        table = published_table(scores, Rule(tau))
        heads = table.groupby("role")["assigned"].sum()
        assert sweep.xs(tau, level="tau")["heads"].to_dict() == heads.to_dict()
    # Heads of mean 6, 3.5 and 3.1 at 2.5; that of mean 2 joins them below 2.
    local = sweep.loc["local", "jaccard"]
    assert (local[1.75], local[2.5], local[3.25]) == pytest.approx((3 / 4, 1, 2 / 3))


def test_labels_on_all_sequences_are_stable_and_larger_sizes_are_left_out(scores):
    stability = label_stability(scores, [20, 120, 500], draws=5)
    assert stability["role"].tolist() == ["local", "nsubj"] * 2
    assert stability["size"].tolist() == [20, 20, 120, 120]
    whole = stability[stability["size"] == 120]
    assert (whole[["agreement", "jaccard"]] == 1).all(axis=None)
    assert (whole["heads"] == whole["heads_full"]).all()
    assert stability["agreement"].iloc[0] < 1  # the head of mean 3.1
    assert "sizes are [500]" in error_of(label_stability, scores, [500])
