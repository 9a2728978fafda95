"""Findings on the claims of Pande 2021: functions from the evidence to the values that a claim compares.

Numbers in words are medians over the fine-tuning runs of the evidence.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from analysis.papers.pande2021.evidence import Evidence
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
from analysis.statistics.verdicts import Finding, untestable

MULTIFUNCTIONAL_REGIONS = {"mrpc": MIDDLE, "qnli": MIDDLE, "sst-2": MIDDLE, "qqp": INITIAL}
NEAR = 0.05  # a p-value within this distance of 0 or 1 counts as near
HEADS = ["layer", "head"]
LEAST_HEADS = 5  # of a kind, for the share of them in a region to be meaningful
WORDS_ALONE = " without special tokens"
# Roles left out of a mean over roles: delimiter would count [CLS] and [SEP] twice.
COUNTED_ONCE = {"": ("delimiter",), WORDS_ALONE: ("delimiter", "cls", "sep")}


def sample(array: xr.DataArray, runs: int = 1) -> xr.DataArray:
    """The median over the runs of the sample, without its replicates."""
    return array.isel(replicate=slice(runs)).median("replicate")


def many_multifunctional(evidence: Evidence, without: Sequence[str] = ()) -> Finding:
    """C1: share of heads with at least two coarse roles, not counting roles in `without`."""
    return _share(_multifunctional(evidence, without), "heads", evidence.runs)


def many_delimiter(evidence: Evidence) -> Finding:
    """C2: share of testable heads with the role delimiter."""
    return _share(evidence.labels.sel(role="delimiter"), "heads", evidence.runs)


def local_is_syntactic(evidence: Evidence) -> Finding:
    """C3: share of local heads that are also syntactic, in each task with local heads."""
    local, syntactic = _with_role(evidence, "local"), _with_role(evidence, "syntactic")
    shares = _known(syntactic.where(local).mean(HEADS), evidence.runs)
    if not shares.sizes["task"]:
        return untestable("no local heads")
    apart = sample(shares, evidence.runs)
    value = f"{float(apart.min()):.0%} to {float(apart.max()):.0%} ({_percentages(apart)})"
    return Finding(value, _count(local.sum(["task", *HEADS]), evidence), _units({"": shares}))


def multifunctional_layers(evidence: Evidence, without: Sequence[str] = ()) -> Finding:
    """C4: multi-functional heads per layer inside the region that the paper names for the task, minus those outside."""
    heads = _multifunctional(evidence, without).sum("head")
    tasks = [task for task in heads["task"].values if task in MULTIFUNCTIONAL_REGIONS]
    if not tasks:
        return untestable(f"none of the tasks {', '.join(MULTIFUNCTIONAL_REGIONS)}")
    regions = {task: layers_within(heads.sizes["layer"], MULTIFUNCTIONAL_REGIONS[task]) for task in tasks}
    inside = xr.concat([heads["layer"].isin(regions[task]) for task in tasks], pd.Index(tasks, name="task"))
    heads = heads.sel(task=tasks)
    within, elsewhere = heads.where(inside).mean("layer"), heads.where(~inside).mean("layer")
    value = "; ".join(
        f"{task} {a:.1f} in layers {min(regions[task])}-{max(regions[task])}, {b:.1f} elsewhere"
        for task, a, b in zip(
            tasks, *(sample(each, evidence.runs).values for each in (within, elsewhere)), strict=True
        )
    )
    return Finding(f"heads per layer: {value}", len(tasks), _units({"": within - elsewhere}))


def delimiter_layers(evidence: Evidence) -> Finding:
    """C5: shares of [SEP] and [CLS] heads in the halves in which the article sees them, in each task.

    Untestable if a task has fewer than LEAST_HEADS heads of either kind: a share of so few is not meaningful.
    """
    heads = xr.concat(
        [_with_role(evidence, role) for role in ("sep", "cls")], pd.Index(["[SEP]", "[CLS]"], name="target")
    )
    counts = sample(heads.sum(HEADS), evidence.runs)
    if (counts < LEAST_HEADS).any():
        few = counts.to_series()[lambda each: each < LEAST_HEADS]
        listed = ", ".join(f"{count:.0f} {target} heads in {task}" for (target, task), count in few.items())
        return untestable(f"fewer than {LEAST_HEADS}: {listed}")
    depth = heads.sizes["layer"]
    halves = [heads["layer"].isin(layers_within(depth, half)) for half in (LAST_HALF, FIRST_HALF)]
    shares = xr.concat(halves, heads["target"]).where(heads).mean(HEADS)
    value = "; ".join(
        f"{task} {late:.0%} and {early:.0%}"
        for task, late, early in zip(
            shares["task"].values, *sample(shares, evidence.runs).values, strict=True
        )
    )
    parts = {f" {target}": shares.sel(target=target, drop=True) for target in shares["target"].values}
    n = {f"{task} {target}": int(count) for (target, task), count in counts.to_series().items()}
    return Finding(f"[SEP] in the later, [CLS] in the earlier half: {value}", n, _units(parts))


def block_layers(evidence: Evidence) -> Finding:
    """C6: share of the block heads that lie in layer 0, in each task with block heads."""
    heads = _with_role(evidence, "block").sum("head")
    shares = _known(
        heads.sel(layer=0, drop=True) / heads.sum("layer").where(lambda every: every > 0), evidence.runs
    )
    if not shares.sizes["task"]:
        return untestable("no block heads")
    heads = sample(heads.sel(task=shares["task"]), evidence.runs)
    every = heads.sum("layer").to_series()
    first = heads.sel(layer=0).to_series()
    value = "; ".join(f"{task} {first[task]:.0f} of {count:.0f}" for task, count in every.items())
    unknown = int(evidence.labels.isel(replicate=0).sel(role="block").isnull().sum())
    n = {task: int(count) for task, count in every.items()}
    value = f"block heads in layer 0: {value} ({unknown} untestable)"
    return Finding(value, n if len(n) > 1 else sum(n.values()), _units({"": shares}))


def syntactic_layers(evidence: Evidence) -> Finding:
    """C7: share of layers with fewer than three syntactic heads, in each task separately."""
    syntactic = coarsened(_by_role(evidence))["syntactic"]
    few = syntactic.sum("head") < 3
    enough = sample((~few).sum(["task", "layer"]), evidence.runs)
    pooled = sample((syntactic.any("task").sum("head") >= 3).sum("layer"), evidence.runs)
    layers, tasks = few.sizes["layer"], few["task"].values
    value = (
        f"{float(enough):.0f} of {layers * len(tasks)} layers ({', '.join(tasks)} apart), "
        f"{float(pooled):.0f} of {layers} when a head counts that is syntactic in any task"
    )
    return Finding(value, layers * len(tasks), _together(few.mean(["task", "layer"])))


def last_layers(evidence: Evidence) -> Finding:
    """C8: share of heads in the last layers that are multi-functional."""
    multi = _multifunctional(evidence)
    last = multi.sel(layer=layers_within(multi.sizes["layer"], LAST_SIXTH))
    heads = sample(last.sum(HEADS), evidence.runs)
    size = last.sizes["layer"] * last.sizes["head"]
    value = "; ".join(f"{task} {count:.0f} of {size}" for task, count in heads.to_series().items())
    return Finding(f"heads: {value}", size * last.sizes["task"], _units({"": last.mean(HEADS)}))


def later_layers_change(evidence: Evidence) -> Finding:
    """C9a: the change of the late layer that changes most, minus that of any other, with and without special tokens.

    Delimiter is left out because it repeats [CLS] and [SEP].
    """
    size = {
        name: np.abs(evidence.change.drop_sel(role=[*left_out])).mean(["role", "head"])
        for name, left_out in COUNTED_ONCE.items()
    }
    late = evidence.change["layer"].isin(layers_within(evidence.change.sizes["layer"], LAST_THIRD))
    most = {name: sample(each, evidence.runs).idxmax("layer").to_series() for name, each in size.items()}
    value = "; ".join(
        f"{task} layer {most[''][task]:.0f}, without special tokens {most[WORDS_ALONE][task]:.0f}"
        for task in most[""].index
    )
    measures = {
        name: each.where(late).max("layer") - each.where(~late).max("layer") for name, each in size.items()
    }
    return Finding(f"most changed layer: {value}", len(most[""]), _units(measures))


def separators_lose(evidence: Evidence) -> Finding:
    """C9b: attention mass that [SEP] loses in the last third of the layers (proportions of attention)."""
    return _late_mass(evidence, "sep", -1, "change of the mass on [SEP]")


def others_gain(evidence: Evidence) -> Finding:
    """C9c: attention mass that tokens other than [CLS] and [SEP] gain in the last third of the layers."""
    return _late_mass(evidence, "other", 1, "change of the mass on other tokens")


def _late_mass(evidence: Evidence, target: str, sign: int, what: str) -> Finding:
    """The change of the mean mass on a target in the last third, in each task; measured times `sign`."""
    mass = evidence.mass.sel(target=target, drop=True)
    late = mass["layer"].isin(layers_within(mass.sizes["layer"], LAST_THIRD))
    moved = _known(mass.where(late).mean(HEADS), evidence.runs)
    if not moved.sizes["task"]:
        return untestable("no task with attention masses before and after fine-tuning")
    steps = sample(moved, evidence.runs).to_series()
    value = ", ".join(f"{task} {step:+.3f}" for task, step in steps.items())
    return Finding(f"{what}, last third: {value}", len(steps), _units({"": sign * moved}))


def extreme_p_values(evidence: Evidence) -> Finding:
    """C10: share of p-values near 0 or 1."""
    near = (evidence.p < NEAR) | (evidence.p > 1 - NEAR)
    return _share(near.where(evidence.p.notnull()), "p-values", evidence.runs)


def asymmetric_scores(evidence: Evidence) -> Finding:
    """C11a: share of skewed score distributions."""
    return _share(evidence.skewed, "heads and roles", evidence.runs)


def misleading_means(evidence: Evidence) -> Finding:
    """C11b: the share of heads and roles that fail the test, among those with a mean above tau."""
    failing = (evidence.labels == 0).where((evidence.above == 1) & evidence.labels.notnull())
    if not float(sample(failing.notnull().sum(["task", "role", *HEADS]), evidence.runs)):
        return untestable("no head with a mean above tau")
    other = ((evidence.labels == 1) & (evidence.above == 0)).sum(["task", "role", *HEADS])
    found = _share(failing, "heads and roles with a mean above tau fail the test", evidence.runs)
    count = sample(other, evidence.runs)
    return found._replace(value=f"{found.value}; {float(count):.0f} pass it with a mean not above tau")


def _by_role(evidence: Evidence) -> dict[str, xr.DataArray]:
    return {role: _with_role(evidence, role) for role in evidence.labels["role"].values}


def _with_role(evidence: Evidence, role: str) -> xr.DataArray:
    """Which heads have the role; untestable heads do not."""
    return evidence.labels.sel(role=role, drop=True) == 1


def _multifunctional(evidence: Evidence, without: Sequence[str] = ()) -> xr.DataArray:
    coarse = coarsened(_by_role(evidence))
    return has_several({role: heads for role, heads in coarse.items() if role not in without})


def _share(cases: xr.DataArray, of: str, runs: int) -> Finding:
    """The share of 1 among the cases that are not NaN: measured over all tasks, and for each task in words."""
    within = [name for name in cases.dims if name not in ("replicate", "task")]
    share = cases.mean(["task", *within])
    value = f"{float(sample(share, runs)):.0%} of {of} ({_percentages(sample(cases.mean(within), runs))})"
    n = sample(cases.notnull().sum(["task", *within]), runs)
    return Finding(value, int(n), _together(share))


def _count(counts: xr.DataArray, evidence: Evidence) -> int:
    return int(sample(counts, evidence.runs))


def _known(quantities: xr.DataArray, runs: int) -> xr.DataArray:
    """The tasks in which no value of the sample is NaN, in any run."""
    others = [name for name in quantities.dims if name != "task"]
    return quantities.sel(task=quantities.isel(replicate=slice(runs)).notnull().all(others))


def _together(quantity: xr.DataArray) -> xr.DataArray:
    """Measures of one unit, all tasks together."""
    return quantity.expand_dims(unit=["all"])


def _units(quantities: dict[str, xr.DataArray]) -> xr.DataArray:
    """Measures with one unit per task and quantity; both are in the unit's name."""
    named = [
        quantity.rename(task="unit").assign_coords(unit=[f"{task}{name}" for task in quantity["task"].values])
        for name, quantity in quantities.items()
    ]
    return xr.concat(named, "unit").transpose("unit", "replicate")


def _percentages(shares: xr.DataArray) -> str:
    return ", ".join(f"{task} {share:.0%}" for task, share in shares.to_series().dropna().items())
