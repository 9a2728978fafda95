import warnings

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.bootstrap import bca_interval
from analysis.statistics.resampling import Clusters, counted, has_spread, lower_bound

TAU, ALPHA, RESAMPLES, SEED = 3.0, 0.05, 199, 4


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(3).gamma(2, 1.6, size=(30, 4))


def drawn(n: int) -> np.ndarray:
    """The resamples that scipy draws with SEED."""
    return np.random.default_rng(SEED).integers(0, n, size=(RESAMPLES, n))


def ends(values: np.ndarray, clusters: np.ndarray | None = None) -> np.ndarray:
    """Low and high of the BCa interval, and the lower bound of the bootstrap-t."""
    bound = lower_bound(Clusters.of(values, clusters), ALPHA, RESAMPLES, SEED)
    return np.stack([*bca_interval(values, clusters, ALPHA, RESAMPLES, SEED), bound])


def test_moments_of_resampled_clusters_are_those_of_their_sequences(values):
    clusters = np.repeat(np.arange(10), 3)
    indices = drawn(10)
    moments = Clusters.of(values, clusters).moments(counted(indices, 10))
    for index, mean, sd in zip(indices, moments.mean, moments.sd, strict=True):
        expected = np.concatenate([values[clusters == cluster] for cluster in index])
        np.testing.assert_allclose(mean, expected.mean(axis=0))
        np.testing.assert_allclose(sd, expected.std(axis=0, ddof=1))
    np.testing.assert_allclose(Clusters.of(values).moments().error, stats.sem(values))
    totals = values.reshape(10, 3, -1).sum(axis=1)  # of clusters of one size, whose means are the units
    np.testing.assert_allclose(Clusters.of(values, clusters).moments().error, stats.sem(totals / 3))


def test_equal_scores_have_no_spread_at_all(values):
    # 0.1 * n / n is not 0.1 in floating point: what rounding leaves must not count as spread.
    equal = Clusters.of(np.full((7, 3), [4.0, 0.1, 1e6 / 3])).moments()
    of_one_sequence = Clusters.of(values).moments(30 * np.eye(30))
    for moments in (equal, of_one_sequence):
        assert (moments.error == 0).all()
        assert (moments.sd == 0).all()
    rounding = 2e-7 * np.random.default_rng(0).standard_normal((50, 1))  # a difference of equal scores
    assert Clusters.of(rounding).moments().error > 0
    assert Clusters.of(rounding, size=np.array([6.0])).moments().error == 0
    assert has_spread(np.array([2.0, 1e-7]), np.array([1.2e-4, 1e-7])).all()


def test_lower_bound_equals_a_loop_over_resamples_in_batches_too(values, monkeypatch):
    monkeypatch.setattr("analysis.statistics.resampling.BATCH", 30 * 50)  # four batches, the same draws
    bounds = lower_bound(Clusters.of(values), ALPHA, RESAMPLES, SEED)
    for bound, sample in zip(bounds, values.T, strict=True):
        mean, error = sample.mean(), stats.sem(sample)
        resampled = sample[drawn(len(sample))]
        t = (resampled.mean(axis=1) - mean) / stats.sem(resampled, axis=1)
        tenth_largest = np.sort(t)[-10]  # 0.05 * (1 + 199)
        assert bound == pytest.approx(mean - tenth_largest * error)


@pytest.mark.parametrize(
    ("column", "clusters"),
    [
        ([0.1] * 6, [0, 0, 1, 1, 2, 2]),
        ([5.0], None),
        ([], []),
        ([4.0, 5.0, 6.0], [1, 1, 1]),
        ([3.0, 5.0, 2.0, 6.0], [0, 0, 1, 1]),  # equal cluster means
    ],
)
def test_no_spread_gives_no_interval_and_no_warning(column, clusters):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values, units = np.array(column)[:, None], None if clusters is None else np.array(clusters, dtype=int)
        assert np.isnan(bca_interval(values, units, ALPHA, RESAMPLES, SEED)).all()
        if len(values):
            assert np.isnan(ends(values, units)).all()


def test_a_score_at_its_ceiling_is_never_sure():
    # More than a third of the resamples lack the one low score: they have no spread, and t is infinite.
    values = np.array([[4.0]] * 19 + [[0.0]])
    assert stats.ttest_1samp(values, TAU, alternative="greater").pvalue < 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (low,), (high,), (bound,) = ends(values)
    assert bound == -np.inf
    assert low < 3.8 < high


def test_bootstrap_t_repairs_part_of_what_skew_does_to_the_t_test():
    # Published sizes at n = 20, one-sided: t test 0.8 % and 17.2 %, bootstrap-t 2.9 % and 10.5 %.
    right = np.random.default_rng(12).lognormal(size=(20, 1000)) - np.exp(0.5)
    for values, expected, by_t in ((right, 0.029, 0.008), (-right, 0.105, 0.172)):
        size = (lower_bound(Clusters.of(values)) > 0).mean()
        t_size = (stats.ttest_1samp(values, 0, alternative="greater").pvalue < ALPHA).mean()
        assert size == pytest.approx(expected, abs=3 * np.sqrt(expected / 1000))
        assert t_size == pytest.approx(by_t, abs=3 * np.sqrt(by_t / 1000))
        assert abs(size - ALPHA) < abs(t_size - ALPHA)


def test_the_last_bits_of_scores_decide_nothing():
    """One far score among scores that differ by rounding: a third of the resamples lack it."""
    values = 1 + 1e-8 * np.random.default_rng(3).normal(size=(40, 1))
    values[0] = 0.1
    once, again = (ends(values + shift * 1e-8 * (np.arange(40)[:, None] % 2)) for shift in (0, 1))
    np.testing.assert_allclose(again, once, rtol=1e-5)
