import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from analysis.statistics.answers import METRICS
from analysis.statistics.changes import Compared, least_changes
from analysis.statistics.paired import change_interval, least_accuracy, mcnemar, mcnemar_power, not_worse

GAIN, LOST, SIZE = 0.03, 0.08, 150


def test_power_is_that_of_simulated_tests():
    rng = np.random.default_rng(0)
    gains, lost, _ = rng.multinomial(SIZE, [GAIN, LOST, 1 - GAIN - LOST], 4000).T
    result = ((mcnemar(gains, lost) < 0.05) & (lost > gains)).mean()
    assert mcnemar_power(GAIN, LOST, SIZE) == pytest.approx(result, abs=0.025)


def test_least_loss_has_the_power():
    """Five of five discordant answers have p = 1/16, six of six 1/32: 80 % of samples must hold six losses."""
    least = least_accuracy(4, SIZE, power=0.7)
    assert mcnemar_power(4 / SIZE, 4 / SIZE + least, SIZE) == pytest.approx(0.7, abs=1e-3)
    assert stats.binom.sf(5, 400, least_accuracy(0, 400)) == pytest.approx(0.8, abs=1e-3)


def test_least_loss_of_a_metric_is_that_of_the_answers_which_accuracy_needs():
    """F1 after turning wrong so many right answers, a share of each class, differs by about the least change."""
    n = 2000
    labels = (np.arange(n) % 3 == 0).astype(int)
    answers = np.where(np.arange(n) % 10 == 0, 1 - labels, labels)
    logits = np.eye(2)[answers][None]
    cells = METRICS["f1"].columns(logits, labels)
    (least,) = least_changes(Compared("f1", ["0-0"], cells[0], cells))
    wrong = int(round(least_accuracy(0, n) * n))
    right = np.flatnonzero(answers == labels)
    turned = right[np.linspace(0, len(right) - 1, wrong).astype(int)]
    after = answers.copy()
    after[turned] = 1 - after[turned]
    assert least == pytest.approx(f1_score(labels, answers) - f1_score(labels, after), rel=0.15)


def test_least_change_of_the_loss_is_found_by_the_t_test():
    rng = np.random.default_rng(1)
    n = 80
    base, other = np.cumsum(rng.normal(0, 1, (2, n, 1)), axis=0)
    answers = Compared("loss", ["0-0"], base, other[None])
    (least,) = least_changes(answers)
    sd = answers.difference[..., 0].std(ddof=1)
    samples = rng.normal(least, sd, (4000, n))
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.03)


def test_change_interval_by_hand():
    """Table of 3 gains and 8 losses among 100; the cells with .5 added sum to 102. Of 400 answers, 4 losses are few."""
    low, high = change_interval(np.array([3, 0]), np.array([8, 0]), 100)
    change, error = -5 / 102, np.sqrt(12 / 102 - (5 / 102) ** 2) / np.sqrt(102)
    assert (low[0], high[0]) == pytest.approx((change - 1.96 * error, change + 1.96 * error), rel=1e-4)
    end = 1 - 0.0125 ** (1 / 100)
    assert (low[1], high[1]) == pytest.approx((-end, end))
    assert change_interval(np.array([0]), np.array([4]), 400)[0] == pytest.approx(-0.028, abs=1e-4)


@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize(("gain", "lost"), [(0, 0.01), (0, 0.04), (0.002, 0.01), (0.01, 0.03), (0.02, 0.02)])
def test_changes_are_covered_where_few_answers_change(n, gain, lost):
    """The Wald interval alone covers .907 of samples in which 1 % of 400 answers turn wrong and none right."""
    right, wrong = (counts.ravel() for counts in np.indices((50, 50)))
    low, high = change_interval(right, wrong, n)
    chance = stats.binom.pmf(right, n, gain) * stats.binom.pmf(wrong, n - right, lost / (1 - gain))
    assert chance @ ((low <= gain - lost) & (gain - lost <= high)) >= 0.94


@pytest.mark.parametrize("discordant", [0.02, 0.04, 0.1])
@pytest.mark.parametrize("n", [100, 400])
def test_a_loss_as_large_as_the_margin_is_seldom_accepted(n, discordant):
    """The lower end of a BCa interval accepts .13 of the samples of 100 in which only losses occur."""
    margin, rng = 0.02, np.random.default_rng(0)
    cells = rng.multinomial(n, [(discordant - margin) / 2, (discordant + margin) / 2, 1 - discordant], 4000)
    accepted = [not_worse(gains, lost, n, margin).holds is True for gains, lost, _ in cells.tolist()]
    assert np.mean(accepted) <= 0.05


def test_a_margin_that_no_sample_of_this_size_shows_is_inconclusive():
    result = not_worse(0, 0, 100, 0.02)
    assert (result.holds, result.reason) == (None, "100 answers: a margin of 0.02 needs 217")
    assert not_worse(0, 0, 217, 0.02).holds is True
    assert not_worse(0, 60, 217, 0.02).holds is False
    assert not_worse(3, 8, 217, 0.02).holds is None
