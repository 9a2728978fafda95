"""The evidence for the claims: labelled arrays of the sample, of the released maps, and of bootstrap replicates."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int

from analysis.errors import InputError
from analysis.statistics.bootstrap import resampled, resampled_test
from analysis.statistics.resampling import Clusters
from analysis.statistics.roles import HEAD, MASSES, PUBLISHED_ROLES, attention_masses
from analysis.statistics.significance import DEFAULT_RULE, Rule, ordered, published_labels, quiet

ARRAYS = ("labels", "p", "change", "mass")
LEAST_SD = 1e-4  # of paired differences (score units): a head with less has no standardised change


@dataclass(frozen=True)
class Evidence:
    """Arrays (run, replicate, task, role, layer, head) of fine-tuned encoders; replicate 0 is the sample.

    `labels` of the published rule (1, 0, NaN not applicable) and `p` of their tests; fine-tuned minus pre-trained:
    `change` of the scores (mean over standard deviation of the paired differences), and `mass` (with target instead
    of role), the change of the mean proportion of attention. None means not known. `trained` (run, task) says which
    runs trained successfully; the others are no evidence.
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
        coordinates = {name: self.labels[name].values for name in ("run", "task")}
        grid = [[(task, run) in trained for task in coordinates["task"]] for run in coordinates["run"]]
        return replace(self, trained=xr.DataArray(grid, coordinates))


def evidence_of_labels(table: pd.DataFrame) -> Evidence:
    """The labels of a role table with the columns task, role, layer, head and assigned; the rest is not known."""
    rows = table.set_index(["task", "role", *HEAD])["assigned"].astype("Float64").astype(np.float64)
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
    it), with replacement, the same for all runs and both states. Raises InputError for fewer than 99 replicates.
    """
    if replicates < 99:
        raise InputError(f"replicates is {replicates}: take at least 99, better 199")
    tasks = sorted(pretrained)
    before = {task: _numbered(published_roles(pretrained[task])) for task in tasks}
    runs = []
    for scores in finetuned.values():
        streams = np.random.default_rng(rule.seed).spawn(len(tasks))
        parts = {}
        for (task, old), rng in zip(before.items(), streams, strict=True):
            new = published_roles(scores[task]).sel(sequence=old["sequence"])
            counts = resampled(len(np.unique(old["cluster"])), replicates, rng)
            parts[task] = replicated(old, new.assign_coords(cluster=old["cluster"]), counts, rule)
        runs.append(
            {name: along_tasks({task: part[name] for task, part in parts.items()}) for name in ARRAYS}
        )
    index = pd.Index([*finetuned], name="run")
    arrays = {name: xr.concat([run[name] for run in runs], index, join="exact") for name in ARRAYS}
    return Evidence(**{name: array.transpose("run", "replicate", ...) for name, array in arrays.items()})


def restricted_to(controls: Evidence, heads: Evidence) -> Evidence:
    """Evidence of control heads in which a control with constant scores, such as a uniform head, has no role.

    What cannot be tested for heads cannot be tested for their controls.
    """
    tested = heads.labels.isel(replicate=[0]).notnull().values
    return replace(controls, labels=controls.labels.fillna(0).where(tested))


def published_roles(scores: xr.DataArray) -> xr.DataArray:
    """The ten roles in double precision, in the usual order of dimensions."""
    return ordered(scores).sel(role=[*PUBLISHED_ROLES]).astype(np.float64)


def _numbered(scores: xr.DataArray) -> xr.DataArray:
    """The scores with clusters numbered from 0; without clusters, every sequence is a cluster of its own."""
    names = scores["cluster"] if "cluster" in scores.coords else scores["sequence"]
    return scores.assign_coords(cluster=("sequence", np.unique(names.values, return_inverse=True)[1]))


def mass_changes(before: xr.DataArray, after: xr.DataArray) -> xr.DataArray:
    """The change of the proportion of attention by fine-tuning: (sequence, target, layer, head)."""
    old, new = attention_masses(before), attention_masses(after)
    changes = [(new[target] - old[target]).reset_coords(drop=True) for target in MASSES]
    return xr.concat(changes, pd.Index([*MASSES], name="target")).transpose("sequence", ...)


def along_tasks(arrays: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """The arrays of all tasks, with `task` as the first dimension."""
    tasks = pd.Index([*arrays], name="task")
    return xr.concat([array.reset_coords(drop=True) for array in arrays.values()], tasks)


def replicated(
    before: xr.DataArray, after: xr.DataArray, counts: Int[np.ndarray, "replicate cluster"], rule: Rule
) -> dict[str, xr.DataArray]:
    """labels, p, change and mass of one task (replicate first), with every cluster counted as in `counts`.

    Both states have their sequences in the same order; the columns of `counts` are the clusters in ascending order.
    """
    clusters, arithmetic = after["cluster"].values, after.attrs.get("arithmetic", "corrected")

    def labels_and_p(sums: Clusters, draws: Int[np.ndarray, "replicate cluster"]) -> np.ndarray:
        test = resampled_test(sums, draws, rule.tau, arithmetic)
        return np.stack([published_labels(test, rule), test.p])

    def means(sums: Clusters, draws: Int[np.ndarray, "replicate cluster"]) -> np.ndarray:
        return sums.moments(draws).mean[None]

    def standardised(sums: Clusters, draws: Int[np.ndarray, "replicate cluster"]) -> np.ndarray:
        moments = sums.moments(draws)
        return np.where(moments.sd > LEAST_SD, moments.mean / moments.sd, np.nan)[None]

    labels, p = _over_heads(after, "role", clusters, counts, labels_and_p)
    (change,) = _over_heads(after - before, "role", clusters, counts, standardised)
    (mass,) = _over_heads(mass_changes(before, after), "target", clusters, counts, means)
    return {"labels": labels, "p": p, "change": change, "mass": mass}


def _over_heads(
    scores: xr.DataArray,
    dimension: str,
    clusters: Int[np.ndarray, " sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
    statistics: Callable[[Clusters, Int[np.ndarray, "replicate cluster"]], np.ndarray],
) -> list[xr.DataArray]:
    """Statistics (replicate, role or target, layer, head) of the drawn sequences that have scores; else NaN."""
    parts = []
    for values in scores.transpose(dimension, "sequence", ...).values:
        values = values.reshape(len(values), -1)
        present = ~np.isnan(values).any(axis=1)
        names, codes = np.unique(clusters[present], return_inverse=True)
        with quiet():  # no sequence is drawn that has scores
            parts.append(statistics(Clusters.of(values[present], codes), counts[:, names]))
    coordinates = {name: scores[name].values for name in (dimension, *HEAD)}
    shape = [len(values) for values in coordinates.values()]
    arrays = np.stack(parts, axis=2).reshape(-1, len(counts), *shape)
    return [xr.DataArray(array, coordinates, ("replicate", *coordinates)) for array in arrays]
