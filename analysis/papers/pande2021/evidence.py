"""The evidence for the claims: labelled arrays of the sample, of the released maps, and of bootstrap replicates."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.errors import InputError
from analysis.scores.banks import UNIFORM_SCORE
from analysis.statistics.resampling import Clusters, counted
from analysis.statistics.roles import MASSES, PUBLISHED_ROLES, attention_masses
from analysis.statistics.significance import (
    DDOF,
    DIMENSIONS,
    mean_above,
    published_labels,
    published_table,
    t_test,
)

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


ARRAYS = ("labels", "p", "above", "change", "mass", "skewed", "controlled")
HEADS = ("role", "layer", "head")


@dataclass(frozen=True)
class Evidence:
    """Arrays (replicate, task, role, layer, head): first the sample of every run, then draws; None means not known.

    For the fine-tuned models: `labels` of the published rule (1, 0, NaN untestable), `p` of their tests, `above`
    (whether the mean exceeds tau), `controlled` (labels of the third rule) and `skewed` (whether D'Agostino's test
    rejects zero skewness: 1, 0, NaN untestable; fewer draws). For fine-tuned minus pre-trained: `change` of the mean
    scores, and `mass` (with target instead of role: sep, cls, other), the change of the mean proportion of attention.
    `drawn` says in words what a replicate draws; `runs` says how many fine-tuning runs come first.
    """

    labels: xr.DataArray | None = None
    p: xr.DataArray | None = None
    above: xr.DataArray | None = None
    change: xr.DataArray | None = None
    mass: xr.DataArray | None = None
    skewed: xr.DataArray | None = None
    controlled: xr.DataArray | None = None
    drawn: str = ""
    runs: int = 1

    @property
    def arrays(self) -> dict[str, xr.DataArray]:
        """The known arrays, by name."""
        return {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}

    def with_testable(self, roles: Sequence[str]) -> "Evidence":
        """The labels of the tasks in which each of the roles has a testable head in the sample."""
        tested = self.labels.isel(replicate=0).sel(role=[*roles]).notnull().any(["layer", "head"])
        return replace(self, labels=self.labels.sel(task=tested.all("role")))

    def followed_by(self, draws: "Evidence") -> "Evidence":
        """These samples, followed by the draws."""
        return replace(self, **_stacked([self, draws]), drawn=draws.drawn)

    def under_control(self) -> "Evidence":
        """The same evidence with the controlled labels instead of the published ones."""
        return replace(self, labels=self.controlled)

    def with_controlled(self, table: pd.DataFrame) -> "Evidence":
        """This sample with the labels `assigned_controlled` of role tables (task, role, layer, head)."""
        labels = table["assigned_controlled"].astype("boolean")  # objects, if read from a file
        return replace(
            self, controlled=_array(table.assign(assigned_controlled=labels), "assigned_controlled")
        )


def samples(evidence: Sequence[Evidence]) -> Evidence:
    """The samples of several fine-tuning runs as one evidence; its findings are medians over the runs."""
    return replace(evidence[0], **_stacked(evidence), runs=len(evidence))


def _stacked(parts: Sequence[Evidence]) -> dict[str, xr.DataArray]:
    """The arrays that all parts have, concatenated."""
    names = [name for name in ARRAYS if all(name in part.arrays for part in parts)]
    return {
        name: xr.concat([getattr(part, name) for part in parts], "replicate", join="exact") for name in names
    }


def evidence_of_labels(table: pd.DataFrame, tau: float | int = 3.0) -> Evidence:
    """The labels of a role table with the columns task, role, layer, head, mean and assigned, and which means exceed
    `tau`; the rest is not known."""
    above = (table["mean"] > tau).astype("boolean").mask(table["assigned"].isna())
    return Evidence(labels=_array(table, "assigned"), above=_array(table.assign(above=above), "above"))


def evidence_of(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[str, xr.DataArray],
    tau: float | int = 3.0,
    alpha: float = 0.05,
) -> Evidence:
    """The sample's evidence from the composed scores of every task in both states.

    Raises InputError if the states have different tasks or sequences.
    """
    before, after = paired(pretrained, finetuned)
    tables = [published_table(scores, tau, alpha).assign(task=task) for task, scores in after.items()]
    table = pd.concat(tables, ignore_index=True)
    steps = {task: (scores - before[task]).mean("sequence") for task, scores in after.items()}
    masses = {task: mass_steps(before[task], scores).mean("sequence") for task, scores in after.items()}
    once = {
        task: np.ones((1, len(np.unique(scores["cluster"]))), dtype=int) for task, scores in after.items()
    }
    skewed = {task: resampled_skewness(scores, once[task]) for task, scores in after.items()}
    return Evidence(
        labels=_array(table, "assigned"),
        p=_array(table, "p"),
        above=_array(
            table.assign(above=(table["mean"] > tau).astype(float).where(table["p"].notna())), "above"
        ),
        change=by_task(steps).expand_dims("replicate"),
        mass=by_task(masses).expand_dims("replicate"),
        skewed=by_task(skewed).transpose("replicate", ...),
    )


def evidence_of_controls(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[str, xr.DataArray],
    like: Evidence,
    tau: float | int = 3.0,
    alpha: float = 0.05,
) -> Evidence:
    """The evidence for control heads, from their composed scores in both states; `evidence_of` does the same for heads.

    If the heads of `like` can be tested, a control with constant scores, such as a uniform head, has no role. Raises
    InputError as `evidence_of` does.
    """
    found = evidence_of(pretrained, finetuned, tau, alpha)
    known = like.labels.isel(replicate=[0]).notnull()
    return replace(found, labels=found.labels.fillna(0).where(known))


def _array(table: pd.DataFrame, column: str) -> xr.DataArray:
    """A column of a long table as an array of one replicate; values that are not in the table are NaN."""
    rows = table.set_index(["task", *HEADS])[column].astype("Float64").astype(np.float64)
    return rows.to_xarray().reindex(role=[*PUBLISHED_ROLES]).rename(None).expand_dims("replicate")


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
    same = {task: {"sequence": scores["sequence"]} for task, scores in before.items()}
    against = [
        {task: ordered(controls[run][task]).sel(same[task]) for task in before} if controls else {}
        for run in finetuned
    ]
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
    apart = all(len(np.unique(scores["cluster"])) == len(scores) for scores in before.values())
    units = "sequences" if apart else "clusters of sequences"
    seeds = f"{len(pairs)} fine-tuning seed{'' if len(pairs) == 1 else 's'}"
    return Evidence(**arrays, drawn=f"{units}, {seeds}")


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
    of_roles = {"labels": labels, "p": p, "above": above, "change": steps}
    found = {name: labelled(columns, after, "role") for name, columns in of_roles.items()}
    return found | {"mass": labelled(masses, moved, "target")}


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
        test = t_test(n.astype(int), found.mean, found.sd * np.sqrt((n - 1) / (n - ddof)), tau)
        units = drawn.sum(axis=1)[:, None]
        error = np.where(found.error > 0, found.error, np.nan)
        audited = mean_above(found.mean - tau, error, sums.skewness(drawn), units)
    above = np.where(np.isnan(test.p), np.nan, found.mean > tau)
    return published_labels(test, tau, alpha), test.p, above, audited


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
