"""What each claim of Pande 2021 measures: a frame of units from the labels, p-values and changes of the evidence."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis.papers.pande2021.evidence import Evidence
from analysis.roles import families
from analysis.statistics.claims import CONTROL, frame, not_applicable, read_claims, sink_name, together
from analysis.statistics.intervals import draws_interval
from analysis.statistics.layers import (
    FIRST_HALF,
    INITIAL,
    LAST_HALF,
    LAST_SIXTH,
    LAST_THIRD,
    MIDDLE,
    layers_within,
)
from analysis.statistics.roles import COARSE, HEAD
from analysis.texts.tasks import original

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
BANDS = {"mrpc": MIDDLE, "qnli": MIDDLE, "sst-2": MIDDLE, "qqp": INITIAL}  # of multi-functional heads
LEAST_HEADS = 5  # of a kind, for a share of them to be meaningful
LEAST_LAYERS = 2  # inside and outside a band
COARSELY = ("local", "syntactic", "delimiter")  # block needs pairs of texts
UNTRAINED = "no run trained successfully"


def claim_of_labels(
    name: str, evidence: Evidence, controls: Evidence | None = None, released: Evidence | None = None
) -> pd.DataFrame:
    """C1 to C8, by task; `controls`: labels of the controls of roles, `released`: those of the released maps."""
    measure, roles = BY_LABEL[name]
    units = of_labels(measure, roles, evidence)
    if measure is not multifunctional_layers:  # the others are shares
        units[["low", "high"]] = units[["low", "high"]].clip(0, 1)
    if controls and name in CONTROLLED:
        control = of_labels(measure, roles, controls).set_index("unit")[["value", "low", "high"]]
        units = units.join(control.set_axis(CONTROL, axis=1), on="unit")
    if controls and name == "C3":
        note = "of all local heads together {:.2f}, of their twins {:.2f}".format(
            *all_local_heads(evidence, controls)
        )
        measured = units["value"].notna()
        units.loc[measured, "reason"] = [
            f"{text}; {note}".removeprefix("; ") for text in units["reason"][measured]
        ]
    return units.assign(released=of_labels(measure, roles, released)["value"].mean() if released else np.nan)


def of_labels(
    measure: Callable[[xr.DataArray], xr.DataArray], roles: tuple[str, ...], evidence: Evidence
) -> pd.DataFrame:
    """A measure of labels by task; tasks in which one of the roles cannot be tested are not applicable."""
    values = measure(evidence.labels)
    sample = evidence.labels.isel(run=0, replicate=0).sel(role=[*roles])
    tested = sample.notnull().any(HEAD).all("role")
    missing = f"fewer than {LEAST_HEADS} such heads, or the role cannot be tested"
    return task_units(values.where(tested), evidence, missing)


def task_units(values: xr.DataArray, evidence: Evidence, missing: str = "not measured") -> pd.DataFrame:
    """The frame with a unit for each task: the mean over the runs that trained successfully."""
    parts = []
    for task in values["task"].values.tolist():
        draws = values.sel(task=task).transpose("run", "replicate").values
        if evidence.trained is not None:
            draws = draws[evidence.trained.sel(task=task).values]
        runs, all_runs = int((~np.isnan(draws[:, 0])).sum()), values.sizes["run"]
        if not runs:
            parts.append(not_applicable(missing if len(draws) else UNTRAINED, task))
            continue
        left_out = f"{all_runs - len(draws)} of {all_runs} runs left out: not trained successfully"
        reason = left_out if len(draws) < all_runs else ""
        parts.append(frame({task: draws_interval(draws)}, runs=runs, reason=reason))
    return together(parts)


def _coarse(labels: xr.DataArray) -> Mapping[str, xr.DataArray]:
    """Which heads have each coarse role or one of its finer roles; heads without a label do not."""
    return {name: (labels.sel(role=[*roles]) == 1).any("role") for name, roles in families().items()}


def _multifunctional(labels: xr.DataArray) -> xr.DataArray:
    """Which heads have at least two coarse roles: by these, the released maps agree with Pande et al. on C4."""
    return sum(_coarse(labels).values()) >= 2


def _share_within(labels: xr.DataArray, role: str, layers: list[int]) -> xr.DataArray:
    """The share of the heads with a role that lie in some layers."""
    heads = labels.sel(role=role, drop=True) == 1
    return _share_of(heads, heads["layer"].isin(layers))


def _share_of(heads: xr.DataArray, marked: xr.DataArray) -> xr.DataArray:
    """The share of some heads that are marked; NaN for fewer than LEAST_HEADS in the sample."""
    return marked.where(heads).mean(HEAD).where(heads.isel(replicate=0).sum(HEAD) >= LEAST_HEADS)


def many_multifunctional(labels: xr.DataArray) -> xr.DataArray:
    """C1: share of heads with two or more coarse roles."""
    return _multifunctional(labels).mean(HEAD)


def many_delimiter(labels: xr.DataArray) -> xr.DataArray:
    """C2: share of testable heads with the role delimiter."""
    return labels.sel(role="delimiter", drop=True).mean(HEAD)


def local_is_syntactic(labels: xr.DataArray) -> xr.DataArray:
    """C3: share of local heads that have the pooled syntactic role."""
    return _share_of(*(labels.sel(role=role, drop=True) == 1 for role in ("local", "syntactic")))


def all_local_heads(evidence: Evidence, controls: Evidence) -> tuple[float, float]:
    """The share of C3 over the local heads of all tasks and trained runs, each head counted once; and over controls."""

    def share(labels: xr.DataArray) -> float:
        local, syntactic = (labels.sel(role=role, drop=True) == 1 for role in ("local", "syntactic"))
        trained = True if evidence.trained is None else evidence.trained
        return float(syntactic.where(local & trained).mean())

    heads, of_controls = (share(part.labels.isel(replicate=0, drop=True)) for part in (evidence, controls))
    return heads, of_controls


def multifunctional_layers(labels: xr.DataArray) -> xr.DataArray:
    """C4: multi-functional heads per layer inside the band that the paper names for the task, minus those outside."""
    counts = _multifunctional(labels).sum("head")
    depth, bands = (
        counts.sizes["layer"],
        [BANDS.get(original(task)) for task in counts["task"].values.tolist()],
    )
    inside = [counts["layer"].isin(layers_within(depth, band) if band else []) for band in bands]
    inside = xr.concat(inside, counts["task"])
    gain = counts.where(inside).mean("layer") - counts.where(~inside).mean("layer")
    width = inside.sum("layer")
    return gain.where((width >= LEAST_LAYERS) & (width <= depth - LEAST_LAYERS))


def special_layers(labels: xr.DataArray, role: str, half: tuple) -> xr.DataArray:
    """C5: share of the heads of [SEP] or [CLS] in a half of the layers."""
    return _share_within(labels, role, layers_within(labels.sizes["layer"], half))


def block_layers(labels: xr.DataArray) -> xr.DataArray:
    """C6: share of block heads in layer 0."""
    return _share_within(labels, "block", [0])


def syntactic_layers(labels: xr.DataArray) -> xr.DataArray:
    """C7: share of layers with fewer than three syntactic heads."""
    return (_coarse(labels)["syntactic"].sum("head") < 3).mean("layer")


def last_layers(labels: xr.DataArray) -> xr.DataArray:
    """C8: share of multi-functional heads in the last sixth of the layers."""
    return _multifunctional(labels).sel(layer=layers_within(labels.sizes["layer"], LAST_SIXTH)).mean(HEAD)


def later_layers_change(evidence: Evidence) -> pd.DataFrame:
    """C9a: standardised change of the most changed layer of the last third, minus that of any other layer.

    The roles of [CLS] and [SEP] are left out: C9b measures where attention to them goes.
    """
    change = evidence.change
    size = np.abs(change.drop_sel(role=[*families()["delimiter"]])).mean(["role", "head"])
    late = change["layer"].isin(layers_within(change.sizes["layer"], LAST_THIRD))
    return task_units(size.where(late).max("layer") - size.where(~late).max("layer"), evidence)


def sink_loses(evidence: Evidence, sinks: Sequence[str]) -> pd.DataFrame:
    """C9b: attention that the sink loses in the last third of the layers; the control is the other special token."""
    lost = -evidence.mass.sel(layer=layers_within(evidence.mass.sizes["layer"], LAST_THIRD)).mean(HEAD)
    tokens = sinks[0], {"cls": "sep", "sep": "cls"}[sinks[0]]
    units, control = (task_units(lost.sel(target=token, drop=True), evidence) for token in tokens)
    units[CONTROL] = control[["value", "low", "high"]].to_numpy()
    return units.assign(token=sink_name(sinks))


def extreme_p_values(evidence: Evidence) -> pd.DataFrame:
    """C10: share of the p-values of the coarse roles below .05 or above .95; the authors count these."""
    p = evidence.p.sel(role=[*COARSE])
    extreme = ((p < 0.05) | (p > 0.95)).where(p.notnull())
    return task_units(extreme.mean(["role", *HEAD]), evidence)


BY_LABEL = {
    "C1": (many_multifunctional, COARSELY),
    "C2": (many_delimiter, ("delimiter",)),
    "C3": (local_is_syntactic, ("local", "syntactic")),
    "C4": (multifunctional_layers, COARSELY),
    "C5a": (partial(special_layers, role="sep", half=LAST_HALF), ("sep",)),
    "C5b": (partial(special_layers, role="cls", half=FIRST_HALF), ("cls",)),
    "C6": (block_layers, ("block",)),
    "C7": (syntactic_layers, ("syntactic",)),
    "C8": (last_layers, COARSELY),
}
CONTROLLED = ("C3", "C6", "C7")  # claims that are measured on the controls of the roles too
