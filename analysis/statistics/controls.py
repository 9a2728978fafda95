"""The third label: does a head beat, by the margin of the published rule, a control that cannot know the role?"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Shaped
from scipy import stats

from analysis.errors import InputError
from analysis.statistics.resampling import Clusters, lower_bound
from analysis.statistics.roles import CONTROLS
from analysis.statistics.significance import (
    DIMENSIONS,
    adjust,
    clusters_of,
    ordered,
    over_patterns,
    published_table,
    quiet,
    role_table,
)
from analysis.texts.syntax import REVERSED

UNIFORM = "uniform"
NEAR_ZERO = 0.01  # a mean score below this, a hundredth of a uniform head's, is no denominator
UNIFORM_SCORE = 1.0  # of a uniform head; the margin is tau - 1
CONTROLLED = ["control", "control_mean", "control_share", "control_assigned"]
CONTROLLED += ["beyond_p_by", "controlled_p_by", "assigned_controlled"]


def control_sieves(sieves: Sequence[str]) -> dict[str, list[str]]:
    """The elementary sieves of the roles, by the map source of their control (CONTROLS).

    Sieves that are part of no role are left out. Relations are the sieves with a reversed counterpart.
    """
    relations = {name for name in sieves if f"{name}{REVERSED}" in sieves}
    made_of = {
        "local": [name for name in sieves if name.startswith("window_")],
        "syntactic": [name for name in sieves if name.removesuffix(REVERSED) in relations],
        "block": [name for name in sieves if name in ("block", "own_sentence")],
        **{role: [role] for role in ("delimiter", "cls", "sep") if role in sieves},
    }
    found: dict[str, list[str]] = {}
    for role, names in made_of.items():
        found.setdefault(CONTROLS[role], []).extend(names)
    return {source: names for source, names in found.items() if names}


def control_bank(bank: xr.DataArray, controls: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """The scores of elementary sieves on their control maps, which `compose` takes like the `bank` of attention.

    `controls` maps a map source to its scores by `extract`; scores of `uniform` are 1 and need none. Sieves that are
    part of no role are left out. Raises InputError for a missing source, and if sequences, heads or the presence of
    roles differ from those of the bank.
    """
    parts = []
    for source, names in control_sieves(bank["role"].values.tolist()).items():
        own = bank.sel(role=names)
        parts.append(_uniform(own) if source == UNIFORM else _of_source(own, controls, source))
    return xr.concat(parts, "role", combine_attrs="override")


def controlled_table(
    scores: xr.DataArray,
    control: xr.DataArray,
    tau: float | int = 3.0,
    alpha: float = 0.05,
    minimum: int = 20,
    resamples: int = 999,
    seed: int = 0,
    unit: str = "sequence",
) -> pd.DataFrame:
    """Role table with three labels per head: the columns of `role_table`, then those of the control.

    `scores` are composed roles, `control` the scores of their controls on the same sequences. The published rule asks
    whether a head beats a uniform head, whose score is 1, by more than `tau` - 1. The controlled label keeps this
    margin and replaces the uniform head by the role's control: assigned_controlled rejects mean(score - score of the
    control) <= tau - 1, paired by sequence, as assigned_audited rejects mean(score) <= tau: by controlled_p_by (t test,
    Benjamini and Yekutieli over the heads of the role) and the lower bound of the bootstrap-t. For a uniform control
    it is the audited label.

    The other columns are control (map source), control_mean (mean score), control_share (control_mean / mean; NaN
    where one of both is near 0), control_assigned (published rule for the control) and beyond_p_by (difference above
    0, also corrected). Labels are <NA> for untestable heads. Differences without spread have no p: their mean alone
    decides. Raises InputError as `role_table` does, and if control and scores differ in sequences, roles or heads.
    Departure from Pande 2021: all of it.
    """
    table = role_table(scores, tau, alpha, minimum, resamples, seed, unit)
    array = ordered(scores)
    against = _same(array, ordered(control), "control scores")
    table["control"] = table["role"].map(CONTROLS)
    of_control = published_table(against, tau, alpha)
    table["control_mean"], table["control_assigned"] = of_control["mean"], of_control["assigned"]
    known = table[["mean", "control_mean"]].abs().ge(NEAR_ZERO).all(axis=1)
    table["control_share"] = (table["control_mean"] / table["mean"]).where(known)
    difference = array.values.astype(np.float64) - against.values
    margin = tau - UNIFORM_SCORE
    measure = partial(_paired_tests, margin=margin, alpha=alpha, resamples=resamples, seed=seed)
    tests = over_patterns(difference, clusters_of(array, unit), measure)
    tested, by_role = table["assigned_audited"].notna(), table["role"]
    for name in ("beyond", "controlled"):
        families = tests[f"p_{name}"].where(tested).groupby(by_role, sort=False)
        table[f"{name}_p_by"] = families.transform(adjust, "fdr_by")
    label = (table["controlled_p_by"] < alpha) & (tests["lower"] > margin)
    by_mean = table["assigned_audited"].notna() & tests["p_controlled"].isna()
    label = label.mask(by_mean, table["mean"] - table["control_mean"] > margin)
    table["assigned_controlled"] = label.astype("boolean").mask(table["controlled_p_by"].isna() & ~by_mean)
    same = table["control"] == UNIFORM
    table.loc[same, "controlled_p_by"] = table["p_by"]
    table.loc[same, "assigned_controlled"] = table["assigned_audited"]
    return table[[*table.columns.drop(CONTROLLED), *CONTROLLED]]


def _paired_tests(
    difference: Float[np.ndarray, "sequence column"],
    clusters: Shaped[np.ndarray, "sequence"] | None,
    margin: float,
    alpha: float,
    resamples: int,
    seed: int,
) -> dict[str, np.ndarray]:
    """One-sided p of mean difference > 0 and > `margin`, and the lower bound of the bootstrap-t; NaN if untestable."""
    if not len(difference):
        return dict.fromkeys(("p_beyond", "p_controlled", "lower"), np.full(difference.shape[1], np.nan))
    sums = Clusters.of(difference, clusters)
    mean, error, _ = sums.of_scores()
    units = len(sums.sizes)
    with quiet():
        error = np.where(error > 0, error, np.nan)
        found = {
            "p_beyond": stats.t.sf(mean / error, units - 1),
            "p_controlled": stats.t.sf((mean - margin) / error, units - 1),
        }
        lower = lower_bound(sums, alpha, resamples, seed) if units > 1 else np.full(len(mean), np.nan)
    return found | {"lower": lower}


def _uniform(scores: xr.DataArray) -> xr.DataArray:
    """The scores of a uniform head: 1 if the sieve is present, else NaN."""
    return xr.where(scores.isnull(), scores, np.array(UNIFORM_SCORE, scores.dtype), keep_attrs=True)


def _of_source(own: xr.DataArray, controls: Mapping[str, xr.DataArray], source: str) -> xr.DataArray:
    """The scores of a source for the sieves of `own`, with the coordinates of `own`."""
    if source not in controls:
        raise InputError(f"control scores of maps {source!r} are missing: extract them with 01_extract")
    missing = set(own["role"].values) - set(controls[source]["role"].values)
    if missing:
        raise InputError(
            f"control scores of maps {source!r} lack the sieve {str(min(missing))!r}: extract it too"
        )
    found = _same(own.transpose(*DIMENSIONS), controls[source].transpose(*DIMENSIONS), f"maps {source!r}")
    return found.transpose(*own.dims)


def _same(scores: xr.DataArray, control: xr.DataArray, what: str) -> xr.DataArray:
    """Control scores in the order and with the coordinates of `scores`; raises InputError if these differ."""
    for name in DIMENSIONS:
        if not set(scores[name].values) <= set(control[name].values):
            raise InputError(f"{what} differ from the scores in {name}: extract both from the same sequences")
    chosen = control.sel({name: scores[name].values for name in DIMENSIONS})
    if not np.array_equal(np.isnan(chosen.values), np.isnan(scores.values)):
        raise InputError(f"{what} differ from the scores in which sequence has which role: use one parse")
    return scores.copy(data=chosen.values)
