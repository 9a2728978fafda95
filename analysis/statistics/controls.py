"""The third label: is the mean score of a head above that of its control, by the margin of the published rule?"""

from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Shaped

from analysis.banks import UNIFORM_SCORE, same_cells
from analysis.banks import control_bank as control_bank
from analysis.banks import control_sieves as control_sieves
from analysis.roles import ROLES, UNIFORM
from analysis.statistics.resampling import Clusters, lower_bound
from analysis.statistics.significance import (
    DEFAULT_RULE,
    Rule,
    adjust,
    clusters_of,
    mean_above,
    ordered,
    over_patterns,
    published_table,
    quiet,
    role_table,
)

NEAR_ZERO = 0.01  # a mean score below this, a hundredth of a uniform head's, is no denominator
CONTROLLED = ["control", "control_mean", "control_share", "control_assigned"]
CONTROLLED += ["beyond_p_by", "exceeds_control", "controlled_p_by", "assigned_controlled"]


def share_of_control(control: pd.Series, mean: pd.Series) -> pd.Series:
    """Mean score of the control over that of the head; NaN where one of both is near 0."""
    return (control / mean).where((control.abs() >= NEAR_ZERO) & (mean.abs() >= NEAR_ZERO))


def controlled_table(scores: xr.DataArray, control: xr.DataArray, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """Role table with three labels per head: the columns of `role_table`, then those of the control.

    `scores` are composed roles, `control` the scores of their controls on the same sequences. The published rule asks
    whether the mean score exceeds that of a uniform head, 1, by more than `tau` - 1. The controlled label keeps this
    margin and replaces the uniform head by the role's control: assigned_controlled rejects mean(score - score of the
    control) <= tau - 1, paired by sequence, as assigned_corrected rejects mean(score) <= tau: by controlled_p_by (t
    test, Benjamini and Yekutieli over the heads of the role) and the lower bound of the bootstrap-t. For a uniform
    control it is the corrected label.

    The other columns are control (map source), control_mean (mean score), control_share (control_mean / mean; NaN
    where one of both is near 0), control_assigned (published rule for the control) and beyond_p_by (difference above
    0, also corrected), with the label exceeds_control. Labels are <NA> for untestable heads. Differences without spread
    have no p: their mean alone decides. Raises InputError as `role_table` does, and if control and scores differ in
    sequences, roles or heads. Departure from Pande 2021: all of it.
    """
    table = role_table(scores, rule)
    array = ordered(scores)
    paired = same_cells(array, ordered(control), "control scores")
    table["control"] = table["role"].map({name: role.control for name, role in ROLES.items()})
    table[["control_mean", "control_assigned"]] = published_table(paired, rule)[["mean", "assigned"]]
    table["control_share"] = share_of_control(table["control_mean"], table["mean"])
    difference = array.values.astype(np.float64) - paired.values
    margin = rule.tau - UNIFORM_SCORE
    measure = partial(_paired_tests, margin=margin, rule=rule)
    with quiet():  # heads without a sequence
        size = np.nanmean(np.abs(array.values) + np.abs(paired.values), axis=0, dtype=np.float64)
    tests = over_patterns(difference, clusters_of(array, rule.unit), measure, size)
    tested, by_role = table["assigned_corrected"].notna(), table["role"]
    for name in ("beyond", "controlled"):
        families = tests[f"p_{name}"].where(tested).groupby(by_role, sort=False)
        table[f"{name}_p_by"] = families.transform(adjust, "fdr_by")
    beyond = table["beyond_p_by"]
    table["exceeds_control"] = (beyond < rule.alpha).astype("boolean").mask(beyond.isna())
    label = (table["controlled_p_by"] < rule.alpha) & (tests["lower"] > margin)
    by_mean = table["assigned_corrected"].notna() & tests["p_controlled"].isna()
    label = label.mask(by_mean, table["mean"] - table["control_mean"] > margin)
    table["assigned_controlled"] = label.astype("boolean").mask(table["controlled_p_by"].isna() & ~by_mean)
    same = table["control"] == UNIFORM
    table.loc[same, "controlled_p_by"] = table["p_by"]
    table.loc[same, "assigned_controlled"] = table["assigned_corrected"]
    return table[[*table.columns.drop(CONTROLLED), *CONTROLLED]]


def _paired_tests(
    difference: Float[np.ndarray, "sequence column"],
    clusters: Shaped[np.ndarray, "sequence"] | None,
    margin: float,
    rule: Rule,
    size: Float[np.ndarray, "column"],
) -> dict[str, np.ndarray]:
    """One-sided p of mean difference > 0 and > `margin`, and the lower bound of the bootstrap-t; NaN if untestable.

    `size` is that of the scores, below whose rounding a difference has no spread.
    """
    if not len(difference):
        return dict.fromkeys(("p_beyond", "p_controlled", "lower"), np.full(difference.shape[1], np.nan))
    sums = Clusters.of(difference, clusters, size)
    mean, error, _ = sums.moments()
    units = len(sums.sizes)
    with quiet():
        error = np.where(error > 0, error, np.nan)
        tests = {
            "p_beyond": mean_above(mean, error, sums.skewness(), units),
            "p_controlled": mean_above(mean - margin, error, sums.skewness(), units),
        }
        lower = np.full(len(mean), np.nan)
        if units > 1:
            lower = lower_bound(sums, rule.alpha, rule.resamples, rule.seed)
    return tests | {"lower": lower}
