"""The test of a head: is its mean sieve bias score above the threshold? As published, and corrected."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int, Shaped
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.banks import DIMENSIONS as DIMENSIONS
from analysis.errors import InputError
from analysis.statistics.resampling import Clusters, has_spread, lower_bound

# Degrees of freedom of the standard deviation; the authors' code divides by n.
DDOF = {"corrected": 1, "published": 0}
# Adjusted p-values of a table, and the method of `adjust` that gives them, with its name in statsmodels.
CORRECTIONS = {"p_holm": "holm", "p_bh": "fdr_bh", "p_by": "fdr_by"}
UNITS = ("sequence", "cluster")
TESTED = "tested"
BY_MEAN = "no spread: the mean alone decides"
UNDEFINED = "undefined on this map"
# The pairs of the two labels of a head, as `label_comparison` names them.
BOTH, PUBLISHED_ONLY, CORRECTED_ONLY, NEITHER, UNTESTABLE = LABEL_COMPARISONS = (
    "both labels",
    "published only",
    "corrected only",
    "neither",
    "untestable",
)


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
    unit: str = (
        "sequence"  # what the bootstrap draws: sequences, or every "cluster" of sequences that share a text
    )

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

    Scores without spread (`resampling.SPREAD`) and fewer than two sequences have no test: `t` and `p` are NaN.
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
    """The one-sided t test of mean > `tau` from the number of scores, their mean and their standard deviation."""
    with quiet():
        t = np.where(has_spread(mean, sd), (mean - tau) / (sd / np.sqrt(n)), np.nan)
        return HeadTest(n, mean, sd, t, np.asarray(stats.t.sf(t, n - 1)))


def resampled_test(
    sums: Clusters, counts: Int[np.ndarray, "draw cluster"], tau: float | int, arithmetic: str = "corrected"
) -> HeadTest:
    """The test of every head (draw, head) with `counts` draws of each cluster of sequences."""
    with quiet():
        mean, _, sd = sums.moments(counts)
        n = (counts @ sums.sizes).astype(int)[:, None]
        return t_test(n, mean, sd * np.sqrt((n - 1) / (n - DDOF[arithmetic])), tau)


def published_labels(test: HeadTest, rule: Rule) -> Float[np.ndarray, "..."]:
    """The label of Pande et al.: 1 for p < `alpha` and mean > `tau`, else 0; NaN with fewer than two sequences.

    Scores without spread have no p: their mean alone decides.
    """
    rejects = (test.p < rule.alpha) | np.isnan(test.p)
    return np.where(test.n < 2, np.nan, rejects & (test.mean > rule.tau))


def mean_above(
    excess: Float[np.ndarray, "..."],
    error: Float[np.ndarray, "..."],
    skewness: Float[np.ndarray, "..."],
    n: Int[np.ndarray, "..."] | int,
) -> Float[np.ndarray, "..."]:
    """One-sided p of a mean above the threshold by the t test with the correction for skewness of Hall (1992).

    `excess` is mean - tau and `error` its standard error over `n` independent units. Without skewness it is the t test.
    With a skewness of g, t + g t^2 / (3 n^(1/2)) + g^2 t^3 / (27 n) + g / (6 n^(1/2)) takes the place of t. The t test
    labels left-skewed scores too often and finds right-skewed ones too seldom; this removes most of both.
    """
    t, root = excess / error, np.sqrt(n)
    corrected = t + skewness * t**2 / (3 * root) + skewness**2 * t**3 / (27 * n) + skewness / (6 * root)
    return stats.t.sf(corrected, n - 1)


def published_table(scores: xr.DataArray, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """Role table of Pande et al.: layer, head, role, n, mean, sd, t, p, assigned; a row per role, layer, head.

    `assigned` is p < `alpha` and mean > `tau`, or <NA> (untestable) with fewer than two sequences that have the role.
    Scores without spread have no t and p: the mean alone decides. The arithmetic is the one named in `scores.attrs`.
    Raises InputError for other dimensions. Source: Pande 2021 (tau = 3, alpha = 0.05, no correction for the number of
    tests).
    """
    array = ordered(scores)
    return labelled(
        head_test(array.values, rule.tau, array.attrs.get("arithmetic", "corrected")), array, rule
    )


def labelled(test: HeadTest, named: xr.DataArray | xr.Dataset, rule: Rule) -> pd.DataFrame:
    """The tests of all roles, layers and heads as `published_table` gives them; `named` has their coordinates."""
    table = long_table(named, test._asdict() | {"assigned": published_labels(test, rule)})
    return table.astype({"assigned": "Int8"}).astype({"assigned": "boolean"})[
        ["layer", "head", "role", *HeadTest._fields, "assigned"]
    ]


def role_table(scores: xr.DataArray, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """Role table with two labels per head: the columns of `published_table`, then those of the corrected label.

    low, high and lower_bootstrap_t bound the mean at level 1 - `alpha`: the two-sided t interval, and the one-sided
    bound of the bootstrap-t. effect is (mean - tau) / sd; above is the proportion of sequences with score > tau;
    p_holm, p_bh and p_by correct the p of `mean_above` over the heads of a role. status is "tested", or
    "untestable: " and the reason; scores without spread have no test, interval, effect or skewness, and their mean
    alone decides (status BY_MEAN). All take the sample standard deviation.

    assigned_corrected is p_by < `alpha` and lower_bootstrap_t > `tau`, <NA> if untestable. The first corrects for
    skewness and for the number of heads; the second resamples, which assumes no distribution. The bootstrap cannot
    replace the first: its p is never below 1 / (1 + `resamples`), and a single head among 144 needs
    p < `alpha` / (144 * 5.55) = 0.00006 after BY. With 100 units or more, about a tenth of the families of 144 heads at
    most has a false label, whatever the shape of the scores; with 20 units and left-skewed scores more than a third has
    (`papers.pande2021.robustness`).

    With the unit "cluster" (a coordinate of the scores) t intervals and corrected p take the cluster-robust error with
    clusters - 1 degrees of freedom. Raises InputError for other dimensions, a missing coordinate and too few resamples.
    Departure from Pande 2021: everything but the columns of `published_table`.
    """
    published = published_table(scores, rule)
    array = ordered(scores)
    evidence = over_patterns(
        array.values, clusters_of(array, rule.unit), partial(_complete_evidence, rule=rule)
    )
    table = published.join(evidence)
    table["status"] = _status(table, rule)
    undefined = table["role"].isin(scores.attrs.get("undefined", "").split(", ")) & (table["units"] == 0)
    table.loc[undefined, "status"] = UNDEFINED
    tested = table["status"] == TESTED
    families = table["p_corrected"].where(tested).groupby(table["role"], sort=False)
    for name, method in CORRECTIONS.items():
        table[name] = families.transform(adjust, method)
    label = (table["p_by"] < rule.alpha) & (table["lower_bootstrap_t"] > rule.tau)
    by_mean = table["status"] == BY_MEAN
    table["assigned_corrected"] = (
        label.mask(by_mean, table["mean"] > rule.tau).astype("boolean").mask(~tested & ~by_mean)
    )
    columns = evidence.columns.drop(["units", "p_corrected"])
    return table[[*published.columns, *columns, *CORRECTIONS, "status", "assigned_corrected"]]


def adjust(p: Float[np.ndarray, "..."] | pd.Series, method: str) -> Float[np.ndarray, "..."]:
    """Adjusted p-values of one family of tests; a NaN stays NaN and does not count as a test.

    `method` is "holm", "fdr_bh" or "fdr_by"; raises InputError for another one.
    """
    if method not in CORRECTIONS.values():
        raise InputError(f"method {method!r} is unknown; use one of {', '.join(CORRECTIONS.values())}")
    adjusted = np.array(p, dtype=np.float64)
    present = ~np.isnan(adjusted)
    if present.any():
        tests = adjusted[present]
        adjusted[present] = _holm(tests) if method == "holm" else multipletests(tests, method=method)[1]
    return adjusted


def _holm(p: Float[np.ndarray, "test"]) -> Float[np.ndarray, "test"]:
    """The adjusted p-values of Holm 1979, those of `multipletests`.

    That function also runs the garbage collector for this method: 0.1 s and more for every family.
    """
    order = np.argsort(p)
    raw = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(raw), 1)
    return adjusted


def corrections(table: pd.DataFrame) -> pd.DataFrame:
    """The published p, corrected over all tests of a table: p_holm_all, p_bh_all, p_by_all.

    The first columns are those of task, state, role, layer and head that the table has.
    """
    keys = table[table.columns.intersection(["task", "state", "role", "layer", "head"], sort=False)]
    return keys.assign(**{f"{name}_all": adjust(table["p"], how) for name, how in CORRECTIONS.items()})


def label_comparison(table: pd.DataFrame) -> pd.Series:
    """One of LABEL_COMPARISONS for each row of a role table, from its published and its corrected label.

    A head with the published label that is untestable for the corrected rule is "published only".
    """
    published, corrected = (
        table[label].fillna(False).astype(bool) for label in ("assigned", "assigned_corrected")
    )
    names = np.select(
        [published & corrected, published, corrected, table["assigned_corrected"].isna()],
        [BOTH, PUBLISHED_ONLY, CORRECTED_ONLY, UNTESTABLE],
        NEITHER,
    )
    return pd.Series(names, index=table.index, name="labels")


def clusters_of(scores: xr.DataArray, unit: str) -> Shaped[np.ndarray, "sequence"] | None:
    """The cluster of each sequence if the unit is "cluster", None if it is "sequence".

    Raises InputError for scores without the coordinate.
    """
    if unit == "sequence":
        return None
    if unit not in scores.coords:
        raise InputError("scores have no coordinate cluster; extract them again, or take unit 'sequence'")
    return scores[unit].values


def over_patterns(
    values: Float[np.ndarray, "sequence ..."],
    clusters: Shaped[np.ndarray, "sequence"] | None,
    measure: Callable[..., dict[str, np.ndarray]],
    size: Float[np.ndarray, "..."] | None = None,
) -> pd.DataFrame:
    """The results of `measure(values without NaN, their clusters)` for every column of `values`, in their order.

    Columns with values for the same sequences are measured together and share resamples. With the `size` of the scores
    of which `values` are differences, `measure` takes it too.
    """
    columns = values.reshape(len(values), -1).astype(np.float64)
    patterns, pattern_of = np.unique(~np.isnan(columns), axis=1, return_inverse=True)
    parts = []
    for number, present in enumerate(patterns.T):
        members = np.flatnonzero(pattern_of == number)
        units = None if clusters is None else clusters[present]
        options = {} if size is None else {"size": size.ravel()[members]}
        parts.append(
            pd.DataFrame(measure(columns[np.ix_(present, members)], units, **options), index=members)
        )
    return pd.concat(parts).sort_index()


def _complete_evidence(
    values: Float[np.ndarray, "sequence column"],
    clusters: Shaped[np.ndarray, "sequence"] | None,
    rule: Rule,
) -> dict[str, np.ndarray]:
    """The columns of `role_table` for scores without NaN, and the number of units and the corrected t p."""
    tau, alpha = rule.tau, rule.alpha
    with quiet():
        sums = Clusters.of(values, clusters)
        mean, error, sd = sums.moments()
        units = len(sums.sizes)
        error = np.where(error > 0, error, np.nan)  # scores without spread have no test and no interval
        low, high = stats.t.interval(1 - alpha, units - 1, mean, error)
        return {
            "units": np.full(len(mean), units),
            "p_corrected": mean_above(mean - tau, error, sums.skewness(), units),
            "low": low,
            "high": high,
            "lower_bootstrap_t": lower_bound(sums, alpha, rule.resamples, rule.seed),
            "effect": np.where(sd > 0, (mean - tau) / sd, np.nan),
            "above": (values > tau).mean(axis=0),
            "skewness": np.where(sd > 0, stats.skew(values, axis=0), np.nan),
        }


def _status(table: pd.DataFrame, rule: Rule) -> np.ndarray:
    """The status of each head: tested, or the first reason why it is untestable."""
    reasons = {
        "no sequence has the role": table["units"] == 0,
        f"one {rule.unit}": table["units"] == 1,
        f"fewer than {rule.minimum} {rule.unit}s": table["units"] < rule.minimum,
    }
    status = np.select([*reasons.values()], [f"untestable: {reason}" for reason in reasons], TESTED)
    return np.where((status == TESTED) & table["p_corrected"].isna(), BY_MEAN, status)


def long_table(
    named: xr.DataArray | xr.Dataset, columns: Mapping[str, np.ndarray | xr.DataArray]
) -> pd.DataFrame:
    """One row per role, layer and head of `named`, in this order, with columns of arrays (role, layer, head)."""
    dimensions = DIMENSIONS[1:]
    coordinates = {name: named[name].values for name in dimensions}
    data = xr.Dataset(
        {name: (dimensions, np.asarray(column)) for name, column in columns.items()}, coordinates
    )
    return data.to_dataframe(dim_order=dimensions).reset_index()


def ordered(scores: xr.DataArray) -> xr.DataArray:
    """Scores in the order of DIMENSIONS; raises InputError if they have other dimensions."""
    if set(scores.dims) != set(DIMENSIONS):
        raise InputError(f"scores have the dimensions {scores.dims}; they must be {DIMENSIONS}")
    return scores.transpose(*DIMENSIONS)


@contextmanager
def quiet() -> Iterator[None]:
    """Hides the warnings of scipy and numpy about constant or empty columns, which become NaN here."""
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
