"""Which score distributions are skewed: D'Agostino's test on the sample and on resampled sequences."""

import warnings

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.papers.pande2021.arrays import labelled, matrices, present

SKEWNESS_LEVEL = 0.05


def skewness_tests(scores: xr.DataArray) -> xr.DataArray:
    """`skewed` (role, layer, head) of the sample."""
    once = np.ones((1, len(np.unique(scores["cluster"]))), dtype=int)
    return resampled_skewness(scores, once).isel(replicate=0)


def resampled_skewness(after: xr.DataArray, counts: Int[np.ndarray, "replicate cluster"]) -> xr.DataArray:
    """`skewed` of one task (replicate first), with every cluster counted as in `counts` (see `resampled`)."""
    clusters = after["cluster"].values
    found = []
    for scores in matrices(after, "role"):
        values, codes, drawn = present(scores, clusters, counts)
        rows = [np.repeat(np.arange(len(values)), often[codes]) for often in drawn]
        found.append(np.array([_skewed(values[row]) for row in rows]).reshape(len(rows), scores.shape[1]))
    return labelled(found, after, "role")


def _skewed(values: Float[np.ndarray, "sequence column"]) -> Float[np.ndarray, "column"]:
    """1 if D'Agostino's test rejects zero skewness, else 0; NaN for constant scores or fewer than 8."""
    varies = values.max(axis=0, initial=-np.inf) > values.min(axis=0, initial=np.inf)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy's warnings on columns that become NaN here
        p = stats.skewtest(values, axis=0).pvalue
    return np.where(varies & ~np.isnan(p), p < SKEWNESS_LEVEL, np.nan)
