"""Intervals of means over runs and items in closed form."""

import numpy as np
from jaxtyping import Float
from scipy import stats

MINIMUM_RUNS = 3  # with fewer, an interval is over items alone


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
