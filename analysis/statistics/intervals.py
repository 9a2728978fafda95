"""95 % intervals: of means over units, over runs and items, of draws of the bootstrap."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Num, Shaped
from scipy import stats

from analysis.statistics.resampling import Clusters, quiet

MINIMUM_RUNS = 3  # with fewer, an interval is over items alone


Interval = tuple[float, float, float]  # value, low, high


class OverRuns(tuple[float, float, float]):
    """An interval, with the variance between its runs where there are three or more."""

    between: float = np.nan


def t_interval(value: float, variances: Sequence[tuple[float, float | int]]) -> OverRuns:
    """A value with its t interval from independent parts of its variance, each with its degrees of freedom.

    The degrees of freedom of their sum are those of Satterthwaite 1946. Without variance the interval is the value.
    """
    variance = sum(part for part, _ in variances)
    uncertainty = sum(part**2 / freedom for part, freedom in variances)
    freedom = variance**2 / uncertainty if uncertainty else np.inf
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    return OverRuns((float(value), float(value - half), float(value + half)))


def _with_runs(interval: OverRuns, variances: Sequence[float]) -> OverRuns:
    """The interval with the variance between its runs, the sum of those of its sides."""
    if variances:
        interval.between = float(np.sum(variances))
    return interval


def mean_interval(
    values: Num[np.ndarray, " unit"], clusters: Shaped[np.ndarray, " unit"] | None = None
) -> Interval:
    """The mean over units, or over clusters of them, with its t interval; NaN ends for a single one."""
    sums = Clusters.of(np.asarray(values, float)[:, None], clusters)
    (mean,), (error,), _ = sums.moments()
    units = len(sums.sizes)
    return t_interval(mean, [(error**2, units - 1)]) if units > 1 else (float(mean), np.nan, np.nan)


def wilson_interval(successes: int | np.integer, n: int) -> Interval:
    """The share of `n` independent sequences or pairs, with the interval of Wilson 1927, which holds near 0 and 1."""
    low, high = stats.binomtest(int(successes), int(n)).proportion_ci(method="wilson")
    return successes / n, float(low), float(high)


def crossed_interval(
    values: Float[np.ndarray, "run item"], minus: Float[np.ndarray, "other_run item"] | None = None
) -> Interval:
    """The mean of runs on the same items, or its difference from that of other runs, with its interval.

    It covers other runs and other items: the variance is var(run means) / runs + var(item means) / items. With fewer
    than three runs it covers other items alone. NaN ends for a single item.
    """
    sides = [values] if minus is None else [values, -minus]
    items = np.sum([side.mean(axis=0) for side in sides], axis=0)
    mean = float(items.mean())
    if len(items) < 2:
        return mean, np.nan, np.nan
    by_run = [side.mean(axis=1) for side in sides if len(side) >= MINIMUM_RUNS]
    interval = t_interval(mean, [(part.var(ddof=1) / len(part), len(part) - 1) for part in (items, *by_run)])
    return _with_runs(interval, [part.var(ddof=1) for part in by_run])


def draws_interval(draws: Float[np.ndarray, "*run draw"]) -> Interval:
    """The sample's own value, which stands before the draws of sequences, +- 1.96 standard deviations of the draws.

    Unlike outer quantiles of a few hundred draws, such an interval can be widened to a level corrected for many units.
    With three runs or more it covers other runs too (their draws are of the same sequences). Runs without a value are
    left out; if a draw in forty has none, there is no interval.
    """
    runs = np.atleast_2d(np.asarray(draws, float))
    runs = runs[~np.isnan(runs[:, 0])]
    if not len(runs):
        return (np.nan,) * 3
    value, *means = runs.mean(axis=0)
    valid = np.array(means)[~np.isnan(means)]
    if len(valid) < 0.975 * len(means) or len(valid) < 2:
        return float(value), np.nan, np.nan
    variances = [(valid.var(ddof=1), np.inf)]
    between = [runs[:, 0].var(ddof=1)] if len(runs) >= MINIMUM_RUNS else []
    interval = t_interval(value, [*variances, *((part / len(runs), len(runs) - 1) for part in between)])
    return _with_runs(interval, between)


def percentile_interval(draws: Num[np.ndarray, " draw *statistic"]) -> Float[np.ndarray, " end *statistic"]:
    """Low and high of draws below a first row that holds the sample's own value; missing draws are left out."""
    with quiet():  # a statistic that no draw has
        return np.nanquantile(draws[1:], [0.025, 0.975], axis=0)
