"""From the measures of a claim to a verdict: an interval of the least favourable unit against the bound."""

import operator
from typing import NamedTuple

import numpy as np
import xarray as xr

LEVEL = 0.95
# How a measure compares with the bound, and which of several units is then the least favourable.
RELATIONS = {">=": (operator.ge, np.argmin), ">": (operator.gt, np.argmin), "<=": (operator.le, np.argmax)}
VERDICTS = {(True, True): "holds", (False, False): "does not hold"}
UNTESTABLE = "untestable"


class Verdict(NamedTuple):
    """The estimate of the least favourable unit, its interval, its p, how they were made, and the verdict."""

    estimate: float
    low: float
    high: float
    p: float
    method: str
    verdict: str


def judged(measures: xr.DataArray | None, relation: str, bound: float | int, drawn: str = "") -> Verdict:
    """Whether measures (unit, replicate), the sample first, lie on the claim's side of the bound in every unit.

    holds: the whole percentile interval lies there; does not hold: it lies on the other side; else undecided.
    Over several units this is the intersection-union reading: estimate and limits are the least favourable
    unit's, `p` is the partial conjunction, the largest of the units' one-sided bootstrap p,
    (1 + replicates on the wrong side) / (1 + replicates). A replicate without a measure counts as 0: only
    claims of more than some share can lack one. The sample alone has no interval and is judged by its
    estimate; no measures are untestable. `drawn` names what a replicate draws. The percentile interval keeps
    the bias of resampling: shares of test decisions may lie outside their own interval, which `method` tells.
    Source: Dror 2017 (partial conjunction).
    """
    if measures is None:
        return Verdict(np.nan, np.nan, np.nan, np.nan, "", UNTESTABLE)
    on_side, worst = RELATIONS[relation]
    values = measures.transpose("unit", "replicate").values.astype(np.float64)
    estimates, draws = values[:, 0], np.nan_to_num(values[:, 1:])
    unit = worst(estimates)
    estimate = float(estimates[unit])
    if not draws.size:
        verdict = VERDICTS[(bool(on_side(estimate, bound)),) * 2]
        return Verdict(estimate, np.nan, np.nan, np.nan, "estimate of the sample", verdict)
    limits = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    low, high = (float(limit[worst(limit)]) for limit in limits)
    p = (1 + (~on_side(draws, bound)).sum(axis=1).max()) / (1 + draws.shape[1])
    verdict = VERDICTS.get((bool(on_side(low, bound)), bool(on_side(high, bound))), "undecided")
    method = _method(measures, unit, drawn)
    if not low <= estimate <= high:
        method += "; the estimate lies outside"
    return Verdict(estimate, low, high, float(p), method, verdict)


def _method(measures: xr.DataArray, unit: np.integer, drawn: str) -> str:
    """In words how an interval was made."""
    parts = [f"{LEVEL:.0%} percentile interval, {measures.sizes['replicate'] - 1} replicates, {drawn}"]
    if measures.sizes["unit"] > 1:
        parts.append(f"worst of {measures.sizes['unit']}: {measures['unit'].values[unit]}")
    lacking = float(measures.isel(replicate=slice(1, None)).isnull().any("unit").mean())
    if lacking > 0.1:
        parts.append(f"{lacking:.0%} of the replicates have nothing to measure and count as 0")
    return "; ".join(parts)
