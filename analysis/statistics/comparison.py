"""Changes by fine-tuning: the scores of every head on the same sequences before and after."""

from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from analysis.statistics.resampling import ByColumn, Clusters, Columns, Groups
from analysis.statistics.significance import (
    DEFAULT_RULE,
    Rule,
    adjust,
    clusters_of,
    long_table,
    ordered,
    over_patterns,
    same_cells,
)

CELL = ["layer", "head", "role"]
TESTS = ["low", "high", "p", "p_sign_flip", "p_by", "p_equivalence"]
CHANGE_COLUMNS = [*CELL, "n", "pretrained", "finetuned", "difference", *TESTS, "change"]
CHANGES = ("gained", "lost", "kept", "equivalent", "inconclusive")
BATCH = 500  # sign flips in memory at a time


def compare(
    pretrained: xr.DataArray,
    finetuned: xr.DataArray,
    before: pd.DataFrame,
    after: pd.DataFrame,
    rule: Rule = DEFAULT_RULE,
    margin: float | int = 0.5,
    permutations: int = 9999,
) -> pd.DataFrame:
    """Fine-tuned minus pre-trained scores on the same sequences, as in `change-*` (docs/tables.yaml): a row per head.

    The interval and p are those of the paired t test, at level 1 - `alpha`; p_by corrects p_sign_flip over the heads
    of a role; p_equivalence is for a difference within +- `margin` (score units). change depends on the labels
    `assigned_corrected` of the role tables `before` and `after`. gained: label only after, p_by < alpha,
    difference > 0. lost: label only before, p_by < alpha, difference < 0. kept: label in both. equivalent: label in
    neither, p_equivalence < alpha. inconclusive: all others. <NA>: not applicable before or after.

    A difference that is equal in all units is exact: low = high, and the t tests have p 0 or 1. Source: Pande 2021,
    question 3; departure: the article compares labels and means without a test.
    """
    first = ordered(pretrained).astype(float)
    second = same_cells(first, ordered(finetuned), "fine-tuned scores").astype(float)
    difference = second - first
    table = long_table(first, {"pretrained": first.mean("sequence"), "finetuned": second.mean("sequence")})
    table = table.join(over_patterns(difference, partial(_tests, margin=margin), rule))
    columns, clusters = difference.values.reshape(len(difference), -1), clusters_of(first, rule.unit)
    table["p_sign_flip"] = sign_flip(columns, clusters, permutations, rule.seed)
    table["p_by"] = table.groupby("role", sort=False)["p_sign_flip"].transform(adjust, "fdr_by")
    table["change"] = _change(table, before, after, rule.alpha)
    return table[CHANGE_COLUMNS]


def sign_flip(
    difference: Columns, clusters: Groups | None = None, permutations: int = 9999, seed: int = 0
) -> ByColumn:
    """Two-sided sign-flip p of mean difference = 0 in each column; NaN if fewer than two units have a value.

    All columns share the flips of sequences or of whole clusters; a missing difference counts as 0. If there are more
    flips than `permutations`, a random sample is tried, and no p is below 2 / (1 + permutations). After correction over
    m heads (Benjamini and Yekutieli), heads can then be rejected only if many reach this lowest p: about
    2 m (1 + 1/2 + ... + 1/m) / (1 + permutations) / alpha of them. Assumes differences that are
    symmetric about their mean.
    """
    frame = pd.DataFrame(difference)
    totals = frame.groupby(frame.index if clusters is None else clusters).sum(min_count=1)
    if len(totals) < 2:
        return np.full(difference.shape[1], np.nan)
    summed = totals.fillna(0).to_numpy()
    tested = stats.permutation_test(
        (np.ones(len(summed)),), lambda signs, axis: signs @ summed, permutation_type="samples",
        vectorized=True, n_resamples=permutations, batch=BATCH, rng=seed,
    )  # fmt: skip
    return np.where(totals.notna().sum() > 1, tested.pvalue, np.nan)


def _tests(
    difference: Columns, clusters: Groups | None, _: object, rule: Rule, margin: float | int
) -> dict[str, np.ndarray]:
    """n, difference, low, high, p and p_equivalence of every column of differences of scores.

    The tests take one value per unit, whose mean is that over sequences and whose standard error is cluster-robust:
    the differences themselves, or the linearised totals of clusters.
    """
    sums, mean = Clusters.of(difference, clusters), difference.mean(axis=0)
    result = {"n": np.full(len(mean), len(difference)), "difference": mean}
    if len(sums.sizes) < 2:
        return result | dict.fromkeys(("low", "high", "p", "p_equivalence"), np.full(len(mean), np.nan))
    values = sums.centre + sums.totals * (len(sums.sizes) / sums.sizes.sum())
    exact = values.max(axis=0) == values.min(axis=0)
    varied = np.where(exact, np.nan, values)
    tested, p_equivalence = stats.ttest_1samp(varied, 0), DescrStatsW(varied).ttost_mean(-margin, margin)[0]
    low, high = tested.confidence_interval(1 - rule.alpha)
    return result | {
        "low": np.where(exact, mean, low),
        "high": np.where(exact, mean, high),
        "p": np.where(exact, mean == 0, tested.pvalue),
        "p_equivalence": np.where(exact, abs(mean) >= margin, p_equivalence),
    }


def _change(table: pd.DataFrame, before: pd.DataFrame, after: pd.DataFrame, alpha: float) -> pd.Series:
    """The class of every row (see `compare`), by the corrected labels of both role tables."""
    heads = pd.MultiIndex.from_frame(table[CELL])
    labels = pd.DataFrame({
        state: roles.set_index(CELL)["assigned_corrected"].astype("boolean").loc[heads].array
        for state, roles in (("before", before), ("after", after))
    })  # fmt: skip
    had, has = (labels[state].fillna(False).astype(bool) for state in labels)
    changed = table["p_by"] < alpha
    rules = {
        "gained": ~had & has & changed & (table["difference"] > 0),
        "lost": had & ~has & changed & (table["difference"] < 0),
        "kept": had & has,
        "equivalent": ~had & ~has & (table["p_equivalence"] < alpha),
    }
    classes = pd.Series(np.select([*rules.values()], [*rules], "inconclusive"), table.index, dtype="string")
    return classes.where(labels.notna().all(axis=1))
