"""Moments of scores, which can be merged: the role table of any number of sequences in constant memory.

Source: Chan, Golub and LeVeque 1983 (mean and sum of squares of two merged samples).
"""

import numpy as np
import pandas as pd
import xarray as xr

from analysis.roles import DIMENSIONS
from analysis.statistics.significance import DDOF, DEFAULT_RULE, Rule, labelled, t_test


def moments(scores: xr.DataArray) -> xr.Dataset:
    """Number n, mean and sum of squared deviations m2 of the scores of every role, layer and head, without NaN.

    The mean of no score is 0, so that `merge` needs no special case. The attribute `arithmetic` of the scores is kept.
    """
    values = scores.transpose(*DIMENSIONS).astype(np.float64).reset_coords(drop=True).drop_attrs()
    n = values.count("sequence")
    mean = values.sum("sequence") / np.maximum(n, 1)
    m2 = ((values - mean) ** 2).sum("sequence")
    arithmetic = scores.attrs.get("arithmetic", "corrected")
    return xr.Dataset({"n": n, "mean": mean, "m2": m2}, attrs={"arithmetic": arithmetic})


def merge(first: xr.Dataset, second: xr.Dataset) -> xr.Dataset:
    """The moments of the union of two sets of sequences.

    With d the difference of the means (second - first), a and b the numbers of scores and n = a + b:
    mean = mean_1 + d b / n; m2 = m2_1 + m2_2 + d^2 a b / n.
    """
    a, b = (part["n"].astype(np.float64) for part in (first, second))  # products of counts overflow integers
    n = np.maximum(a + b, 1)
    difference = second["mean"] - first["mean"]
    mean = first["mean"] + difference * b / n
    m2 = first["m2"] + second["m2"] + difference**2 * a * b / n
    return xr.Dataset({"n": first["n"] + second["n"], "mean": mean, "m2": m2}, attrs=first.attrs)


def moments_table(merged: xr.Dataset, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """The columns of `published_table` from the moments of all sequences."""
    n, ddof = merged["n"].values, DDOF[merged.attrs["arithmetic"]]
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.where(n > ddof, np.sqrt(merged["m2"].values / (n - ddof)), np.nan)
    test = t_test(n, np.where(n > 0, merged["mean"].values, np.nan), deviation, rule.tau)
    return labelled(test, merged, rule)
