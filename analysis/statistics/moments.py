"""Moments of scores, which can be merged: the role table of any number of sequences in constant memory.

Source: Chan, Golub and LeVeque 1983 (mean and sum of squares of two merged samples); Pebay 2008, Sandia report
SAND2008-6212 (third central sums).
"""

import numpy as np
import pandas as pd
import xarray as xr

from analysis.errors import InputError
from analysis.statistics.resampling import has_spread
from analysis.statistics.significance import DDOF, DEFAULT_RULE, DIMENSIONS, Rule, labelled, t_test

# Of every head and role. `mean` is 0 if n is 0, so that `merge` needs no special case.
FIELDS = ("n", "mean", "m2", "m3")


def moments(scores: xr.DataArray) -> xr.Dataset:
    """The moments of scores over their sequences without NaN: FIELDS, each (role, layer, head), float64.

    `m2` and `m3` are the sums of the squares and cubes of the deviations from the mean. The attribute `arithmetic` of
    the scores is kept. Scores of no sequence give the neutral element of `merge`.
    """
    values = scores.transpose(*DIMENSIONS).astype(np.float64).reset_coords(drop=True).drop_attrs()
    n = values.count("sequence")
    mean = values.sum("sequence") / np.maximum(n, 1)
    sums = (((values - mean) ** power).sum("sequence") for power in (2, 3))
    arithmetic = scores.attrs.get("arithmetic", "corrected")
    return xr.Dataset(dict(zip(FIELDS, (n, mean, *sums), strict=True)), attrs={"arithmetic": arithmetic})


def merge(first: xr.Dataset, second: xr.Dataset) -> xr.Dataset:
    """The moments of the union of two sets of sequences.

    With d the difference of the means (second - first), a and b the numbers of scores and n = a + b:
    mean = mean_1 + d b / n; m2 = m2_1 + m2_2 + d^2 a b / n;
    m3 = m3_1 + m3_2 + d^3 a b (a - b) / n^2 + 3 d (a m2_2 - b m2_1) / n.
    Raises InputError if roles, layers, heads or arithmetic differ.
    """
    if not first.coords.equals(second.coords) or first.attrs != second.attrs:
        raise InputError(
            "moments of other roles, heads or arithmetic cannot be merged: extract both in the same way"
        )
    a, b = (part["n"].astype(np.float64) for part in (first, second))  # products of counts overflow integers
    n = np.maximum(a + b, 1)
    difference = second["mean"] - first["mean"]
    return xr.Dataset(
        {
            "n": first["n"] + second["n"],
            "mean": first["mean"] + difference * b / n,
            "m2": first["m2"] + second["m2"] + difference**2 * a * b / n,
            "m3": first["m3"]
            + second["m3"]
            + difference**3 * a * b * (a - b) / n**2
            + 3 * difference * (a * second["m2"] - b * first["m2"]) / n,
        },
        attrs=first.attrs,
    )


def skewness(merged: xr.Dataset) -> np.ndarray:
    """Skewness of the scores of every head (role, layer, head), sqrt(n) m3 / m2^1.5; NaN without spread."""
    varies = has_spread(merged["mean"].values, _deviation(merged, 1))
    return (np.sqrt(merged["n"]) * merged["m3"] / merged["m2"].where(varies) ** 1.5).values


def _deviation(merged: xr.Dataset, ddof: int) -> np.ndarray:
    """The standard deviation of every head; NaN for too few scores."""
    n, m2 = merged["n"].values, merged["m2"].values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > ddof, np.sqrt(m2 / (n - ddof)), np.nan)


def moments_table(merged: xr.Dataset, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """The columns of `published_table` from the moments of all sequences, then skewness."""
    n, sd = merged["n"].values, _deviation(merged, DDOF[merged.attrs["arithmetic"]])
    test = t_test(n, np.where(n > 0, merged["mean"].values, np.nan), sd, rule.tau)
    return labelled(test, merged, rule).assign(skewness=skewness(merged).ravel())
