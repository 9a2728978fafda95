"""The bootstrap of means over sequences, or over clusters of sequences: every head in one matrix product."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy import sparse

from analysis.errors import InputError

Columns = Float[np.ndarray, "sequence column"]  # scores of many heads on the same sequences
ByColumn = Float[np.ndarray, " column"]
Groups = Shaped[np.ndarray, " sequence"]  # the cluster of every sequence
Numbers = Float[np.ndarray, "..."] | float
ROUNDING = 1e-12  # a difference of sums of squares counts as zero below this share of the minuend
# A standard deviation below this share of the size of scores is rounding, not spread. Scores are sums in single
# precision (epsilon 1.2e-7): those of a head with uniform attention, which are equal but for rounding, vary by up to
# 4.5e-7 of their mean, and those of the steadiest head of the study by 6.2e-5 (head 0-2 on [CLS]). The limit is 8 times
# the one and a sixteenth of the other, so that no head changes sides from machine to machine.
SPREAD = 32 * float(np.finfo(np.float32).eps)
BATCH = 4_000_000  # entries of the largest matrix of resamples in memory (32 MB)


@contextmanager
def quiet() -> Iterator[None]:
    """Hides the warnings of scipy and numpy about constant or empty columns, which become NaN here."""
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


class Moments(NamedTuple):
    """Mean, standard error of the mean, and standard deviation of every column, for every draw."""

    mean: Float[np.ndarray, "*draw column"]
    error: Float[np.ndarray, "*draw column"]
    sd: Float[np.ndarray, "*draw column"]


def has_spread(size: Numbers, sd: Numbers) -> Bool[np.ndarray, "..."]:
    """Whether scores of this size vary by more than rounding (see SPREAD); False where `sd` is NaN."""
    return np.asarray(sd > SPREAD * np.abs(size))


@dataclass(frozen=True)
class Clusters:
    """Scores of many heads (columns), centred, as sums over clusters of sequences, which suffice for resampling.

    `size` is that of the scores, with which their spread is compared.
    """

    centre: ByColumn
    size: ByColumn
    sizes: Float[np.ndarray, " cluster"]
    totals: Float[np.ndarray, "cluster column"]
    squares: Float[np.ndarray, "cluster column"]

    @classmethod
    def of(cls, values: Columns, clusters: Groups | None = None, size: ByColumn | None = None) -> "Clusters":
        """The sums of scores without NaN; without `clusters`, every sequence is a cluster of its own.

        Differences of scores need the `size` of these scores; that of scores is their mean.
        """
        values = values.astype(np.float64)
        centre = values.mean(axis=0)
        size = np.abs(centre) if size is None else size
        centred = values - centre
        if clusters is None:
            return cls(centre, size, np.ones(len(values)), centred, centred**2)
        names, codes = np.unique(clusters, return_inverse=True)
        shape = len(names), len(values)
        member = sparse.csr_array((np.ones(len(values)), (codes, np.arange(len(values)))), shape)
        return cls(centre, size, member.sum(axis=1), member @ centred, member @ centred**2)

    def moments(self, counts: Shaped[np.ndarray, "*draw cluster"] | None = None) -> Moments:
        """Mean, standard error and standard deviation with `counts` draws of each cluster, one by default.

        The error is that of a ratio of sums over clusters, with the factor clusters / (clusters - 1); for clusters of
        single sequences it is sd / sqrt(n). Both are exactly zero for scores without spread, the error also for equal
        means of clusters; they are NaN for one sequence or cluster.
        """
        counts = np.ones(len(self.sizes)) if counts is None else counts.astype(np.float64)
        draws, n = counts.sum(axis=-1)[..., None], (counts @ self.sizes)[..., None]
        mean, squares = counts @ self.totals / n, counts @ self.squares
        between = (
            counts @ self.totals**2
            - 2 * mean * (counts @ (self.totals * self.sizes[:, None]))
            + mean**2 * (counts @ self.sizes**2)[..., None]
        )
        # Differences no larger than rounding errors are exactly zero.
        between, within = (
            np.where(difference > ROUNDING * squares, difference, 0)
            for difference in (between, squares - n * mean**2)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            error, sd = np.sqrt(between * draws / (draws - 1)) / n, np.sqrt(within / (n - 1))
        constant = ~has_spread(self.size, sd) & ~np.isnan(sd)
        return Moments(mean + self.centre, np.where(constant, 0, error), np.where(constant, 0, sd))

    def skewness(self) -> ByColumn:
        """Skewness of what clusters add to the mean, for single sequences that of the scores; NaN without spread."""
        second, third = ((self.totals**power).mean(axis=0) for power in (2, 3))  # the totals sum to 0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(has_spread(self.size, np.sqrt(second)), third / second**1.5, np.nan)


def lower_bound(sums: Clusters, alpha: float = 0.05, resamples: int = 999, seed: int = 0) -> ByColumn:
    """The one-sided lower bound of each mean by the bootstrap-t.

    It exceeds a threshold exactly if the bootstrap-t test of mean > threshold has p <= `alpha`, where p is (1 +
    resamples at least as extreme) / (1 + resamples). Minus infinity where too many resamples have no spread; NaN for
    scores without spread and for a single unit. Source: Davison and Hinkley 1997, chapter 5.
    """
    check_resamples(resamples, alpha)
    observed, units = sums.moments(), len(sums.sizes)
    if units < 2:
        return np.full(len(observed.mean), np.nan)
    rng = np.random.default_rng(seed)
    size = max(1, BATCH // max(sums.totals.shape))
    parts = []
    for start in range(0, resamples, size):
        indices = rng.integers(units, size=(min(size, resamples - start), units))
        parts.append(sums.moments(counted(indices, units)))
    means, errors, _ = (np.concatenate(moment) for moment in zip(*parts, strict=True))
    excess = means - observed.mean
    rank = resamples - int(alpha * (1 + resamples))
    with np.errstate(divide="ignore", invalid="ignore"):
        # A resample of equal scores at the mean has t = 0.
        studentised = np.where((excess == 0) & (errors == 0), 0.0, excess / errors)
        extreme = np.partition(studentised, rank, axis=0)[rank]
        return np.where(observed.error > 0, observed.mean - extreme * observed.error, np.nan)


def counted(indices: Int[np.ndarray, "*draw n"], units: int) -> Int[np.ndarray, "*draw unit"]:
    """How often each of `units` was drawn."""
    rows = indices.reshape(-1, indices.shape[-1])
    offsets = units * np.arange(len(rows))[:, None]
    counts = np.bincount((rows + offsets).ravel(), minlength=units * len(rows))
    return counts.reshape(*indices.shape[:-1], units)


def check_resamples(resamples: int, alpha: float) -> None:
    """Raises InputError for too few resamples to reach the level `alpha`."""
    least = max(99, ceil(1 / alpha) - 1)
    if resamples < least:
        raise InputError(
            f"resamples is {resamples}: alpha {alpha:g} needs at least {least}, better 999 or more"
        )
