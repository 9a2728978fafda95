"""Composed scores as arrays for the evidence: paired states, roles and masses as matrices, tests of skewness."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.errors import InputError
from analysis.statistics.roles import MASSES, ROLES, attention_masses
from analysis.statistics.significance import DIMENSIONS

SKEWNESS_LEVEL = 0.05


def paired(
    pretrained: Mapping[str, xr.DataArray], finetuned: Mapping[str, xr.DataArray]
) -> tuple[dict[str, xr.DataArray], dict[str, xr.DataArray]]:
    """The scores of both states in double precision, tasks by name, and sequences in the same order."""
    if pretrained.keys() != finetuned.keys():
        raise InputError(
            f"pre-trained scores are of {', '.join(pretrained)}, fine-tuned ones of {', '.join(finetuned)}: "
            "give the same tasks"
        )
    for task, before in pretrained.items():
        if set(before["sequence"].values) != set(finetuned[task]["sequence"].values):
            raise InputError(
                f"task {task}: pre-trained and fine-tuned scores are of different sequences; extract both again"
            )
    tasks = sorted(pretrained)
    before = {task: _numbered(ordered(pretrained[task])) for task in tasks}
    same = {task: {"sequence": before[task]["sequence"]} for task in tasks}
    after = {task: ordered(finetuned[task]).sel(same[task]) for task in tasks}
    clusters = {task: {"cluster": before[task]["cluster"]} for task in tasks}
    return before, {task: after[task].assign_coords(clusters[task]) for task in tasks}


def ordered(scores: xr.DataArray) -> xr.DataArray:
    """The ten roles in double precision, in the usual order of dimensions."""
    if not {*ROLES}.issubset(scores["role"].values):
        raise InputError(
            f"the scores need the roles {', '.join(ROLES)}; compute them with analysis.statistics.roles.compose"
        )
    return scores.transpose(*DIMENSIONS).sel(role=[*ROLES]).astype(np.float64)


def _numbered(scores: xr.DataArray) -> xr.DataArray:
    """The scores with clusters numbered from 0; without clusters, every sequence is a cluster of its own."""
    names = scores["cluster"] if "cluster" in scores.coords else scores["sequence"]
    return scores.assign_coords(cluster=("sequence", np.unique(names.values, return_inverse=True)[1]))


def mass_steps(before: xr.DataArray, after: xr.DataArray) -> xr.DataArray:
    """The change of the proportion of attention by fine-tuning: (sequence, target, layer, head)."""
    old, new = attention_masses(before), attention_masses(after)
    steps = [(new[target] - old[target]).reset_coords(drop=True) for target in MASSES]
    return xr.concat(steps, pd.Index([*MASSES], name="target")).transpose("sequence", ...)


def matrices(scores: xr.DataArray, dimension: str) -> Iterable[Float[np.ndarray, "sequence column"]]:
    """The scores of each role or target, one after the other, with one column per head."""
    return (part.reshape(len(part), -1) for part in scores.transpose(dimension, "sequence", ...).values)


def labelled(
    columns: Sequence[Float[np.ndarray, "replicate column"]], like: xr.DataArray, dimension: str
) -> xr.DataArray:
    """The arrays of every role or target as (replicate, role or target, layer, head)."""
    coordinates = {name: like[name].values for name in (dimension, "layer", "head")}
    shape = [len(values) for values in coordinates.values()]
    data = np.stack(columns, axis=1).reshape(-1, *shape)
    return xr.DataArray(data, coordinates, ("replicate", *coordinates))


def by_task(arrays: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """The arrays of all tasks, with `task` as the first dimension."""
    tasks = pd.Index([*arrays], name="task")
    return xr.concat([array.reset_coords(drop=True) for array in arrays.values()], tasks)


def present(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
) -> tuple[
    Float[np.ndarray, "present column"], Int[np.ndarray, "present"], Int[np.ndarray, "replicate kept"]
]:
    """The sequences that have scores, their clusters, and how often each of these clusters was drawn."""
    complete = ~np.isnan(scores).any(axis=1)
    kept, codes = np.unique(clusters[complete], return_inverse=True)
    return scores[complete], codes, counts[:, kept]


def skewness_tests(scores: xr.DataArray) -> xr.DataArray:
    """`skewed` (role, layer, head) of the sample."""
    once = np.ones((1, len(np.unique(scores["cluster"]))), dtype=int)
    return resampled_skewness(scores, once).isel(replicate=0)


def resampled_skewness(after: xr.DataArray, counts: Int[np.ndarray, "replicate cluster"]) -> xr.DataArray:
    """`skewed` of one task (replicate first), with every cluster counted as in `counts` (see `resampled`)."""
    clusters = after["cluster"].values
    found = []
    for scores in matrices(after, "role"):
        values, codes, drawn = present(scores, clusters, counts)
        rows = [np.repeat(np.arange(len(values)), often[codes]) for often in drawn]
        found.append(np.array([_skewed(values[row]) for row in rows]).reshape(len(rows), scores.shape[1]))
    return labelled(found, after, "role")


def _skewed(values: Float[np.ndarray, "sequence column"]) -> Float[np.ndarray, "column"]:
    """1 if D'Agostino's test rejects zero skewness, else 0; NaN for constant scores or fewer than 8."""
    varies = values.max(axis=0, initial=-np.inf) > values.min(axis=0, initial=np.inf)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy's warnings on columns that become NaN here
        p = stats.skewtest(values, axis=0).pvalue
    return np.where(varies & ~np.isnan(p), p < SKEWNESS_LEVEL, np.nan)
