"""The evidence for the claims: labelled arrays of the sample, of the released maps, and of bootstrap replicates."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from analysis.errors import InputError
from analysis.statistics.resampling import Clusters, resampled
from analysis.statistics.roles import MASSES, PUBLISHED_ROLES, attention_masses
from analysis.statistics.significance import DEFAULT_RULE, DIMENSIONS, Rule, published_labels, resampled_test


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
    before = {task: _numbered(published_roles(pretrained[task])) for task in tasks}
    after = {}
    for task, scores in before.items():
        tuned = published_roles(finetuned[task]).sel(sequence=scores["sequence"])
        after[task] = tuned.assign_coords(cluster=scores["cluster"])
    return before, after


def published_roles(scores: xr.DataArray) -> xr.DataArray:
    """The ten roles in double precision, in the usual order of dimensions."""
    if not {*PUBLISHED_ROLES}.issubset(scores["role"].values):
        raise InputError(
            f"the scores need the roles {', '.join(PUBLISHED_ROLES)}; "
            "compute them with analysis.statistics.roles.compose"
        )
    return scores.transpose(*DIMENSIONS).sel(role=[*PUBLISHED_ROLES]).astype(np.float64)


def _numbered(scores: xr.DataArray) -> xr.DataArray:
    """The scores with clusters numbered from 0; without clusters, every sequence is a cluster of its own."""
    names = scores["cluster"] if "cluster" in scores.coords else scores["sequence"]
    return scores.assign_coords(cluster=("sequence", np.unique(names.values, return_inverse=True)[1]))


def mass_changes(before: xr.DataArray, after: xr.DataArray) -> xr.DataArray:
    """The change of the proportion of attention by fine-tuning: (sequence, target, layer, head)."""
    old, new = attention_masses(before), attention_masses(after)
    changes = [(new[target] - old[target]).reset_coords(drop=True) for target in MASSES]
    return xr.concat(changes, pd.Index([*MASSES], name="target")).transpose("sequence", ...)


def matrices(scores: xr.DataArray, dimension: str) -> Iterable[Float[np.ndarray, "sequence column"]]:
    """The scores of each role or target, one after the other, with one column per head."""
    return (part.reshape(len(part), -1) for part in scores.transpose(dimension, "sequence", ...).values)


def stacked(
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
    Float[np.ndarray, "present column"],
    Int[np.ndarray, "present"],
    Int[np.ndarray, "replicate present_cluster"],
]:
    """The scores of the sequences that have them, the clusters of these, and the draws of each such cluster."""
    complete = ~np.isnan(scores).any(axis=1)
    names, codes = np.unique(clusters[complete], return_inverse=True)
    return scores[complete], codes, counts[:, names]


ARRAYS = ("labels", "p", "change", "mass")
HEADS = ("role", "layer", "head")


@dataclass(frozen=True)
class Evidence:
    """Arrays (run, replicate, task, role, layer, head) of fine-tuned encoders; replicate 0 is the sample.

    `labels` of the published rule (1, 0, NaN untestable) and `p` of their tests; fine-tuned minus pre-trained: `change`
    of the mean scores, and `mass` (with target instead of role), the change of the mean proportion of attention. None
    means not known. `trained` (run, task) says which runs trained successfully; the others are no evidence.
    """

    labels: xr.DataArray
    p: xr.DataArray | None = None
    change: xr.DataArray | None = None
    mass: xr.DataArray | None = None
    trained: xr.DataArray | None = None

    def with_trained(self, trained: Collection[tuple[str, int]] | None) -> "Evidence":
        """The same evidence with the runs (task, run) that trained successfully; None: all of them."""
        if trained is None:
            return self
        grid = [
            [(task, run) in trained for task in self.labels["task"].values]
            for run in self.labels["run"].values
        ]
        coordinates = {name: self.labels[name] for name in ("run", "task")}
        return replace(self, trained=xr.DataArray(grid, coordinates))


def evidence_of_labels(table: pd.DataFrame) -> Evidence:
    """The labels of a role table with the columns task, role, layer, head and assigned; the rest is not known."""
    rows = table.set_index(["task", *HEADS])["assigned"].astype("Float64").astype(np.float64)
    labels = rows.to_xarray().reindex(role=[*PUBLISHED_ROLES]).rename(None)
    return Evidence(labels=labels.expand_dims(["run", "replicate"]))


def evidence_of(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[int, Mapping[str, xr.DataArray]],
    rule: Rule = DEFAULT_RULE,
    replicates: int = 199,
) -> Evidence:
    """The sample's evidence and that of bootstrap replicates, from composed scores by task; `finetuned` by run.

    A replicate draws as many clusters of sequences of a task as there are (coordinate `cluster`, or sequences without
    it), with replacement, the same for all runs and both states. Raises InputError if states or runs have different
    tasks or sequences, and for fewer than 99 replicates.
    """
    if replicates < 99:
        raise InputError(f"replicates is {replicates}: take at least 99, better 199")
    runs = []
    for scores in finetuned.values():
        before, after = paired(pretrained, scores)
        streams = np.random.default_rng(rule.seed).spawn(len(before))
        parts = {}
        for (task, old), rng in zip(before.items(), streams, strict=True):
            units = len(np.unique(old["cluster"]))
            counts = resampled(units, replicates, rng)
            parts[task] = replicated(old, after[task], counts, rule)
        runs.append({name: by_task({task: part[name] for task, part in parts.items()}) for name in ARRAYS})
    index = pd.Index([*finetuned], name="run")
    arrays = {name: xr.concat([run[name] for run in runs], index, join="exact") for name in ARRAYS}
    return Evidence(**{name: array.transpose("run", "replicate", ...) for name, array in arrays.items()})


def restricted_to(controls: Evidence, heads: Evidence) -> Evidence:
    """Evidence of control heads in which a control with constant scores, such as a uniform head, has no role.

    What cannot be tested for heads cannot be tested for their controls.
    """
    tested = heads.labels.isel(replicate=[0]).notnull().values
    return replace(controls, labels=controls.labels.fillna(0).where(tested))


def replicated(
    before: xr.DataArray, after: xr.DataArray, counts: Int[np.ndarray, "replicate cluster"], rule: Rule
) -> dict[str, xr.DataArray]:
    """labels, p, change and mass of one task (replicate first), with every cluster counted as in `counts`.

    Both states have their sequences in the same order; the columns of `counts` are the clusters in ascending order.
    """
    clusters = after["cluster"].values
    arithmetic = after.attrs.get("arithmetic", "corrected")
    tests = [_tests(scores, clusters, counts, rule, arithmetic) for scores in matrices(after, "role")]
    changes = [_means(scores, clusters, counts) for scores in matrices(after - before, "role")]
    mass_change = mass_changes(before, after)
    masses = [_means(scores, clusters, counts) for scores in matrices(mass_change, "target")]
    labels, p = zip(*tests, strict=True)
    by_role = {"labels": labels, "p": p, "change": changes}
    arrays = {name: stacked(columns, after, "role") for name, columns in by_role.items()}
    return arrays | {"mass": stacked(masses, mass_change, "target")}


def _tests(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
    rule: Rule,
    arithmetic: str,
) -> tuple[Float[np.ndarray, "replicate column"], ...]:
    """Published labels and their p; NaN for one sequence or none.

    Scores without spread have no p, and their mean alone decides the label.
    """
    values, codes, draws = present(scores, clusters, counts)
    if not len(values):
        untestable = np.full((len(counts), scores.shape[1]), np.nan)
        return untestable, untestable
    test = resampled_test(Clusters.of(values, codes), draws, rule.tau, arithmetic)
    return published_labels(test, rule), test.p


def _means(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
) -> Float[np.ndarray, "replicate column"]:
    """Means over the drawn sequences that have scores; NaN if none has."""
    values, codes, draws = present(scores, clusters, counts)
    if not len(values):
        return np.full((len(counts), scores.shape[1]), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Clusters.of(values, codes).moments(draws).mean
