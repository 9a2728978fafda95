"""Findings on the claims of Pande 2021: one function per claim, from the evidence to what the claim compares."""

from fractions import Fraction

import numpy as np
import pandas as pd
import xarray as xr

from analysis.papers.pande2021.evidence import Evidence
from analysis.statistics.roles import coarsened, has_several
from analysis.statistics.verdicts import Finding, untestable

MIDDLE = (Fraction(5, 12), Fraction(10, 12))  # layers 5-9 of 12
INITIAL = (Fraction(0), Fraction(1, 3))
FIRST_HALF = (Fraction(0), Fraction(1, 2))
LAST_HALF = (Fraction(1, 2), Fraction(1))
LAST_THIRD = (Fraction(2, 3), Fraction(1))
LAST_SIXTH = (Fraction(5, 6), Fraction(1))  # the last two layers of 12
MULTIFUNCTIONAL_REGIONS = {"mrpc": MIDDLE, "qnli": MIDDLE, "sst-2": MIDDLE, "qqp": INITIAL}
NEAR = 0.05  # how near to 0 or 1 a p-value counts as near
HEADS = ["layer", "head"]


def band(depth: int, region: tuple[Fraction, Fraction]) -> list[int]:
    """The layers of `depth` whose relative depth lies in [start, stop), at least one whatever the depth."""
    start, stop = (bound * depth for bound in region)
    return [layer for layer in range(depth) if start <= layer < stop] or [int(start)]


def sample(array: xr.DataArray) -> xr.DataArray:
    """The sample itself, without its replicates."""
    return array.isel(replicate=0)


def many_multifunctional(evidence: Evidence) -> Finding:
    """C1: share of heads with at least two coarse roles."""
    return _share(_multifunctional(evidence), "heads")


def many_delimiter(evidence: Evidence) -> Finding:
    """C2: share of testable heads with the role delimiter."""
    return _share(evidence.labels.sel(role="delimiter"), "heads")


def local_is_syntactic(evidence: Evidence) -> Finding:
    """C3: share of local heads that are syntactic too, in each task with local heads."""
    local, syntactic = _with_role(evidence, "local"), _with_role(evidence, "syntactic")
    shares = _known(syntactic.where(local).mean(HEADS))
    if not shares.sizes["task"]:
        return untestable("no local heads")
    apart = sample(shares)
    value = f"{float(apart.min()):.0%} to {float(apart.max()):.0%} ({_percentages(apart)})"
    return Finding(value, int(sample(local).sum()), _units({"": shares}))


def multifunctional_layers(evidence: Evidence) -> Finding:
    """C4: multi-functional heads per layer inside, minus outside, the region named for the task."""
    heads = _multifunctional(evidence).sum("head")
    tasks = [task for task in heads["task"].values if task in MULTIFUNCTIONAL_REGIONS]
    if not tasks:
        return untestable(f"none of the tasks {', '.join(MULTIFUNCTIONAL_REGIONS)}")
    regions = {task: band(heads.sizes["layer"], MULTIFUNCTIONAL_REGIONS[task]) for task in tasks}
    inside = xr.concat([heads["layer"].isin(regions[task]) for task in tasks], pd.Index(tasks, name="task"))
    heads = heads.sel(task=tasks)
    within, elsewhere = heads.where(inside).mean("layer"), heads.where(~inside).mean("layer")
    value = "; ".join(
        f"{task} {a:.1f} in layers {min(regions[task])}-{max(regions[task])}, {b:.1f} elsewhere"
        for task, a, b in zip(tasks, sample(within).values, sample(elsewhere).values, strict=True)
    )
    return Finding(f"heads per layer: {value}", len(tasks), _units({"": within - elsewhere}))


def delimiter_layers(evidence: Evidence) -> Finding:
    """C5: shares of [SEP] and [CLS] heads in the halves where the article sees them, in tasks with both."""
    heads = xr.concat(
        [_with_role(evidence, role) for role in ("sep", "cls")], pd.Index(["[SEP]", "[CLS]"], name="target")
    )
    depth = heads.sizes["layer"]
    halves = [heads["layer"].isin(band(depth, half)) for half in (LAST_HALF, FIRST_HALF)]
    inside = xr.concat(halves, heads["target"])
    shares = _known(inside.where(heads).mean(HEADS))
    if not shares.sizes["task"]:
        return untestable("no task with both [SEP] heads and [CLS] heads")
    value = "; ".join(
        f"{task} {late:.0%} and {early:.0%}"
        for task, late, early in zip(shares["task"].values, *sample(shares).values, strict=True)
    )
    n = sample(heads).sel(task=shares["task"]).sum()
    parts = {f" {target}": shares.sel(target=target, drop=True) for target in shares["target"].values}
    return Finding(f"[SEP] in the later, [CLS] in the earlier half: {value}", int(n), _units(parts))


def block_layers(evidence: Evidence) -> Finding:
    """C6: block heads in layer 0, minus the most in any later layer."""
    heads = _with_role(evidence, "block").sum("head")
    first, later = heads.sel(layer=0, drop=True), heads.where(heads["layer"] > 0)
    value = "; ".join(
        f"{task} {a} in layer 0, {b:.0f} later"
        for task, a, b in zip(
            heads["task"].values, sample(first).values, sample(later).sum("layer").values, strict=True
        )
    )
    unknown = int(sample(evidence.labels).sel(role="block").isnull().sum())
    value = f"block heads: {value} ({unknown} untestable)"
    return Finding(value, int(sample(heads).sum()), _units({"": first - later.max("layer")}))


