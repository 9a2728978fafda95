"""The third label: is the mean score of a head above that of its control, by the margin of the published rule?"""

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from analysis.roles import ROLES, UNIFORM, UNIFORM_SCORE
from analysis.statistics.resampling import ByColumn, Clusters, Columns, Groups, lower_bound
from analysis.statistics.significance import (
    DEFAULT_RULE,
    Rule,
    adjust,
    corrected_label,
    mean_above,
    ordered,
    over_patterns,
    published_table,
    quiet,
    role_table,
    same_cells,
)

NEAR_ZERO = 0.01  # a mean score below this, a hundredth of a uniform head's, is no denominator


def share_of_control(control: pd.Series, mean: pd.Series) -> pd.Series:
    """Mean score of the control over that of the head; NaN where one of both is near 0."""
    return (control / mean).where((control.abs() >= NEAR_ZERO) & (mean.abs() >= NEAR_ZERO))


def controlled_table(scores: xr.DataArray, control: xr.DataArray, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """Role table with three labels per head: the columns of `role_table`, then those of the control.

    `scores` are composed roles, `control` the scores of their controls on the same sequences. The published rule asks
    whether the mean score exceeds that of a uniform head, 1, by more than `tau` - 1. The controlled label keeps this
    margin and replaces the uniform head by the role's control: it is the corrected label of score - score of the
    control, paired by sequence, at the threshold `tau` - 1. For a uniform control it is the corrected label.

    The other columns are control (map source), control_mean (its mean score), controlled_p_by, and beyond_p_by
    (difference above 0, corrected over the heads of the role) with the label exceeds_control. Departure from Pande
    2021: all of it.
    """
    table, array = role_table(scores, rule), ordered(scores)
    paired = same_cells(array, ordered(control), "control scores")
    table["control"] = table["role"].map({name: role.control for name, role in ROLES.items()})
    table["control_mean"] = published_table(paired, rule)["mean"]

    rule_of_difference = replace(rule, tau=rule.tau - UNIFORM_SCORE)
    with quiet():  # heads without a sequence
        size = np.nanmean(np.abs(array.values) + np.abs(paired.values), axis=0, dtype=np.float64)
    difference = array.astype(np.float64) - paired
    tests = over_patterns(difference, _paired_tests, rule_of_difference, size)
    testable = table["assigned_corrected"].notna()
    beyond, controlled = (
        tests[name].where(testable).groupby(table["role"], sort=False).transform(adjust, "fdr_by")
        for name in ("p_beyond", "p_controlled")
    )
    table["beyond_p_by"] = beyond
    table["exceeds_control"] = (beyond < rule.alpha).astype("boolean").mask(beyond.isna())
    table["controlled_p_by"] = controlled
    by_mean = testable & controlled.isna()
    difference_of_means = table["mean"] - table["control_mean"]
    table["assigned_controlled"] = corrected_label(
        controlled, tests["lower"], difference_of_means, by_mean, rule_of_difference
    )
    uniform = table["control"] == UNIFORM
    table.loc[uniform, "controlled_p_by"] = table["p_by"]
    table.loc[uniform, "assigned_controlled"] = table["assigned_corrected"]
    return table


def _paired_tests(
    difference: Columns, clusters: Groups | None, size: ByColumn, rule: Rule
) -> dict[str, np.ndarray]:
    """One-sided p of mean difference > 0 and > `tau`, and the lower bound of the bootstrap-t; NaN without spread."""
    sums = Clusters.of(difference, clusters, size)
    return {
        "p_beyond": mean_above(sums, 0),
        "p_controlled": mean_above(sums, rule.tau),
        "lower": lower_bound(sums, rule.alpha, rule.resamples, rule.seed),
    }
