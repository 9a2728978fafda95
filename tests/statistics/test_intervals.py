import numpy as np
import pytest
from scipy import stats

from analysis.statistics.claims import judge
from analysis.statistics.effects import auc_parts
from analysis.statistics.intervals import crossed_interval, draws_interval, mean_interval, wilson_interval
from analysis.statistics.resampling import resampled

SEQUENCES, STUDIES = 60, 300


@pytest.mark.parametrize("units", [4, 16, 40])
def test_units_at_the_threshold_seldom_contradict(units):
    """The outer quantiles of 499 draws would contradict in up to .087 of the studies; nominal is .025 for one side."""
    rng, contradicting = np.random.default_rng(0), 0
    counts = resampled(SEQUENCES, 199, 1)
    for _ in range(STUDIES):
        draws = counts @ rng.standard_normal((SEQUENCES, units)) / SEQUENCES
        ends = np.array([draws_interval(column) for column in draws.T]).T
        contradicting += judge(*ends, threshold=0).contradicting > 0
    assert contradicting / STUDIES <= 0.025 + 0.025


@pytest.mark.parametrize(("runs", "least"), [(3, 0.91), (5, 0.93), (8, 0.93)])
def test_means_over_runs_and_items_are_covered(runs, least):
    """Runs differ by 5 points, items by far more; the pigeonhole bootstrap covers .89 with 3 runs."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1500):
        chance = 0.7 + 0.05 * rng.standard_normal((runs, 1)) + 0.15 * rng.standard_normal(400)
        _, low, high = crossed_interval((rng.random((runs, 400)) < chance).astype(float))
        covered += low <= 0.7 <= high
    assert least <= covered / 1500 <= 0.99


def test_a_difference_has_the_variance_of_both_sets_of_runs():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1000):
        items = rng.standard_normal(200)
        first, second = (
            items + rng.standard_normal((runs, 1)) + rng.standard_normal((runs, 200)) for runs in (4, 5)
        )
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
    by_draws = np.array([share_by_draws(count, n) for count in counts])
    covers = (by_draws[:, 0] <= share) & (share <= by_draws[:, 1])
    assert (stats.binom.pmf(counts, n, share) @ covers > 0.925) == (share == 0.5)


def share_by_draws(count: int, n: int) -> tuple[float, float]:
    """The interval of a share +- 1.96 of the standard deviation that its bootstrap draws have."""
    half = 1.96 * np.sqrt(count * (n - count) / n**3)
    return count / n - half, count / n + half


@pytest.mark.parametrize(("before", "after"), [(0.96, 0.96), (0.96, 0.94), (0.96, 0.90)])
def test_differences_of_aucs_near_1_are_covered(before, after):
    """DeLong's interval of a single AUC of .96 covers .90; only differences are judged, and these are paired."""
    rng, positive, covered, too_low = np.random.default_rng(0), np.arange(120) % 2 == 0, 0, 0
    first, second = (np.sqrt(2) * stats.norm.ppf(auc) * positive for auc in (before, after))
    for _ in range(1000):
        noise, other = rng.standard_normal((2, 1, 120))
        parts = [
            auc_parts(scores, positive) for scores in (first + noise, second + 0.9 * noise + 0.436 * other)
        ]
        _, low, high = crossed_interval(parts[0] - parts[1])
        covered += low <= before - after <= high
        too_low += low > before - after
    assert covered / 1000 > 0.92
    assert too_low / 1000 < 0.025  # seldom a fall that is not there


@pytest.mark.parametrize(("sequences", "least", "most"), [(1, 0.8, 0.9), (20, 0.93, 0.97), (50, 0.93, 0.97)])
def test_means_of_ten_blocks_are_covered_though_sequences_are_skewed(sequences, least, most):
    """Lognormal sequences (skewness 6); an interval over ten of them, instead of ten blocks, covers .85."""
    values = np.random.default_rng(0).lognormal(0, 1, (2000, 10, sequences)).mean(axis=-1)
    ends = np.array([mean_interval(row) for row in values])
    covered = np.mean((ends[:, 1] <= np.exp(0.5)) & (np.exp(0.5) <= ends[:, 2]))
    assert least < covered < most


def test_the_interval_of_a_mean_is_that_of_scipy():
    values = np.random.default_rng(0).normal(2, 1, 7)
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean_interval(values) == pytest.approx((values.mean(), *interval))
    assert np.isnan(mean_interval(values[:1])[1:]).all()


def test_runs_add_their_variance_to_that_of_draws():
    """Three runs whose values differ and whose draws do not: the interval is the t interval of the three values."""
    runs = np.array([1.0, 2.0, 4.0])
    interval = stats.ttest_1samp(runs, 0).confidence_interval(0.95)
    assert draws_interval(np.tile(runs[:, None], 100)) == pytest.approx((runs.mean(), *interval))