def syntactic_layers(evidence: Evidence) -> Finding:
    """C7: share of layers, each task apart, with fewer than three syntactic heads."""
    syntactic = coarsened(_by_role(evidence))["syntactic"]
    few = syntactic.sum("head") < 3
    enough, pooled = ~sample(few), sample(syntactic).any("task").sum("head") >= 3
    value = (
        f"{int(enough.sum())} of {enough.size} layers ({', '.join(few['task'].values)} apart), "
        f"{int(pooled.sum())} of {pooled.size} when a head counts that is syntactic in any task"
    )
    return Finding(value, enough.size, _together(few.mean(["task", "layer"])))


def last_layers(evidence: Evidence) -> Finding:
    """C8: share of heads in the last layers that are multi-functional."""
    multi = _multifunctional(evidence)
    last = multi.sel(layer=band(multi.sizes["layer"], LAST_SIXTH))
    heads = sample(last).sum(HEADS)
    size = last.sizes["layer"] * last.sizes["head"]
    value = "; ".join(f"{task} {count} of {size}" for task, count in heads.to_series().items())
    return Finding(f"heads: {value}", sample(last).size, _units({"": last.mean(HEADS)}))


def later_layers_change(evidence: Evidence) -> Finding:
    """C9: where fine-tuning changes the scores most, and what [SEP] loses there and other tokens gain.

    Measures per task: the largest change of a late layer minus that of any other (units of the score); the
    loss of [SEP] and the gain of other tokens in the late layers (proportions of attention).
    """
    size = np.abs(evidence.change).mean(["role", "head"])
    late = size["layer"].isin(band(size.sizes["layer"], LAST_THIRD))
    moved = _known(evidence.mass.where(late).mean(HEADS).transpose("target", ...))
    if not moved.sizes["task"]:
        return untestable("no task with attention masses before and after fine-tuning")
    size = size.sel(task=moved["task"])
    separators, others = (moved.sel(target=target, drop=True) for target in ("sep", "other"))
    value = "; ".join(
        f"{task} layer {layer:.0f}, [SEP] {lost:+.3f}, other {won:+.3f}"
        for task, layer, lost, won in zip(
            moved["task"].values, sample(size).idxmax("layer").values, sample(separators).values,
            sample(others).values, strict=True,
        )
    )  # fmt: skip
    measures = {
        " late change": size.where(late).max("layer") - size.where(~late).max("layer"),
        " [SEP] loss": -separators,
        " other gain": others,
    }
    value = f"most changed layer and mass of the last third: {value}"
    return Finding(value, moved.sizes["task"], _units(measures))


def extreme_p_values(evidence: Evidence) -> Finding:
    """C10: share of p-values near 0 or 1."""
    near = (evidence.p < NEAR) | (evidence.p > 1 - NEAR)
    return _share(near.where(evidence.p.notnull()), "p-values")


def asymmetric_scores(evidence: Evidence) -> Finding:
    """C11: share of skewed score distributions."""
    return _share(evidence.skewed, "heads and roles")


def _by_role(evidence: Evidence) -> dict[str, xr.DataArray]:
    return {role: _with_role(evidence, role) for role in evidence.labels["role"].values}


def _with_role(evidence: Evidence, role: str) -> xr.DataArray:
    """Which heads have the role; untestable ones do not."""
    return evidence.labels.sel(role=role, drop=True) == 1


def _multifunctional(evidence: Evidence) -> xr.DataArray:
    return has_several(coarsened(_by_role(evidence)))


def _share(cases: xr.DataArray, of: str) -> Finding:
    """The share of 1 among the cases that are not NaN: of all tasks together, and in words of each."""
    within = [name for name in cases.dims if name not in ("replicate", "task")]
    share = cases.mean(["task", *within])
    value = f"{float(sample(share)):.0%} of {of} ({_percentages(sample(cases.mean(within)))})"
    return Finding(value, int(sample(cases).notnull().sum()), _together(share))


def _known(quantities: xr.DataArray) -> xr.DataArray:
    """The tasks where nothing of the sample is NaN."""
    others = [name for name in quantities.dims if name not in ("replicate", "task")]
    return quantities.sel(task=sample(quantities).notnull().all(others))


def _together(quantity: xr.DataArray) -> xr.DataArray:
    """Measures of one unit, all tasks together."""
    return quantity.expand_dims(unit=["all"])


def _units(quantities: dict[str, xr.DataArray]) -> xr.DataArray:
    """Measures with one unit per task and quantity, named by both."""
    named = [
        quantity.rename(task="unit").assign_coords(unit=[f"{task}{name}" for task in quantity["task"].values])
        for name, quantity in quantities.items()
    ]
    return xr.concat(named, "unit").transpose("unit", "replicate")


def _percentages(shares: xr.DataArray) -> str:
    return ", ".join(f"{task} {share:.0%}" for task, share in shares.to_series().dropna().items())
