"""What the claims are judged on: labelled arrays of the sample, of the released maps, and of bootstrap replicates."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.errors import InputError
from analysis.statistics.resampling import Clusters, counted
from analysis.statistics.roles import MASSES, ROLES
from analysis.statistics.significance import DDOF, DIMENSIONS, published_table

ARRAYS = ("labels", "p", "change", "mass", "skewed")
HEADS = ("role", "layer", "head")
SKEWNESS_LEVEL = 0.05
# scipy's test of skewness needs the resampled scores themselves: a hundredfold the time of the other arrays.
SKEWNESS_REPLICATES = 99


@dataclass(frozen=True)
class Evidence:
    """Arrays (replicate, task, role, layer, head), the sample itself first, then draws of it; None: not known.

    Of the fine-tuned models: `labels` of the published rule (1, 0, NaN untestable), `p` of their tests and
    `skewed` (whether D'Agostino's test rejects zero skewness: 1, 0, NaN untestable; fewer draws). Fine-tuned
    minus pre-trained: `change` of the mean scores, and `mass` (target in place of role: sep, cls, other),
    change of the mean proportion of attention. `drawn` says in words what a replicate draws.
    """

    labels: xr.DataArray | None = None
    p: xr.DataArray | None = None
    change: xr.DataArray | None = None
    mass: xr.DataArray | None = None
    skewed: xr.DataArray | None = None
    drawn: str = ""

    @property
    def arrays(self) -> dict[str, xr.DataArray]:
        """What is known, by name."""
        return {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}

    def with_testable(self, roles: Sequence[str]) -> "Evidence":
        """The labels of those tasks where each of the roles has a testable head in the sample."""
        tested = self.labels.isel(replicate=0).sel(role=[*roles]).notnull().any(["layer", "head"])
        return replace(self, labels=self.labels.sel(task=tested.all("role")))

    def followed_by(self, draws: "Evidence") -> "Evidence":
        """This sample with the draws behind it."""
        stacked = {
            name: xr.concat([array, getattr(draws, name)], "replicate", join="exact")
            for name, array in self.arrays.items()
        }
        return Evidence(**stacked, drawn=draws.drawn)


def evidence_of_labels(table: pd.DataFrame) -> Evidence:
    """The labels of a role table with the columns task, role, layer, head and assigned; nothing else is known."""
    return Evidence(labels=_array(table, "assigned"))


def evidence_of(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[str, xr.DataArray],
    tau: float | int = 3.0,
    alpha: float = 0.05,
) -> Evidence:
    """The sample's evidence from the composed scores of every task in both states.

    Raises InputError where the states hold other tasks or sequences.
    """
    before, after = _paired(pretrained, finetuned)
    tables = [published_table(scores, tau, alpha).assign(task=task) for task, scores in after.items()]
    table = pd.concat(tables, ignore_index=True)
    steps = {task: (scores - before[task]).mean("sequence") for task, scores in after.items()}
    masses = {task: _mass_steps(before[task], scores).mean("sequence") for task, scores in after.items()}
    skewed = {task: _skewness_tests(scores) for task, scores in after.items()}
    return Evidence(
        labels=_array(table, "assigned"),
        p=_array(table, "p"),
        change=_by_task(steps).expand_dims("replicate"),
        mass=_by_task(masses).expand_dims("replicate"),
        skewed=_by_task(skewed).expand_dims("replicate"),
    )


def replicates(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[int, Mapping[str, xr.DataArray]],
    tau: float | int = 3.0,
    alpha: float = 0.05,
    number: int = 499,
    seed: int = 0,
) -> Evidence:
    """The evidence of a `number` of bootstrap replicates, each of another run and other clusters of sequences.

    `finetuned` maps the seed of every run to its scores by task. A replicate draws, for each task apart, one
    run at random, and as many clusters (coordinate `cluster`; sequences where it is absent) as there are, with
    replacement, the same for both states. What varies over replicates is therefore what a new run on new
    sequences would vary; the spread over few runs understates it. `skewed` has SKEWNESS_REPLICATES draws at
    most. Raises InputError where states or runs hold other tasks or sequences, and for fewer than 99 replicates.
    """
    if number < 99:
        raise InputError(f"replicates is {number}: take at least 99, better 499")
    pairs = [_paired(pretrained, run) for run in finetuned.values()]
    before = pairs[0][0]
    streams = np.random.default_rng(seed).spawn(len(before))
    parts = {}
    for (task, scores), rng in zip(before.items(), streams, strict=True):
        units = len(np.unique(scores["cluster"]))
        counts = counted(rng.integers(units, size=(number, units)), units)
        chosen = rng.integers(len(pairs), size=number)
        parts[task] = _redrawn(scores, [after[task] for _, after in pairs], counts, chosen, tau, alpha)
    arrays = {name: _by_task({task: part[name] for task, part in parts.items()}) for name in ARRAYS}
    arrays = {name: array.transpose("replicate", ...) for name, array in arrays.items()}
    return Evidence(**arrays, drawn=_what_is_drawn(before, len(pairs)))


def _what_is_drawn(scores: Mapping[str, xr.DataArray], runs: int) -> str:
    """In words what a replicate draws."""
    apart = all(len(np.unique(array["cluster"])) == len(array) for array in scores.values())
    units = "sequences" if apart else "clusters of sequences"
    return f"{units}, {runs} fine-tuning seed{'' if runs == 1 else 's'}"


def _redrawn(
    before: xr.DataArray,
    runs: Sequence[xr.DataArray],
    counts: Int[np.ndarray, "replicate cluster"],
    chosen: Int[np.ndarray, "replicate"],
    tau: float | int,
    alpha: float,
) -> dict[str, xr.DataArray]:
    """The arrays of Evidence for one task, when replicate i takes run `chosen[i]`."""
    parts = []
    for run in np.unique(chosen):
        rows = np.flatnonzero(chosen == run)
        found = resampled(before, runs[run], counts[rows], tau, alpha)
        found["skewed"] = resampled_skewness(runs[run], counts[rows[rows < SKEWNESS_REPLICATES]])
        parts.append(
            {name: array.assign_coords(replicate=rows[: len(array)]) for name, array in found.items()}
        )
    stacked = {name: xr.concat([part[name] for part in parts], "replicate") for name in ARRAYS}
    return {name: array.sortby("replicate").drop_vars("replicate") for name, array in stacked.items()}


def resampled(
    before: xr.DataArray,
    after: xr.DataArray,
    counts: Int[np.ndarray, "replicate cluster"],
    tau: float | int,
    alpha: float,
) -> dict[str, xr.DataArray]:
    """labels, p, change and mass of one task (replicate first) when every cluster counts so often.

    Both states are in the same order of sequences; the columns of `counts` are the clusters in ascending order.
    """
    clusters = after["cluster"].values
    ddof = DDOF[after.attrs.get("arithmetic", "corrected")]
    tests = [_tests(scores, clusters, counts, tau, alpha, ddof) for scores in _matrices(after, "role")]
    steps = [_means(scores, clusters, counts) for scores in _matrices(after - before, "role")]
    moved = _mass_steps(before, after)
    masses = [_means(scores, clusters, counts) for scores in _matrices(moved, "target")]
    labels, p = zip(*tests, strict=True)
    return {
        "labels": _labelled(labels, after, "role"),
        "p": _labelled(p, after, "role"),
        "change": _labelled(steps, after, "role"),
        "mass": _labelled(masses, moved, "target"),
    }


def resampled_skewness(after: xr.DataArray, counts: Int[np.ndarray, "replicate cluster"]) -> xr.DataArray:
    """skewed of one task (replicate first) when every cluster counts so often, columns as in `resampled`."""
    clusters = after["cluster"].values
    found = []
    for scores in _matrices(after, "role"):
        values, codes, drawn = _present(scores, clusters, counts)
        rows = [np.repeat(np.arange(len(values)), often[codes]) for often in drawn]
        found.append(np.array([_skewed(values[row]) for row in rows]).reshape(len(rows), scores.shape[1]))
    return _labelled(found, after, "role")


def _tests(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
    tau: float | int,
    alpha: float,
    ddof: int,
) -> tuple[Float[np.ndarray, "replicate column"], Float[np.ndarray, "replicate column"]]:
    """Published labels and p of one role's heads; NaN below two sequences and for constant scores."""
    values, codes, drawn = _present(scores, clusters, counts)
    if not len(values):
        untestable = np.full((len(counts), scores.shape[1]), np.nan)
        return untestable, untestable
    sums = Clusters.of(values, codes)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = sums.moments(drawn)
        n = (drawn @ sums.sizes)[:, None]
        t = (found.mean - tau) / (found.sd / np.sqrt(n)) * np.sqrt((n - ddof) / (n - 1))
    p = np.where(found.sd > 0, stats.t.sf(t, n - 1), np.nan)
    return np.where(np.isnan(p), np.nan, (p < alpha) & (found.mean > tau)), p


