import numpy as np
import pytest
from scipy import stats

from analysis.statistics.intervals import crossed_interval, draws_interval, mean_interval, wilson_interval


@pytest.mark.parametrize(("runs", "least"), [(3, 0.91), (5, 0.93), (8, 0.93)])
def test_means_over_runs_and_items_are_covered(runs, least):
    """Runs differ by 5 points, items by far more; the pigeonhole bootstrap covers .89 with 3 runs."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1500):
        chance = 0.7 + 0.05 * rng.standard_normal((runs, 1)) + 0.15 * rng.standard_normal(400)
        _, low, high = crossed_interval((rng.random((runs, 400)) < chance).astype(float))
        covered += low <= 0.7 <= high
    assert least <= covered / 1500 <= 0.99


def test_means_of_blocks_of_skewed_sequences_are_covered():
    """Ten blocks of 20 lognormal sequences; ten such sequences without blocks are covered in 85 % of all cases."""
    blocks = np.random.default_rng(0).lognormal(size=(1_000, 10, 20)).mean(axis=2)
    ends = np.array([mean_interval(means)[1:] for means in blocks])
    assert ((ends[:, 0] <= np.exp(0.5)) & (np.exp(0.5) <= ends[:, 1])).mean() > 0.92


def test_a_difference_has_the_variance_of_both_sets_of_runs():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1000):
        items = rng.standard_normal(200)
        effects = [rng.standard_normal((runs, 1)) + rng.standard_normal((runs, 200)) for runs in (4, 5)]
        first, second = (items + effect for effect in effects)
        _, low, high = crossed_interval(first, second)
        covered += low <= 0 <= high
    assert 0.93 <= covered / 1000 <= 0.98


def test_with_two_runs_the_interval_is_over_items_alone():
    values = np.random.default_rng(0).random((2, 50))
    items = values.mean(axis=0)
    expected = stats.ttest_1samp(items, 0).confidence_interval()
    assert crossed_interval(values)[1:] == pytest.approx(tuple(expected))
    other = values[:1] + np.random.default_rng(1).random(50)
    paired = stats.ttest_rel(items, other[0]).confidence_interval()
    assert crossed_interval(values, other)[1:] == pytest.approx(tuple(paired))
    assert crossed_interval(np.full((3, 5), 0.5)) == (0.5, 0.5, 0.5)  # without spread
    assert np.isnan(crossed_interval(np.full((3, 1), 0.5))[1:]).all()


@pytest.mark.parametrize(("share", "n"), [(0.02, 72), (0.97, 60), (0.5, 200), (0.005, 400)])
def test_shares_of_sequences_are_covered_near_0_and_1(share, n):
    """The standard deviation of draws covers .74 for p = .02 and n = 72, where a quarter of samples has no success."""
    square = stats.norm.ppf(0.975) ** 2
    assert wilson_interval(0, n) == pytest.approx((0, 0, square / (n + square)))
    counts = np.arange(n + 1)
    ends = np.array([wilson_interval(count, n) for count in counts])
    covers = (ends[:, 1] <= share) & (share <= ends[:, 2])
    assert stats.binom.pmf(counts, n, share) @ covers > 0.925


def test_runs_add_their_variance_to_that_of_draws():
    """Three runs whose values differ and whose draws do not: the interval is the t interval of the three values."""
    runs = np.array([1.0, 2.0, 4.0])
    interval = stats.ttest_1samp(runs, 0).confidence_interval(0.95)
    assert draws_interval(np.tile(runs[:, None], 100)) == pytest.approx((runs.mean(), *interval))
