"""The paired tests of answers: the exact McNemar test, its power, and the least change that a sample can show."""

from functools import cache

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize, stats
from statsmodels.stats.power import TTestPower

POWER = 0.8


def mcnemar(
    gains: Int[np.ndarray, " variant"], lost: Int[np.ndarray, " variant"]
) -> Float[np.ndarray, " variant"]:
    """Two-sided p of the exact McNemar test from the numbers of answers put right and put wrong; 1 for none."""
    return np.minimum(1, 2 * stats.binom.cdf(np.minimum(gains, lost), gains + lost, 0.5))


@cache
def least_accuracy(gains: int, n: int, alpha: float = 0.05, power: float = POWER) -> float:
    """The least loss of accuracy that the exact McNemar test finds with this power, `gains` answers of n put right.

    NaN where no loss is large enough.
    """
    gain = gains / n
    largest = 1 - 2 * gain

    def lacking(loss: float) -> float:
        return mcnemar_power(gain, gain + loss, n, alpha) - power

    if largest <= 0 or lacking(largest) < 0:
        return float("nan")
    return float(optimize.brentq(lacking, 1e-9, largest, xtol=1e-6))


def mcnemar_power(gain: float, lost: float, n: int, alpha: float = 0.05) -> float:
    """How often the two-sided exact McNemar test of n sequences finds a loss.

    `gain` and `lost` are the shares of sequences whose answers are put right and put wrong.
    """
    pairs = np.arange(n + 1)
    critical = stats.binom.ppf(alpha / 2, pairs, 0.5)
    critical = np.where(2 * stats.binom.cdf(critical, pairs, 0.5) > alpha, critical - 1, critical)
    found = stats.binom.cdf(critical, pairs, gain / (gain + lost))
    return float(stats.binom.pmf(pairs, n, gain + lost) @ found)


@cache
def least_effect(n: int, alpha: float, power: float) -> float:
    """The least mean over standard deviation that a two-sided paired t test finds."""
    return float(TTestPower().solve_power(nobs=n, alpha=alpha, power=power, alternative="two-sided"))
