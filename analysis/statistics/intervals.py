"""Intervals in closed form: of many units at once, and of means over runs and items."""

import numpy as np
from jaxtyping import Float
from scipy import stats

MINIMUM_RUNS = 3  # with fewer, an interval is over items alone


def simultaneous(draws: Float[np.ndarray, "draw unit"], alpha: float = 0.05) -> Float[np.ndarray, "end unit"]:
    """Both ends of the intervals of several units that all hold at once, at level 1 - `alpha`.

    Row 0 of `draws` is the sample's own value, the others are resamples. The ends are the value plus and minus a normal
    quantile, corrected for the number of units (Bonferroni), times the standard deviation of the resamples: a few
    hundred of them do not show so extreme quantiles.
    """
    half = stats.norm.ppf(1 - alpha / 2 / draws.shape[1]) * draws[1:].std(axis=0, ddof=1)
    return np.stack([draws[0] - half, draws[0] + half])


def crossed_interval(
    values: Float[np.ndarray, "run item"], minus: Float[np.ndarray, "other_run item"] | None = None
) -> tuple[float, float, float]:
    """The mean of runs on the same items, or its difference from that of other runs, with its 95 % interval.

    It covers other runs and other items: the variance is var(run means) / runs + var(item means) / items, with degrees
    of freedom after Satterthwaite. With fewer than three runs it covers other items alone. NaN for a single item.
    """
    sides = [values] if minus is None else [values, -minus]
    items = np.sum([side.mean(axis=0) for side in sides], axis=0)
    mean = float(items.mean())
    if len(items) < 2:
        return mean, np.nan, np.nan
    parts = [(items.var(ddof=1) / len(items), len(items) - 1)]
    parts += [
        (side.mean(axis=1).var(ddof=1) / len(side), len(side) - 1)
        for side in sides
        if len(side) >= MINIMUM_RUNS
    ]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return mean, mean, mean
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    half = float(stats.t.ppf(0.975, freedom) * np.sqrt(variance))
    return mean, mean - half, mean + half
