"""The head test: is the mean sieve bias score of a head above the threshold?"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int, Shaped
from scipy import stats

from .errors import InputError

DIMENSIONS = ("sequence", "role", "layer", "head")
# Degrees of freedom the standard deviation gives up; the released code divides by n.
DDOF = {"corrected": 1, "published": 0}


class HeadTest(NamedTuple):
    """The test of many heads: arrays of one shape; `t` and `p` are NaN where untestable."""

    n: Int[np.ndarray, "..."]
    mean: Float[np.ndarray, "..."]
    sd: Float[np.ndarray, "..."]
    t: Float[np.ndarray, "..."]
    p: Float[np.ndarray, "..."]


def head_test(
    scores: Float[np.ndarray, "sequence ..."], tau: float | int, arithmetic: str = "corrected"
) -> HeadTest:
    """One-sided one-sample t test of mean score > `tau` over sequences, NaN omitted.

    Constant scores and fewer than two sequences are untestable: `t` and `p` are NaN. `published`
    takes the population standard deviation as the released code does, still with n - 1 degrees of
    freedom, which makes t larger by sqrt(n / (n - 1)). Raises InputError for another arithmetic.
    Source: Pande 2021; departure: `corrected` takes the sample standard deviation.
    """
    if arithmetic not in DDOF:
        raise InputError(f"arithmetic {arithmetic!r} is unknown; use one of {', '.join(DDOF)}")
    ddof = DDOF[arithmetic]
    values = scores.astype(np.float64)
    n = np.asarray(np.isfinite(values).sum(axis=0))
    with _quiet():
        mean, sd = np.nanmean(values, axis=0), np.nanstd(values, axis=0, ddof=ddof)
        t = stats.ttest_1samp(values, tau, axis=0, alternative="greater", nan_policy="omit").statistic
        t = np.where(_varies(values), t, np.nan) * np.sqrt((n - ddof) / (n - 1))
        p = stats.t.sf(t, n - 1)
    return HeadTest(n, np.asarray(mean), np.asarray(sd), np.asarray(t), np.asarray(p))


def role_table(
    scores: xr.DataArray, tau: float | int = 3.0, alpha: float = 0.05, minimum: int = 2
) -> pd.DataFrame:
    """Role table: layer, head, role, n, mean, sd, t, p, assigned; one row per role, layer and head.

    `assigned` is p < `alpha` and mean > `tau`, or <NA> (untestable) with fewer than `minimum`
    sequences that have the role or with constant scores. The arithmetic is the one named in
    `scores.attrs`. Raises InputError for other dimensions, `alpha` outside (0, 1), `minimum` < 2.
    Source: Pande 2021 (tau = 3, alpha = 0.05, no correction for the number of tests).
    """
    _check_test(alpha, minimum)
    array = _ordered(scores)
    test = head_test(array.values, tau, scores.attrs.get("arithmetic", "corrected"))
    enough = test.n >= minimum
    columns = test._replace(t=np.where(enough, test.t, np.nan), p=np.where(enough, test.p, np.nan))
    table = _long(array, columns._asdict())
    label = (table["p"] < alpha) & (table["mean"] > tau)
    table["assigned"] = label.astype("boolean").mask(table["p"].isna())
    return table[["layer", "head", "role", *HeadTest._fields, "assigned"]]


def skewness_table(scores: xr.DataArray) -> pd.DataFrame:
    """Asymmetry of the scores over sequences: role, layer, head, n, skewness, p.

    `p` is D'Agostino's test of zero skewness, NaN below eight sequences; `p` and `skewness` are NaN
    for constant scores. Raises InputError for other dimensions.
    """
    array = _ordered(scores)
    values = array.values.astype(np.float64)
    n = np.isfinite(values).sum(axis=0)
    values = np.where(_varies(values), values, np.nan)
    with _quiet():
        skewness = stats.skew(values, axis=0, nan_policy="omit")
        p = stats.skewtest(values, axis=0, nan_policy="omit").pvalue
    return _long(array, {"n": n, "skewness": skewness, "p": p})


def _varies(values: Shaped[np.ndarray, "sequence ..."]) -> Shaped[np.ndarray, "..."]:
    """True where at least two different finite scores stand; rounding cannot blur this comparison."""
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=0)
    highest = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    return np.asarray(highest > lowest)


def _long(array: xr.DataArray, columns: dict[str, np.ndarray]) -> pd.DataFrame:
    """One row per role, layer and head, role-major, with the given (role, layer, head) columns."""
    dimensions = DIMENSIONS[1:]
    coordinates = {name: array[name].values for name in dimensions}
    data = xr.Dataset({name: (dimensions, column) for name, column in columns.items()}, coordinates)
    return data.to_dataframe(dim_order=dimensions).reset_index()


def _ordered(scores: xr.DataArray) -> xr.DataArray:
    if set(scores.dims) != set(DIMENSIONS):
        raise InputError(f"scores have the dimensions {scores.dims}; they must be {DIMENSIONS}")
    return scores.transpose(*DIMENSIONS)


def _check_test(alpha: float, minimum: int) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; it must lie between 0 and 1, as 0.05 does")
    if minimum < 2:
        raise InputError(f"minimum is {minimum}; a t test needs at least 2 sequences")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences what scipy and numpy say about constant or empty columns: those become NaN here."""
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
