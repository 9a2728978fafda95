"""What the claims of Pande 2021 measure: a tidy frame for each claim, from the evidence."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from analysis.papers.pande2021.evidence import Evidence
from analysis.statistics.claims import read_claims, sampled, untestable
from analysis.statistics.layers import (
    FIRST_HALF,
    INITIAL,
    LAST_HALF,
    LAST_SIXTH,
    LAST_THIRD,
    MIDDLE,
    layers_within,
)
from analysis.statistics.roles import coarsened, has_several

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
REGIONS = {"mrpc": MIDDLE, "qnli": MIDDLE, "sst-2": MIDDLE, "qqp": INITIAL}  # of multi-functional heads
NEAR = 0.05  # a p-value within this distance of 0 or 1 counts as near
HEADS = ["layer", "head"]
LEAST_HEADS = 5  # of a kind, for the share of them in a region to be meaningful
LEAST_LAYERS = 2  # inside and outside a region, for a difference of layers to be meaningful
COARSELY = ("local", "syntactic", "delimiter")  # block needs pairs of sentences
# Roles left out of a mean over roles: delimiter would count [CLS] and [SEP] twice.
COUNTED_ONCE = {"": ("delimiter",), " without special tokens": ("delimiter", "cls", "sep")}
NEEDS = {
    "labels": "roles of a fine-tuned model",
    "p": "testable p-values of a fine-tuned model",
    "skewed": "testable skewness of a fine-tuned model's scores",
    "mass": "attention masses before and after fine-tuning",
    "change": "scores before and after fine-tuning",
    "above": "mean scores of a fine-tuned model",
}


class Measure(NamedTuple):
    """How a claim is measured: the arrays of the evidence it needs, and roles that a task must be able to test."""

    function: Callable[[Evidence], pd.DataFrame]
    needs: tuple[str, ...]
    roles: tuple[str, ...] = ()

    def of(self, evidence: Evidence) -> pd.DataFrame:
        """The frame; untestable where something needed is missing or empty."""
        for name in self.needs:
            array = getattr(evidence, name)
            if array is None or array.isel(replicate=0).isnull().all():
                return untestable(f"no {NEEDS[name]}")
        narrowed = evidence.with_testable(self.roles) if self.roles else evidence
        if self.roles and not narrowed.labels.sizes["task"]:
            return untestable(f"no task where {', '.join(self.roles)} can be tested")
        return self.function(narrowed)


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of verdicts saved it."""
    return results.claims("claims")


