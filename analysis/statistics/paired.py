"""The paired tests of answers: the exact McNemar test, its power, and the least change that a sample can show."""

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize, stats
from statsmodels.stats.power import TTestPower

POWER = 0.8
FEW = 10  # changed answers


def change_interval(
    gains: Int[np.ndarray, " variant"], lost: Int[np.ndarray, " variant"], n: int, alpha: float = 0.05
) -> Float[np.ndarray, "end variant"]:
    """Both ends of the interval of a change of accuracy, from how many of `n` answers turn right and wrong.

    The Wald interval after .5 is added to each of the four cells of the paired table (Agresti and Min 2005). Where
    fewer than FEW answers change, it misses losses without gains too often; there the ends are those of Clopper and
    Pearson 1934 for the share of answers that turn right minus the opposite ones for wrong, each at half the error.
    """
    gains, lost = np.asarray(gains), np.asarray(lost)
    total, change = n + 2, gains - lost
    error = np.sqrt(gains + lost + 1 - change**2 / total) / total
    wald = change / total + stats.norm.ppf(1 - alpha / 2) * error * np.array([[-1], [1]])
    (fewest, most), (fewest_lost, most_lost) = (share_limits(count, n, alpha / 2) for count in (gains, lost))
    return np.where(gains + lost < FEW, [fewest - most_lost, most - fewest_lost], wald)


def share_limits(
    successes: Int[np.ndarray, " variant"], n: int, alpha: float
) -> Float[np.ndarray, "end variant"]:
    """Both ends of the interval of Clopper and Pearson for a share of `n`."""
    low = stats.beta.ppf(alpha / 2, successes, n - successes + 1)
    high = stats.beta.ppf(1 - alpha / 2, successes + 1, n - successes)
    return np.stack([np.where(successes > 0, low, 0.0), np.where(successes < n, high, 1.0)])


class NotWorse(NamedTuple):
    """Whether a change loses at most a margin (None: inconclusive), its interval, and the reason if n is too small."""

    low: float
    high: float
    holds: bool | None
    reason: str = ""


def not_worse(gains: int, lost: int, n: int, margin: float, alpha: float = 0.05) -> NotWorse:
    """Whether a change of accuracy loses at most `margin` (a proportion), by its interval (`change_interval`).

    A margin below what `n` answers can show if none changes is inconclusive, whatever changes.
    """
    low, high = (float(end[0]) for end in change_interval(np.array([gains]), np.array([lost]), n, alpha))
    needed = int(
        np.ceil(np.log(alpha / 4) / np.log1p(-margin))
    )  # what `change_interval` needs if none changes
    if n < needed:
        return NotWorse(low, high, None, f"{n} answers: a margin of {margin:.2g} needs {needed}")
    if low >= -margin:
        return NotWorse(low, high, True)
    return NotWorse(low, high, False if high < -margin else None)


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
    power_by_pairs = stats.binom.cdf(critical, pairs, gain / (gain + lost))
    return float(stats.binom.pmf(pairs, n, gain + lost) @ power_by_pairs)


@cache
def least_effect(n: int, alpha: float, power: float) -> float:
    """The least mean over standard deviation that a two-sided paired t test finds."""
    effect = TTestPower().solve_power(nobs=n, alpha=alpha, power=power, alternative="two-sided")
    return float(np.ravel(effect)[0])  # statsmodels gives an array for some n
