"""The test of a head: is its mean sieve bias score above the threshold? As published, and corrected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.errors import InputError
from analysis.roles import DIMENSIONS
from analysis.statistics.resampling import ByColumn, Clusters, Columns, Groups, has_spread, lower_bound, quiet

# Degrees of freedom of the standard deviation; the authors' code divides by n.
DDOF = {"corrected": 1, "published": 0}
# Adjusted p-values of a table, and the method of `adjust` that gives them, with its name in statsmodels.
CORRECTIONS = {"p_holm": "holm", "p_bh": "fdr_bh", "p_by": "fdr_by"}
UNITS = ("sequence", "cluster")
TESTED = "tested"
BY_MEAN = "no spread: the mean alone decides"
UNDEFINED = "undefined on this map"


@dataclass(frozen=True)
class Rule:
    """How heads get their labels. Raises InputError for values out of range.

    The published label needs `tau` and `alpha` alone.
    """

    tau: float | int = 3.0  # the score that the mean must exceed; a head with uniform attention has 1
    alpha: float = 0.05  # level of the tests
    minimum: int = 100  # units that a corrected label needs
    resamples: int = 999  # of the bootstrap
    seed: int = 0  # of the bootstrap
    unit: str = "sequence"  # what the bootstrap draws: or "cluster", all sequences that share a text

    def __post_init__(self) -> None:
        if not np.isfinite(self.tau):
            raise InputError(f"tau is {self.tau}; it must be a finite number, such as 3")
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha}; it must lie between 0 and 1, as 0.05 does")
        if self.minimum < 2:
            raise InputError(f"minimum is {self.minimum}; a t test needs at least 2 sequences")
        if self.unit not in UNITS:
            raise InputError(f"unit {self.unit!r} is unknown; use one of {', '.join(UNITS)}")


DEFAULT_RULE = Rule()


class HeadTest(NamedTuple):
    """The test of many heads: arrays of one shape; `t` and `p` are NaN for heads that cannot be tested."""

    n: Int[np.ndarray, "..."]
    mean: Float[np.ndarray, "..."]
    sd: Float[np.ndarray, "..."]
    t: Float[np.ndarray, "..."]
    p: Float[np.ndarray, "..."]


def head_test(
    scores: Float[np.ndarray, "sequence ..."], tau: float | int, arithmetic: str = "corrected"
) -> HeadTest:
    """One-sided one-sample t test of mean score > `tau` over sequences, NaN omitted.

    `published` takes the population standard deviation, as the authors' code does, still with n - 1 degrees of freedom,
    which makes t larger by sqrt(n / (n - 1)).
    Source: Pande 2021; departure: `corrected` takes the sample standard deviation.
    """
    values = scores.astype(np.float64)
    n = np.asarray(np.isfinite(values).sum(axis=0))
    with quiet():
        mean, sd = np.nanmean(values, axis=0), np.nanstd(values, axis=0, ddof=DDOF[arithmetic])
    return t_test(n, np.asarray(mean), np.asarray(sd), tau)


def t_test(
    n: Int[np.ndarray, "..."], mean: Float[np.ndarray, "..."], sd: Float[np.ndarray, "..."], tau: float | int
) -> HeadTest:
    """The one-sided t test of mean > `tau`; scores without spread and fewer than two sequences have no `t` and `p`."""
    with quiet():
        t = np.where(has_spread(mean, sd), (mean - tau) / (sd / np.sqrt(n)), np.nan)
        return HeadTest(n, mean, sd, t, np.asarray(stats.t.sf(t, n - 1)))


def published_labels(test: HeadTest, rule: Rule) -> Float[np.ndarray, "..."]:
    """The label of Pande et al.: 1 for p < `alpha` and mean > `tau`, else 0; NaN with fewer than two sequences.

    Scores without spread have no p: their mean alone decides.
    """
    rejects = (test.p < rule.alpha) | np.isnan(test.p)
    return np.where(test.n < 2, np.nan, rejects & (test.mean > rule.tau))


def mean_above(sums: Clusters, tau: float | int) -> ByColumn:
    """One-sided p of mean > `tau` by the t test with the correction for skewness of Hall (1992); NaN without spread.

    With a skewness of g over n units, t + g t^2 / (3 n^(1/2)) + g^2 t^3 / (27 n) + g / (6 n^(1/2)) takes the place of
    t. The t test labels left-skewed scores too often and finds right-skewed ones too seldom; this removes most of both.
    """
    (mean, error, _), skewness, n = sums.moments(), sums.skewness(), len(sums.sizes)
    with quiet():
        t, root = (mean - tau) / np.where(error > 0, error, np.nan), np.sqrt(n)
        corrected = t + skewness * t**2 / (3 * root) + skewness**2 * t**3 / (27 * n) + skewness / (6 * root)
        return stats.t.sf(corrected, n - 1)


def published_table(scores: xr.DataArray, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """Role table of Pande et al.: layer, head, role, n, mean, sd, t, p, assigned; a row per role, layer, head.

    `assigned` is that of `published_labels`, <NA> if it has none. The arithmetic is the one named in `scores.attrs`.
    Source: Pande 2021 (tau = 3, alpha = 0.05, no correction for the number of tests).
    """
    array = ordered(scores)
    test = head_test(array.values, rule.tau, array.attrs.get("arithmetic", "corrected"))
    return labelled(test, array, rule)


def labelled(test: HeadTest, named: xr.DataArray | xr.Dataset, rule: Rule) -> pd.DataFrame:
    """The tests of all roles, layers and heads as `published_table` gives them; `named` has their coordinates."""
    table = long_table(named, test._asdict() | {"assigned": published_labels(test, rule)})
    table["assigned"] = table["assigned"].astype("Int8").astype("boolean")
    return table[["layer", "head", "role", *HeadTest._fields, "assigned"]]


def role_table(scores: xr.DataArray, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """Role table with two labels per head: the columns of `published_table`, then those of the corrected label.

    low, high and lower_bootstrap_t bound the mean at level 1 - `alpha`: the two-sided t interval, and the one-sided
    bound of the bootstrap-t. p_holm, p_bh and p_by correct the p of `mean_above` over the heads of a role; status is
    TESTED, BY_MEAN or the reason why a head has no label. All take the sample standard deviation and, with the unit
    "cluster", the cluster-robust error.

    assigned_corrected is p_by < `alpha` and lower_bootstrap_t > `tau`, <NA> if not applicable. The first corrects for
    skewness and for the number of heads; the second resamples, which assumes no distribution. The bootstrap cannot
    replace the first: its p is never below 1 / (1 + `resamples`), and a single head among 144 needs
    p < `alpha` / (144 * 5.55) = 0.00006 after BY. `benchmarks/calibration.py` measures size and power.
    Departure from Pande 2021: everything but the columns of `published_table`.
    """
    array = ordered(scores)
    table = published_table(scores, rule).join(over_patterns(array, _evidence, rule))
    status = _status(table, rule, scores.attrs.get("undefined", "").split(", "))
    families = table["p_corrected"].where(status == TESTED).groupby(table["role"], sort=False)
    for name, method in CORRECTIONS.items():
        table[name] = families.transform(adjust, method)
    label = corrected_label(table["p_by"], table["lower_bootstrap_t"], table["mean"], status == BY_MEAN, rule)
    return table.drop(columns=["units", "p_corrected"]).assign(status=status, assigned_corrected=label)


def corrected_label(
    p: pd.Series, bound: pd.Series, mean: pd.Series, by_mean: pd.Series | np.ndarray, rule: Rule
) -> pd.Series:
    """Whether p < `alpha` and bound > `tau`, for the heads in `by_mean` whether mean > `tau`; <NA> without a test."""
    label = ((p < rule.alpha) & (bound > rule.tau)).mask(by_mean, mean > rule.tau)
    return label.astype("boolean").mask(p.isna() & ~by_mean)


def adjust(p: Float[np.ndarray, "..."] | pd.Series, method: str) -> Float[np.ndarray, "..."]:
    """Adjusted p-values of one family of tests ("holm", "fdr_bh", "fdr_by"); a NaN stays NaN and counts as no test."""
    adjusted = np.array(p, dtype=np.float64)
    present = ~np.isnan(adjusted)
    if present.any():
        tests = adjusted[present]
        if method == "holm":
            adjusted[present] = _holm(tests)
        else:
            adjusted[present] = stats.false_discovery_control(tests, method=method.removeprefix("fdr_"))
    return adjusted


def _holm(p: Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    """The adjusted p-values of Holm 1979; scipy lacks them."""
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted


def corrections(table: pd.DataFrame) -> pd.DataFrame:
    """The published p, corrected over all tests of a table: p_holm_all, p_bh_all, p_by_all.

    The first columns are those of task, state, role, layer and head that the table has.
    """
    keys = table[table.columns.intersection(["task", "state", "role", "layer", "head"], sort=False)]
    return keys.assign(**{f"{name}_all": adjust(table["p"], how) for name, how in CORRECTIONS.items()})


def clusters_of(scores: xr.DataArray, unit: str) -> Groups | None:
    """The cluster of each sequence if the unit is "cluster", None if it is "sequence"."""
    return None if unit == "sequence" else scores[unit].values


def over_patterns(
    scores: xr.DataArray,
    measure: Callable[..., dict[str, np.ndarray]],
    rule: Rule,
    size: Float[np.ndarray, "..."] | None = None,
) -> pd.DataFrame:
    """The results of `measure(scores without NaN, their clusters, size, rule)`, a row for every role, layer and head.

    Heads with scores of the same sequences are measured together and share resamples. Differences of scores need the
    `size` of these scores (see `Clusters.of`).
    """
    clusters = clusters_of(scores, rule.unit)
    columns = scores.values.astype(np.float64).reshape(len(scores), -1)
    patterns, pattern_of = np.unique(~np.isnan(columns), axis=1, return_inverse=True)
    parts = []
    for number, present in enumerate(patterns.T):
        members = np.flatnonzero(pattern_of == number)
        units = None if clusters is None else clusters[present]
        sizes = None if size is None else size.ravel()[members]
        with quiet():
            results = measure(columns[np.ix_(present, members)], units, sizes, rule)
        parts.append(pd.DataFrame(results, index=members))
    return pd.concat(parts).sort_index()


def _evidence(
    values: Columns, clusters: Groups | None, size: ByColumn | None, rule: Rule
) -> dict[str, np.ndarray]:
    """The columns of `role_table` for scores without NaN, and the number of units and the corrected t p."""
    sums = Clusters.of(values, clusters, size)
    mean, error, _ = sums.moments()
    units = len(sums.sizes)
    low, high = stats.t.interval(1 - rule.alpha, units - 1, mean, np.where(error > 0, error, np.nan))
    return {
        "units": np.full(len(mean), units),
        "p_corrected": mean_above(sums, rule.tau),
        "low": low,
        "high": high,
        "lower_bootstrap_t": lower_bound(sums, rule.alpha, rule.resamples, rule.seed),
    }


def _status(table: pd.DataFrame, rule: Rule, undefined: list[str]) -> np.ndarray:
    """The status of each head: the first reason why it has no test, or TESTED."""
    reasons = {
        UNDEFINED: table["role"].isin(undefined) & (table["units"] == 0),
        "not applicable: no sequence has the role": table["units"] == 0,
        f"not applicable: one {rule.unit}": table["units"] == 1,
        f"not applicable: fewer than {rule.minimum} {rule.unit}s": table["units"] < rule.minimum,
        BY_MEAN: table["p_corrected"].isna(),
    }
    return np.select([*reasons.values()], [*reasons], TESTED)


def long_table(
    named: xr.DataArray | xr.Dataset, columns: Mapping[str, np.ndarray | xr.DataArray]
) -> pd.DataFrame:
    """One row per role, layer and head of `named`, in this order, with columns of arrays (role, layer, head)."""
    dimensions = DIMENSIONS[1:]
    coordinates = {name: named[name].values for name in dimensions}
    arrays = {name: (dimensions, np.asarray(column)) for name, column in columns.items()}
    return xr.Dataset(arrays, coordinates).to_dataframe(dim_order=dimensions).reset_index()


def ordered(scores: xr.DataArray) -> xr.DataArray:
    """Scores in the order of DIMENSIONS; raises InputError if they have other dimensions."""
    if set(scores.dims) != set(DIMENSIONS):
        raise InputError(f"scores have the dimensions {scores.dims}; they must be {DIMENSIONS}")
    return scores.transpose(*DIMENSIONS)


def same_cells(scores: xr.DataArray, control: xr.DataArray, what: str) -> xr.DataArray:
    """Control scores in the order and with the coordinates of `scores`; raises InputError if these differ."""
    for name in DIMENSIONS:
        if not set(scores[name].values) <= set(control[name].values):
            raise InputError(f"{what} differ from the scores in {name}: extract both from the same sequences")
    aligned = control.sel({name: scores[name].values for name in DIMENSIONS}).transpose(*scores.dims)
    if not np.array_equal(np.isnan(aligned.values), np.isnan(scores.values)):
        raise InputError(f"{what} differ from the scores in which sequence has which role: use one parse")
    return scores.copy(data=aligned.values)