def measures(evidence: Evidence) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id."""
    return {name: measure.of(evidence) for name, measure in MEASURES.items()}


def many_multifunctional(evidence: Evidence, without: Sequence[str] = ()) -> pd.DataFrame:
    """C1: share of heads with at least two coarse roles, not counting roles in `without`."""
    return _share(_multifunctional(evidence, without), evidence.runs)


def many_delimiter(evidence: Evidence) -> pd.DataFrame:
    """C2: share of testable heads with the role delimiter."""
    return _share(evidence.labels.sel(role="delimiter"), evidence.runs)


def local_is_syntactic(evidence: Evidence) -> pd.DataFrame:
    """C3: share of local heads that are also syntactic, in each task with local heads."""
    local, syntactic = _with_role(evidence, "local"), _with_role(evidence, "syntactic")
    n = int(_sample(local.sum(["task", *HEADS]), evidence.runs))
    return _by_task(syntactic.where(local).mean(HEADS), n, evidence.runs, "no local heads")


def multifunctional_layers(evidence: Evidence, without: Sequence[str] = ()) -> pd.DataFrame:
    """C4: multi-functional heads per layer inside the region that the article names for the task, minus those outside.

    Tasks with fewer than LEAST_LAYERS layers on a side are left out.
    """
    heads = _multifunctional(evidence, without).sum("head")
    depth = heads.sizes["layer"]
    regions = {
        task: within
        for task in heads["task"].values
        if task in REGIONS and len(within := layers_within(depth, REGIONS[task])) >= LEAST_LAYERS
        if depth - len(within) >= LEAST_LAYERS
    }
    if not regions:
        tasks = ", ".join(REGIONS)
        return untestable(
            f"none of the tasks {tasks} with {LEAST_LAYERS} layers inside and outside its region"
        )
    inside = [heads["layer"].isin(layers) for layers in regions.values()]
    inside, heads = xr.concat(inside, pd.Index([*regions], name="task")), heads.sel(task=[*regions])
    within, elsewhere = heads.where(inside).mean("layer"), heads.where(~inside).mean("layer")
    return _by_task(within - elsewhere, len(regions), evidence.runs)


def special_layers(evidence: Evidence, role: str, half: tuple, name: str) -> pd.DataFrame:
    """C5: share of the heads of [SEP] or [CLS] in a half of the layers, in each task.

    Untestable if a task has fewer than LEAST_HEADS of them: a share of so few is not meaningful.
    """
    heads = _with_role(evidence, role)
    counts = _sample(heads.sum(HEADS), evidence.runs).to_series()
    if (few := counts[counts < LEAST_HEADS]).size:
        listed = ", ".join(f"{count:.0f} {name} heads in {task}" for task, count in few.items())
        return untestable(f"fewer than {LEAST_HEADS}: {listed}")
    inside = heads["layer"].isin(layers_within(heads.sizes["layer"], half))
    return _by_task(inside.where(heads).mean(HEADS), counts.astype(int).to_dict(), evidence.runs)


def block_layers(evidence: Evidence) -> pd.DataFrame:
    """C6: share of the block heads that lie in layer 0, in each task with block heads."""
    heads = _with_role(evidence, "block").sum("head")
    every = heads.sum("layer")
    shares = heads.sel(layer=0, drop=True) / every.where(every > 0)
    n = _sample(every, evidence.runs).to_series().astype(int).to_dict()
    return _by_task(shares, n, evidence.runs, "no block heads")


def syntactic_layers(evidence: Evidence) -> pd.DataFrame:
    """C7: share of layers with fewer than three syntactic heads, in each task separately."""
    syntactic = _coarse(evidence)["syntactic"]
    few = syntactic.sum("head") < 3
    pooled = _sample((syntactic.any("task").sum("head") < 3).mean("layer"), evidence.runs)
    note = f"{float(pooled):.0%} when a head counts that is syntactic in any task"
    frame = _together(few.mean(["task", "layer"]), few.sizes["task"] * few.sizes["layer"], evidence.runs)
    return frame.assign(note=note)


def last_layers(evidence: Evidence) -> pd.DataFrame:
    """C8: share of heads in the last sixth of the layers that are multi-functional."""
    multi = _multifunctional(evidence)
    last = multi.sel(layer=layers_within(multi.sizes["layer"], LAST_SIXTH))
    n = last.sizes["layer"] * last.sizes["head"] * last.sizes["task"]
    return _by_task(last.mean(HEADS), n, evidence.runs)


def later_layers_change(evidence: Evidence) -> pd.DataFrame:
    """C9a: the change of the late layer that changes most, minus that of any other, with and without special tokens.

    Delimiter is left out because it repeats [CLS] and [SEP].
    """
    late = evidence.change["layer"].isin(layers_within(evidence.change.sizes["layer"], LAST_THIRD))
    parts = []
    for name, left_out in COUNTED_ONCE.items():
        size = np.abs(evidence.change.drop_sel(role=[*left_out])).mean(["role", "head"])
        apart = size.where(late).max("layer") - size.where(~late).max("layer")
        parts.append(apart.assign_coords(task=[f"{task}{name}" for task in apart["task"].values]))
    return _by_task(xr.concat(parts, "task"), evidence.change.sizes["task"], evidence.runs)


def late_mass(evidence: Evidence, target: str, sign: int) -> pd.DataFrame:
    """C9b, C9c: change of the mean attention mass on a target in the last third of the layers, times `sign`."""
    mass = evidence.mass.sel(target=target, drop=True)
    late = mass.sel(layer=layers_within(mass.sizes["layer"], LAST_THIRD)).mean(HEADS)
    return _by_task(sign * late, late.sizes["task"], evidence.runs, NEEDS["mass"])


def extreme_p_values(evidence: Evidence) -> pd.DataFrame:
    """C10: share of p-values near 0 or 1."""
    near = (evidence.p < NEAR) | (evidence.p > 1 - NEAR)
    return _share(near.where(evidence.p.notnull()), evidence.runs)


def asymmetric_scores(evidence: Evidence) -> pd.DataFrame:
    """C11a: share of skewed score distributions."""
    return _share(evidence.skewed, evidence.runs)


def misleading_means(evidence: Evidence) -> pd.DataFrame:
    """C11b: the share of heads and roles that fail the test, among those with a mean above tau."""
    failing = (evidence.labels == 0).where((evidence.above == 1) & evidence.labels.notnull())
    within = ["task", "role", *HEADS]
    if not float(_sample(failing.notnull().sum(within), evidence.runs)):
        return untestable("no head with a mean above tau")
    other = ((evidence.labels == 1) & (evidence.above == 0)).sum(within)
    frame = _share(failing, evidence.runs)
    passing = f"{float(_sample(other, evidence.runs)):.0f} pass it with a mean not above tau"
    return frame.assign(note=frame["note"] + f"; {passing}")


LABELS = ("labels",)
MEASURES = {
    "C1": Measure(many_multifunctional, LABELS, COARSELY),
    "C1b": Measure(partial(many_multifunctional, without=("delimiter",)), LABELS, ("local", "syntactic")),
    "C2a": Measure(many_delimiter, LABELS, ("delimiter",)),
    "C2b": Measure(many_delimiter, LABELS, ("delimiter",)),
    "C3": Measure(local_is_syntactic, LABELS, ("local", "syntactic")),
    "C4": Measure(multifunctional_layers, LABELS, COARSELY),
    "C4b": Measure(partial(multifunctional_layers, without=("block",)), LABELS, COARSELY),
    "C5a": Measure(partial(special_layers, role="sep", half=LAST_HALF, name="[SEP]"), LABELS, ("sep",)),
    "C5b": Measure(partial(special_layers, role="cls", half=FIRST_HALF, name="[CLS]"), LABELS, ("cls",)),
    "C6": Measure(block_layers, LABELS, ("block",)),
    "C7": Measure(syntactic_layers, LABELS, ("syntactic",)),
    "C8": Measure(last_layers, LABELS, COARSELY),
    "C9a": Measure(later_layers_change, ("change",)),
    "C9b": Measure(partial(late_mass, target="sep", sign=-1), ("mass",)),
    "C9c": Measure(partial(late_mass, target="other", sign=1), ("mass",)),
    "C10": Measure(extreme_p_values, ("p",)),
    "C11a": Measure(asymmetric_scores, ("skewed",)),
    "C11b": Measure(misleading_means, ("labels", "above")),
}


def _sample(array: xr.DataArray, runs: int) -> xr.DataArray:
    """The median over the runs of the sample, without its replicates."""
    return array.isel(replicate=slice(runs)).median("replicate")


def _with_role(evidence: Evidence, role: str) -> xr.DataArray:
    """Which heads have the role; untestable heads do not."""
    return evidence.labels.sel(role=role, drop=True) == 1


def _coarse(evidence: Evidence) -> Mapping[str, xr.DataArray]:
    """Which heads have each coarse role."""
    return coarsened({role: _with_role(evidence, role) for role in evidence.labels["role"].values})


def _multifunctional(evidence: Evidence, without: Sequence[str] = ()) -> xr.DataArray:
    """Which heads have at least two coarse roles, not counting those in `without`."""
    return has_several({role: heads for role, heads in _coarse(evidence).items() if role not in without})


def _share(cases: xr.DataArray, runs: int) -> pd.DataFrame:
    """The share of 1 among the cases that are not NaN: all tasks together, and each in the note."""
    within = [name for name in cases.dims if name not in ("replicate", "task")]
    apart = _sample(cases.mean(within), runs).to_series().dropna()
    n = int(_sample(cases.notnull().sum(["task", *within]), runs))
    frame = _together(cases.mean(["task", *within]), n, runs)
    return frame.assign(note=", ".join(f"{task} {share:.0%}" for task, share in apart.items()))


def _together(measure: xr.DataArray, n: int, runs: int) -> pd.DataFrame:
    """The frame of one unit, all tasks together."""
    return sampled(measure.expand_dims(unit=[""]), n, runs)


def _by_task(measure: xr.DataArray, n: int | Mapping[str, int], runs: int, missing: str = "") -> pd.DataFrame:
    """The frame with a unit for each task whose sample is known in every run."""
    known = measure.isel(replicate=slice(runs)).notnull().all("replicate")
    if not known.any():
        return untestable(missing)
    return sampled(measure.sel(task=known).rename(task="unit"), n, runs)
