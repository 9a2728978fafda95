"""The bootstrap outside of role tables: draws of units for any statistic, and BCa intervals."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from analysis.statistics.resampling import (
    BATCH,
    ByColumn,
    Clusters,
    Columns,
    Groups,
    check_resamples,
    counted,
    quiet,
)
from analysis.statistics.significance import DDOF, HeadTest, t_test


def resampled(
    units: int, draws: int, seed: int | Sequence[int] | np.random.Generator = 0
) -> Int[np.ndarray, "draw unit"]:
    """How often each unit counts in a bootstrap: once in row 0, the sample itself, then as often as it was drawn.

    A statistic that is a function of such weights has its estimate in row 0 and its draws below.
    """
    counts = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), draws)
    return np.concatenate([np.ones((1, units), int), counts])


def resampled_test(
    sums: Clusters, counts: Int[np.ndarray, "draw cluster"], tau: float | int, arithmetic: str = "corrected"
) -> HeadTest:
    """The test of every head (draw, head) with `counts` draws of each cluster of sequences."""
    with quiet():
        mean, _, sd = sums.moments(counts)
        n = (counts @ sums.sizes).astype(int)[:, None]
        return t_test(n, mean, sd * np.sqrt((n - 1) / (n - DDOF[arithmetic])), tau)


def bca_interval(
    values: Columns,
    clusters: Groups | None = None,
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
    size: ByColumn | None = None,
) -> Float[np.ndarray, "2 column"]:
    """Both ends of the BCa interval of each mean at level 1 - `alpha`; with `clusters`, whole clusters are drawn.

    `values` without NaN, and `size`, as in `Clusters.of`. NaN for scores without spread and for fewer than two units.
    Source: Davison and Hinkley 1997, chapter 5.
    """
    units = len(values) if clusters is None else len(np.unique(clusters))
    if units < 2:
        return np.full((2, values.shape[1]), np.nan)
    sums = Clusters.of(values, clusters, size)

    def means(counts: np.ndarray) -> np.ndarray:
        # BCa counts equal means: rounding errors must not make them differ.
        return np.moveaxis(np.round(sums.moments(counts).mean, 6), -1, 0)

    ends = bca(means, units, max(values.shape), alpha, resamples, seed)
    return np.where(sums.moments().error > 0, ends, np.nan)


def bca(
    statistic: Callable[[Int[np.ndarray, "*draw unit"]], Float[np.ndarray, "..."]],
    units: int,
    size: int,
    alpha: float,
    resamples: int,
    seed: int,
) -> Float[np.ndarray, "end ..."]:
    """Both ends of scipy's BCa interval for a statistic of how often each unit was drawn; NaN for a constant one.

    The last axis of the statistic is the draw. `size`, the number of values of one draw, limits the draws in memory.
    """
    check_resamples(resamples, alpha)

    def of_indices(indices: np.ndarray, axis: int) -> np.ndarray:
        return statistic(counted(indices, units))

    with quiet():  # about columns without an interval
        result = stats.bootstrap(
            (np.arange(units),), of_indices, vectorized=True, axis=-1, confidence_level=1 - alpha,
            batch=max(1, BATCH // size), n_resamples=resamples, rng=seed,
        )  # fmt: skip
    return np.stack(result.confidence_interval)