def _means(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
) -> Float[np.ndarray, "replicate column"]:
    """Means over the drawn sequences that have scores, NaN where none has."""
    values, codes, drawn = _present(scores, clusters, counts)
    if not len(values):
        return np.full((len(counts), scores.shape[1]), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Clusters.of(values, codes).moments(drawn).mean


def _present(
    scores: Float[np.ndarray, "sequence column"],
    clusters: Int[np.ndarray, "sequence"],
    counts: Int[np.ndarray, "replicate cluster"],
) -> tuple[
    Float[np.ndarray, "present column"], Int[np.ndarray, "present"], Int[np.ndarray, "replicate kept"]
]:
    """The sequences that have scores, the clusters they belong to, and how often each of those was drawn."""
    present = ~np.isnan(scores).any(axis=1)
    kept, codes = np.unique(clusters[present], return_inverse=True)
    return scores[present], codes, counts[:, kept]


def _skewness_tests(scores: xr.DataArray) -> xr.DataArray:
    """skewed (role, layer, head) of the sample."""
    once = np.ones((1, len(np.unique(scores["cluster"]))), dtype=int)
    return resampled_skewness(scores, once).isel(replicate=0)


def _skewed(values: Float[np.ndarray, "sequence column"]) -> Float[np.ndarray, "column"]:
    """1 where D'Agostino's test rejects zero skewness, 0 where not, NaN for constant or fewer than 8 scores."""
    varies = values.max(axis=0, initial=-np.inf) > values.min(axis=0, initial=np.inf)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # what scipy says of those that become NaN here
        p = stats.skewtest(values, axis=0).pvalue
    return np.where(varies & ~np.isnan(p), p < SKEWNESS_LEVEL, np.nan)


def _paired(
    pretrained: Mapping[str, xr.DataArray], finetuned: Mapping[str, xr.DataArray]
) -> tuple[dict[str, xr.DataArray], dict[str, xr.DataArray]]:
    """Both states' scores in double precision, tasks by name and sequences in the same order."""
    if pretrained.keys() != finetuned.keys():
        raise InputError(
            f"pre-trained scores are of {', '.join(pretrained)}, fine-tuned ones of {', '.join(finetuned)}: "
            "give the same tasks"
        )
    for task, before in pretrained.items():
        if set(before["sequence"].values) != set(finetuned[task]["sequence"].values):
            raise InputError(
                f"task {task}: pre-trained and fine-tuned scores are of other sequences; extract both again"
            )
    tasks = sorted(pretrained)
    before = {task: _numbered(_ordered(pretrained[task])) for task in tasks}
    same = {task: {"sequence": before[task]["sequence"]} for task in tasks}
    after = {task: _ordered(finetuned[task]).sel(same[task]) for task in tasks}
    clusters = {task: {"cluster": before[task]["cluster"]} for task in tasks}
    return before, {task: after[task].assign_coords(clusters[task]) for task in tasks}


def _ordered(scores: xr.DataArray) -> xr.DataArray:
    """The ten roles in double precision, in the usual order of dimensions."""
    if not {*ROLES}.issubset(scores["role"].values):
        raise InputError(
            f"the scores lack roles of {', '.join(ROLES)}; make them with analysis.statistics.roles.compose"
        )
    return scores.transpose(*DIMENSIONS).sel(role=[*ROLES]).astype(np.float64)


def _numbered(scores: xr.DataArray) -> xr.DataArray:
    """The scores with clusters numbered from 0; every sequence is a cluster of its own where none is known."""
    names = scores["cluster"] if "cluster" in scores.coords else scores["sequence"]
    return scores.assign_coords(cluster=("sequence", np.unique(names.values, return_inverse=True)[1]))


def _mass_steps(before: xr.DataArray, after: xr.DataArray) -> xr.DataArray:
    """Fine-tuned minus pre-trained proportion of attention: (sequence, target, layer, head)."""
    steps = [(mass(after) - mass(before)).reset_coords(drop=True) for mass in MASSES.values()]
    return xr.concat(steps, pd.Index([*MASSES], name="target")).transpose("sequence", ...)


def _matrices(scores: xr.DataArray, dimension: str) -> Iterable[Float[np.ndarray, "sequence column"]]:
    """The scores of every role or target in turn, one column per head."""
    return (part.reshape(len(part), -1) for part in scores.transpose(dimension, "sequence", ...).values)


def _labelled(
    columns: Sequence[Float[np.ndarray, "replicate column"]], like: xr.DataArray, dimension: str
) -> xr.DataArray:
    """The arrays of every role or target as (replicate, role or target, layer, head)."""
    coordinates = {name: like[name].values for name in (dimension, "layer", "head")}
    shape = [len(values) for values in coordinates.values()]
    data = np.stack(columns, axis=1).reshape(-1, *shape)
    return xr.DataArray(data, coordinates, ("replicate", *coordinates))


def _array(table: pd.DataFrame, column: str) -> xr.DataArray:
    """A column of a long table as an array of one replicate; what the table lacks is NaN."""
    rows = table.set_index(["task", *HEADS])[column].astype("Float64").astype(np.float64)
    return rows.to_xarray().reindex(role=[*ROLES]).rename(None).expand_dims("replicate")


def _by_task(arrays: Mapping[str, xr.DataArray]) -> xr.DataArray:
    tasks = pd.Index([*arrays], name="task")
    return xr.concat([array.reset_coords(drop=True) for array in arrays.values()], tasks)
