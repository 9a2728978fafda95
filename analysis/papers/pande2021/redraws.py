"""Bootstrap replicates of the evidence: other runs and other clusters of sequences, with every head labelled again."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.errors import InputError
from analysis.papers.pande2021.arrays import (
    by_task,
    labelled,
    mass_steps,
    matrices,
    ordered,
    paired,
    present,
    resampled_skewness,
)
from analysis.papers.pande2021.evidence import ARRAYS, Evidence
from analysis.scores.banks import UNIFORM_SCORE
from analysis.statistics.resampling import Clusters, counted
from analysis.statistics.significance import DDOF, mean_above

# scipy's test of skewness needs the resampled scores themselves and takes a hundred times as long as the other arrays.
SKEWNESS_REPLICATES = 99


def replicates(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[int, Mapping[str, xr.DataArray]],
    tau: float | int = 3.0,
    alpha: float = 0.05,
    number: int = 499,
    seed: int = 0,
    controls: Mapping[int, Mapping[str, xr.DataArray]] | None = None,
    minimum: int = 100,
) -> Evidence:
    """The evidence of `number` bootstrap replicates, each from a drawn run and drawn clusters of sequences.

    `finetuned` maps the seed of every run to its scores by task. For each task separately, a replicate draws one run at
    random, and as many clusters as there are (coordinate `cluster`, or sequences without it), with replacement, the
    same for both states. So the replicates vary as a new run on new sequences would; with few runs, the spread is
    underestimated. `skewed` has at most SKEWNESS_REPLICATES draws. With `controls`, the composed control scores of
    every run, `controlled` is known too. It uses only the corrected t test of the paired difference and the minimum
    number of sequences, since a bootstrap inside the bootstrap would take hours. Raises InputError if states or runs
    have different tasks or sequences, and for fewer than 99 replicates.
    """
    if number < 99:
        raise InputError(f"replicates is {number}: take at least 99, better 499")
    pairs = [paired(pretrained, run) for run in finetuned.values()]
    before = pairs[0][0]
    against = [_like(controls[run], before) if controls else {} for run in finetuned]
    streams = np.random.default_rng(seed).spawn(len(before))
    parts = {}
    for (task, scores), rng in zip(before.items(), streams, strict=True):
        units = len(np.unique(scores["cluster"]))
        counts = counted(rng.integers(units, size=(number, units)), units)
        chosen = rng.integers(len(pairs), size=number)
        runs = [(after[task], control.get(task)) for (_, after), control in zip(pairs, against, strict=True)]
        parts[task] = _redrawn(scores, runs, counts, chosen, tau, alpha, minimum)
    names = [name for name in ARRAYS if all(name in part for part in parts.values())]
    arrays = {name: by_task({task: part[name] for task, part in parts.items()}) for name in names}
    arrays = {name: array.transpose("replicate", ...) for name, array in arrays.items()}
    return Evidence(**arrays, drawn=_what_is_drawn(before, len(pairs)))


def _what_is_drawn(scores: Mapping[str, xr.DataArray], runs: int) -> str:
    """What a replicate draws, in words."""
    apart = all(len(np.unique(array["cluster"])) == len(array) for array in scores.values())
    units = "sequences" if apart else "clusters of sequences"
    return f"{units}, {runs} fine-tuning seed{'' if runs == 1 else 's'}"


def _redrawn(
    before: xr.DataArray,
    runs: Sequence[tuple[xr.DataArray, xr.DataArray | None]],
    counts: Int[np.ndarray, "replicate cluster"],
    chosen: Int[np.ndarray, "replicate"],
    tau: float | int,
    alpha: float,
    minimum: int,
) -> dict[str, xr.DataArray]:
    """The arrays of Evidence for one task; replicate i uses the scores and control scores of run `chosen[i]`."""
    parts = []
    for run in np.unique(chosen):
        rows = np.flatnonzero(chosen == run)
        after, control = runs[run]
        found = resampled(before, after, counts[rows], tau, alpha)
        if control is not None:
            found["controlled"] = resampled_control(after, control, counts[rows], tau, alpha, minimum)
        found["skewed"] = resampled_skewness(after, counts[rows[rows < SKEWNESS_REPLICATES]])
        parts.append(
            {name: array.assign_coords(replicate=rows[: len(array)]) for name, array in found.items()}
        )
    stacked = {name: xr.concat([part[name] for part in parts], "replicate") for name in parts[0]}
    return {name: array.sortby("replicate").drop_vars("replicate") for name, array in stacked.items()}


def resampled(
    before: xr.DataArray,
    after: xr.DataArray,
    counts: Int[np.ndarray, "replicate cluster"],
    tau: float | int,
    alpha: float,
) -> dict[str, xr.DataArray]:
    """labels, p, above, change and mass of one task (replicate first), with every cluster counted as in `counts`.

    Both states have their sequences in the same order; the columns of `counts` are the clusters in ascending order.
    """
    clusters = after["cluster"].values
    ddof = DDOF[after.attrs.get("arithmetic", "corrected")]
    tests = [_tests(scores, clusters, counts, tau, alpha, ddof) for scores in matrices(after, "role")]
    steps = [_means(scores, clusters, counts) for scores in matrices(after - before, "role")]
    moved = mass_steps(before, after)
    masses = [_means(scores, clusters, counts) for scores in matrices(moved, "target")]
    labels, p, above, _ = zip(*tests, strict=True)
    return {
        "labels": labelled(labels, after, "role"),
        "p": labelled(p, after, "role"),
        "above": labelled(above, after, "role"),
        "change": labelled(steps, after, "role"),
        "mass": labelled(masses, moved, "target"),
    }


def resampled_control(
    after: xr.DataArray,
    control: xr.DataArray,
    counts: Int[np.ndarray, "replicate cluster"],
    tau: float | int,
    alpha: float,
    minimum: int,
) -> xr.DataArray:
    """Controlled labels of one task (replicate first), with every cluster counted as in `counts` (see `resampled`).

    The t test is that of score - control's score > `tau` - 1, corrected by Benjamini and Yekutieli over the heads of
    the role. NaN for fewer than `minimum` sequences in the sample, and for constant differences.
    """
    difference, clusters = after - control, after["cluster"].values
    found = []
    for values in matrices(difference, "role"):
        labels, _, _, p = _tests(values, clusters, counts, tau - UNIFORM_SCORE, alpha, 1)
        corrected = stats.false_discovery_control(np.nan_to_num(p, nan=1.0), axis=1, method="by")
        enough = (~np.isnan(values).any(axis=1)).sum() >= minimum
        found.append(np.where(np.isnan(p) | ~enough, np.nan, labels * (corrected < alpha)))
    return labelled(found, after, "role")


def _like(control: Mapping[str, xr.DataArray], scores: Mapping[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    """Control scores in double precision, with sequences in the order of `scores`."""
    return {task: ordered(control[task]).sel(sequence=array["sequence"]) for task, array in scores.items()}


def _tests(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
    tau: float | int,
    alpha: float,
    ddof: int,
) -> tuple[Float[np.ndarray, "replicate column"], ...]:
    """Published labels, their p, whether the mean is above tau, the p of `mean_above`; NaN for one sequence or none.

    Scores without spread have no p, and their mean alone decides the label.
    """
    values, codes, drawn = present(scores, clusters, counts)
    if not len(values):
        untestable = np.full((len(counts), scores.shape[1]), np.nan)
        return (untestable,) * 4
    sums = Clusters.of(values, codes)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = sums.of_scores(drawn)
        n = (drawn @ sums.sizes)[:, None]
        t = (found.mean - tau) / (found.sd / np.sqrt(n)) * np.sqrt((n - ddof) / (n - 1))
        units = drawn.sum(axis=1)[:, None]
        error = np.where(found.error > 0, found.error, np.nan)
        audited = mean_above(found.mean - tau, error, sums.skewness(drawn), units)
    p = np.where(found.sd > 0, stats.t.sf(t, n - 1), np.nan)
    above = found.mean > tau
    labels = np.where(n < 2, np.nan, ((p < alpha) | (found.sd == 0)) & above)
    return labels, p, np.where(np.isnan(p), np.nan, above), audited


def _means(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
) -> Float[np.ndarray, "replicate column"]:
    """Means over the drawn sequences that have scores; NaN if none has."""
    values, codes, drawn = present(scores, clusters, counts)
    if not len(values):
        return np.full((len(counts), scores.shape[1]), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Clusters.of(values, codes).moments(drawn).mean
