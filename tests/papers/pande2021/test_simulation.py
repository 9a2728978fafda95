import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from studies import error_of

from analysis.papers.pande2021 import simulation
from analysis.papers.pande2021.simulation import (
    HEADS,
    SHAPES,
    family_size,
    least_sequences,
    resampling_limit,
    t_test_size,
)
from analysis.statistics.significance import adjust, role_table


def rate(table: pd.DataFrame, rule: str, effect: float = 0.0) -> float:
    return table[(table["rule"] == rule) & (table["effect"] == effect)]["rate"].item()


@pytest.mark.parametrize("shape", SHAPES)
def test_mean_is_zero_and_sd_one(shape):
    """Five standard errors of a large sample; the sd's comes from the sample's own fourth moment."""
    scores = SHAPES[shape](np.random.default_rng(3), (2_000_000,))
    assert abs(scores.mean()) < 5 / np.sqrt(len(scores))
    squares = scores**2
    assert abs(squares.mean() - 1) < 5 * squares.std() / np.sqrt(len(scores))


@pytest.mark.parametrize("n", [5, 20, 100])
def test_normal_scores_have_the_nominal_size(n):
    """With the sample standard deviation; without, the size is that of a t larger by sqrt(n / (n - 1))."""
    table = t_test_size("symmetric", n, 20_000, seed=2)
    critical = stats.t(n - 1).isf(0.05)
    inflated = stats.t(n - 1).sf(critical * np.sqrt((n - 1) / n))
    for rule, size in (("t", 0.05), ("t_published", inflated)):
        assert abs(rate(table, rule) - size) < 4 * np.sqrt(size * (1 - size) / 20_000)


def test_the_rate_is_that_of_the_rejections_counted_one_by_one():
    table = t_test_size("zero_inflated", 8, 200, seed=9, effects=(0.5,))
    scores = SHAPES["zero_inflated"](simulation._generator(9, "zero_inflated", 8, stream=0), (8, 200)) + 0.5
    varied = [column for column in scores.T if len(set(column)) > 1]
    assert len(varied) < 200  # some samples hold the lowest score only, and cannot be tested
    p = np.array([stats.ttest_1samp(column, 0, alternative="greater").pvalue for column in varied])
    assert rate(table, "t", 0.5) == (p < 0.05).sum() / 200


def test_labels_are_those_of_the_role_table():
    """The role table is what the study uses: it must give the same audited labels on the same scores."""
    scores = SHAPES["left_skewed"](np.random.default_rng(11), (25, HEADS))
    effects = (0.0, 0.5)
    labels = simulation._family(scores, effects, 0.05, 199, 20, seed=3)
    shifted = np.stack([scores + effect for effect in effects], axis=1).reshape(25, 2, 12, 12)
    names = {"role": [*effects], "layer": range(12), "head": range(12)}
    array = xr.DataArray(shifted, names, ("sequence", "role", "layer", "head"))
    table = role_table(array, tau=0.0, alpha=0.05, minimum=20, resamples=199, seed=3)
    for effect, (bound, adjusted, audited) in zip(effects, labels, strict=True):
        rows = table[table["role"] == effect]
        np.testing.assert_array_equal(audited, rows["assigned_audited"])
        np.testing.assert_array_equal(adjusted, adjust(rows["p"].to_numpy(), "fdr_by") < 0.05)
        np.testing.assert_array_equal(bound, rows["lower_bootstrap_t"] > 0)
    assert labels[0, 2].sum() < labels[1, 2].sum()


def test_size_and_power_of_the_controlled_label():
    symmetric = family_size("symmetric", 40, 4, effects=(0.0, 0.5, 1.0), controlled=True)
    assert rate(symmetric, "controlled") < 0.01
    assert rate(symmetric, "controlled", 0.5) < rate(symmetric, "controlled", 1.0)
    assert rate(symmetric, "controlled", 1.0) > 0.9
    assert "families is 1" in error_of(family_size, "symmetric", 20, 1)


def test_resampled_p_cannot_survive_by_alone():
    limit = resampling_limit(999)
    assert limit.p == 0.001
    assert limit.alone == pytest.approx(0.001 * 5.55 * HEADS, rel=1e-3)
    assert limit.heads == 16  # 0.7993 / 16 < 0.05 < 0.7993 / 15
    assert resampling_limit(limit.resamples).heads == 1
    assert resampling_limit(limit.resamples - 1).heads == 2
    assert resampling_limit(99).heads is None


def test_least_sequences_for_every_shape():
    """The worst shape decides, and a larger n must not err more often again."""
    rates = {"a": [0.0, 0.0, 0.2, 0.1], "b": [0.9, 0.05, 0.0, 0.02]}
    wide = pd.DataFrame(rates | {"n": [20, 100, 500, 1000]})
    table = wide.melt("n", var_name="shape", value_name="rate").assign(effect=0.0, rule="audited_family")
    other = table.assign(effect=0.5, rate=1.0)
    assert least_sequences(pd.concat([table, other])) == 1000
    assert least_sequences(table[table["n"] < 500]) == 100
    assert least_sequences(table[table["n"] < 100]) is None
    assert least_sequences(table, allowed=0.2) == 100


def test_the_least_number_of_sequences_keeps_false_labels_of_families_rare():
    """Left-skewed scores: a third of the families or more err at n = 20, about a tenth at the study's least n."""
    few, enough = (
        family_size("left_skewed", n, 20, resamples=199).set_index("rule")["rate"] for n in (20, 100)
    )
    assert few["audited_family"] > 0.2
    assert enough["t_by_family"] > 0.4
    assert enough["audited_family"] < 0.2
