"""Claims: what evidence says of each, the interval against the bound, the verdict, and the table of them."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import xarray as xr

LEVEL = 0.95
# How a measure compares with the bound, and which of several units is then the least favourable.
RELATIONS = {">=": (operator.ge, np.argmin), ">": (operator.gt, np.argmin), "<=": (operator.le, np.argmax)}
VERDICTS = {(True, True): "holds", (False, False): "does not hold"}
UNTESTABLE = "untestable"


@runtime_checkable
class Evidence(Protocol):
    """What the claims of a paper are judged on; `drawn` says in words what a replicate draws."""

    drawn: str


class ClaimTables(Protocol):
    """Where the claim tables of a run are kept: what the `summary` of a paper reads."""

    def claims(self, name: str) -> pd.DataFrame:
        """A saved claim table; no rows where it has not been made."""


class Finding(NamedTuple):
    """What the evidence says of a claim: the sample's value in words, how many cases, and what is compared.

    `measures` (unit, replicate), the sample first: the claim holds where they lie on its side of its bound in
    every unit; NaN where a replicate has nothing to measure. None: the evidence has nothing to measure.
    """

    value: str
    n: int
    measures: xr.DataArray | None


def untestable(reason: str) -> Finding:
    """A finding without measures."""
    return Finding(reason, 0, None)


class Verdict(NamedTuple):
    """The estimate of the least favourable unit, its interval, its p, how they were made, and the verdict."""

    estimate: float
    low: float
    high: float
    p: float
    method: str
    verdict: str


@dataclass(frozen=True)
class Claim:
    """One claim: as stated, its source, as computed, the article's figure, what is measured, and the bound.

    The claim is that the measures stand in `relation` (>=, > or <=) to `bound` in every unit.
    """

    id: str
    statement: str
    source: str
    definition: str
    published: str
    function: Callable[[Evidence], Finding]
    relation: str
    bound: float | int

    def find(self, evidence: Evidence) -> Finding:
        """What the evidence says."""
        return self.function(evidence)

    def judge(self, evidence: Evidence) -> tuple[Finding, Verdict]:
        """What the evidence says, and whether the claim holds."""
        found = self.find(evidence)
        return found, judged(found.measures, self.relation, self.bound, evidence.drawn)


def claim_table(
    claims: Iterable[Claim], evidence: Evidence, published: Evidence | None = None
) -> pd.DataFrame:
    """One row per claim: claim, source, definition, published, ours, n, the bound, the interval and the verdict.

    `ours` and `n` are the sample's; `estimate`, `low`, `high`, `p` and `method` as in `judged`, in the unit of the
    definition, to compare with `relation` and `bound`. Without replicates in the evidence there is no interval, and the
    estimate is judged. `published` is the evidence of the released figures: what it gives stands beside the article's
    own figure. The verdict is one of holds, does not hold, undecided, untestable.
    """
    return pd.DataFrame([_row(claim, evidence, published) for claim in claims])


def seed_table(claims: Iterable[Claim], evidence: Mapping[int, Evidence]) -> pd.DataFrame:
    """Every claim judged by the estimate of each fine-tuning run alone: claim, seed, estimate, verdict."""
    return pd.DataFrame(
        {"claim": claim.id, "seed": seed, "estimate": verdict.estimate, "verdict": verdict.verdict}
        for claim in claims
        for seed, of_run in evidence.items()
        for _, verdict in [claim.judge(of_run)]
    )


def short_table(claims: pd.DataFrame) -> pd.DataFrame:
    """What README shows of a claim table: claim, published, ours, interval (in words), n, verdict."""
    known = claims["low"].notna()
    interval = claims["low"].map("{:.2f}".format) + " to " + claims["high"].map("{:.2f}".format)
    bound = claims["relation"] + " " + claims["bound"].map("{:g}".format)
    shown = claims.assign(interval=(interval + ", bound " + bound).where(known, "none"))
    return shown[["claim", "published", "ours", "interval", "n", "verdict"]]


def _row(claim: Claim, evidence: Evidence, published: Evidence | None) -> dict[str, str | int | float]:
    ours, verdict = claim.judge(evidence)
    return {
        "claim": f"{claim.id}: {claim.statement}",
        "source": claim.source,
        "definition": claim.definition,
        "published": claim.published + _recomputed(claim, published),
        "ours": ours.value,
        "n": ours.n,
        "relation": claim.relation,
        "bound": claim.bound,
        **verdict._asdict(),
    }


def _recomputed(claim: Claim, published: Evidence | None) -> str:
    """What the released figures give for the claim, as a sentence to follow the article's own."""
    if published is None:
        return " (article)"
    found, verdict = claim.judge(published)
    if verdict.verdict == UNTESTABLE:
        return " (article); the released maps cannot tell"
    return f" (article); {found.value} recomputed from the released maps: {verdict.verdict}"


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
