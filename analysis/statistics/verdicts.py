"""Claims: what the evidence says of each, its interval and the bound, the verdict, and the table of claims."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import xarray as xr

LEVEL = 0.95
# How a measure compares with the bound, and the position of the least favourable of several units.
COMPARISONS = {">=": (operator.ge, np.argmin), ">": (operator.gt, np.argmin), "<=": (operator.le, np.argmax)}
VERDICTS = {(True, True): "holds", (False, False): "does not hold"}
UNTESTABLE, UNDECIDED = "untestable", "undecided"
MARKS = {"holds": "✓", "does not hold": "✗", UNDECIDED: "?", UNTESTABLE: "–"}


@runtime_checkable
class Evidence(Protocol):
    """What the claims of a paper are judged on; `drawn` describes what a replicate draws.

    The first `runs` replicates are the samples of the fine-tuning runs, the others are draws. Without an attribute
    `runs` there is one run.
    """

    drawn: str


class ClaimTables(Protocol):
    """The claim tables of a run, which the `summary` of a paper reads."""

    def claims(self, name: str) -> pd.DataFrame:
        """A saved claim table; without rows if there is none."""


class Finding(NamedTuple):
    """What the evidence says of a claim: the value of the sample in words, the number of cases, and the measures.

    `n` is one number, or a number for each unit by name. `measures` (unit, replicate) are compared with the bound of
    the claim (see `judge`). A replicate is NaN, or all measures are None, if the evidence has nothing to measure.
    `limits` (unit, end) are intervals from a table, in the place of draws. `control` is the value of a control in
    words, if the finding knows it.
    """

    value: str
    n: int | Mapping[str, int]
    measures: xr.DataArray | None
    limits: xr.DataArray | None = None
    control: str = ""


def untestable(reason: str) -> Finding:
    """A finding without measures."""
    return Finding(reason, 0, None)


class Verdict(NamedTuple):
    """The estimate of the least favourable unit, its interval, p, the method, and the verdict.

    `unit` names this unit; `lowest_run` and `highest_run` are the range of its runs (NaN for a single run).
    """

    estimate: float
    low: float
    high: float
    p: float
    method: str
    verdict: str
    unit: str = ""
    lowest_run: float = np.nan
    highest_run: float = np.nan


@dataclass(frozen=True)
class Claim:
    """One claim: its statement and source, its definition here, the published figure, the function that measures it.

    It claims that the measures are in `relation` (>=, > or <=) to `bound` in every unit. `by_label` says that it
    depends on role labels, so that it can also be judged under another label. `brief` is the claim in at most eight
    words for README, where measures have the format `shown`.
    """

    id: str
    statement: str
    source: str
    definition: str
    published: str
    function: Callable[[Evidence], Finding]
    relation: str
    bound: float | int
    by_label: bool = field(default=False, kw_only=True)
    brief: str = field(default="", kw_only=True)
    shown: str = field(default="{:.0%}", kw_only=True)

    def find(self, evidence: Evidence) -> Finding:
        """What the evidence says."""
        return self.function(evidence)

    def judge(self, evidence: Evidence) -> tuple[Finding, Verdict]:
        """What the evidence says, and whether the claim holds."""
        found = self.find(evidence)
        options = (evidence.drawn, runs_of(evidence), found.limits)
        return found, judge(found.measures, self.relation, self.bound, *options)


def runs_of(evidence: Evidence) -> int:
    """The number of fine-tuning runs of the evidence."""
    return getattr(evidence, "runs", 1)


def claim_table(
    claims: Iterable[Claim],
    evidence: Evidence,
    published: Evidence | None = None,
    controlled: Evidence | None = None,
    control: Evidence | None = None,
) -> pd.DataFrame:
    """One row per claim: claim, source, definition, published, ours, n, the bound, the interval and the verdict.

    `ours` and `estimate` are the median over the fine-tuning runs of the sample, in words and in the unit of `bound`;
    `lowest_run` and `highest_run` are the range of the runs. `n` is that of the sample, or of the unit that decides;
    `low`, `high`, `p`, `method`, `unit` and the verdict (holds, does not hold, undecided or untestable) are those of
    `judge`.

    `published` is the evidence of the released maps; its value follows the figure of the article. `controlled` is the
    evidence under the controlled label; its value and verdict are in the column of this name, for claims about role
    labels. `control` is the evidence of the control heads; `control_value` is their measure. Without this evidence the
    columns are empty.
    """
    return pd.DataFrame([_row(claim, evidence, published, controlled, control) for claim in claims])


def seed_table(claims: Iterable[Claim], evidence: Mapping[int, Evidence]) -> pd.DataFrame:
    """The verdict of every claim for each single fine-tuning run: claim, seed, estimate, verdict."""
    return pd.DataFrame(
        {"claim": claim.id, "seed": seed, "estimate": verdict.estimate, "verdict": verdict.verdict}
        for claim in claims
        for seed, of_run in evidence.items()
        for _, verdict in [claim.judge(of_run)]
    )


def short_table(claims: pd.DataFrame) -> pd.DataFrame:
    """A claim table for README: the claim in a few words, BERT-base as published or recomputed from the released maps,
    this encoder with the range over fine-tuning runs, and a mark for the verdict.

    † marks claims that also hold for control heads, and so say nothing about heads; ‡ marks claims that do not hold
    when heads must beat their role's control.
    """
    same = claims["verdict"].eq("holds") & claims["control_verdict"].eq("holds")
    controlled = claims["controlled"].fillna("")
    lost = claims["verdict"].eq("holds") & controlled.ne("") & ~controlled.str.endswith(": holds")
    marks = (
        claims["verdict"].map(MARKS) + same.map({True: " †", False: ""}) + lost.map({True: " ‡", False: ""})
    )
    released = claims["released"].fillna("")
    published = released.where(released != "", claims["published"].fillna(""))
    columns = {
        "claim": claims["brief"],
        "BERT-base": published.map(_clipped),
        "here": claims["found"].fillna(""),
    }
    return pd.DataFrame(columns | {"mark": marks})


def _clipped(text: str, longest: int = 48) -> str:
    """A published value without the remarks behind it, cut to `longest` characters."""
    bare = text.split(" (article")[0].split(";")[0]
    return bare if len(bare) <= longest else f"{bare[: longest - 2].rsplit(' ', 1)[0]} …"


def _row(
    claim: Claim,
    evidence: Evidence,
    published: Evidence | None,
    controlled: Evidence | None,
    control: Evidence | None,
) -> dict[str, str | int | float]:
    ours, verdict = claim.judge(evidence)
    return {
        "claim": f"{claim.id}: {claim.statement}",
        "source": claim.source,
        "definition": claim.definition,
        "published": claim.published + _recomputed(claim, published),
        "ours": ours.value + _spread(verdict, runs_of(evidence)),
        "n": ours.n[verdict.unit] if isinstance(ours.n, Mapping) else ours.n,
        "relation": claim.relation,
        "bound": claim.bound,
        **verdict._asdict(),
        "controlled": _in_words(claim, controlled) if controlled is not None and claim.by_label else "",
        "control_value": claim.find(control).value if control is not None else ours.control,
        "brief": claim.brief,
        "released": _shown(claim, published),
        "found": _shown(claim, evidence),
        "control_verdict": claim.judge(control)[1].verdict if control is not None and claim.by_label else "",
    }


def _shown(claim: Claim, evidence: Evidence | None) -> str:
    """The measure of a claim with the range of several runs, in short; empty if there is none."""
    verdict = claim.judge(evidence)[1] if evidence is not None else None
    if verdict is None or verdict.verdict == UNTESTABLE:
        return ""
    text = claim.shown.format(verdict.estimate)
    if np.isnan(verdict.lowest_run) or verdict.lowest_run == verdict.highest_run:
        return text
    return f"{text} ({claim.shown.format(verdict.lowest_run)} to {claim.shown.format(verdict.highest_run)})"


def _spread(verdict: Verdict, runs: int) -> str:
    """The range of the runs in words, which follows the median; empty for one run."""
    if runs == 1 or verdict.verdict == UNTESTABLE:
        return ""
    unit = f" for {verdict.unit}" if verdict.unit else ""
    return f"; median of {runs} runs, which give {verdict.lowest_run:.2g} to {verdict.highest_run:.2g}{unit}"


def _in_words(claim: Claim, evidence: Evidence) -> str:
    found, verdict = claim.judge(evidence)
    return f"{found.value}: {verdict.verdict}"


def _recomputed(claim: Claim, published: Evidence | None) -> str:
    """What the released maps give for the claim, in words that follow the figure of the article."""
    if published is None:
        return " (article)"
    found, verdict = claim.judge(published)
    if verdict.verdict == UNTESTABLE:
        return " (article); the released maps cannot tell"
    return f" (article); {found.value} recomputed from the released maps: {verdict.verdict}"


def judge(
    measures: xr.DataArray | None,
    relation: str,
    bound: float | int,
    drawn: str = "",
    runs: int = 1,
    limits: xr.DataArray | None = None,
) -> Verdict:
    """Whether measures (unit, replicate) lie on the claim's side of the bound in every unit.

    The first `runs` replicates are the samples of the fine-tuning runs, and their median is the estimate; the others
    are draws, which `drawn` describes. A draw without a measure counts as 0. The claim holds if the 95 % percentile
    interval of every unit lies on its side. It does not hold if some unit's interval lies on the other side at the
    level 1 - 0.05 / units, so that many units do not refute a claim by chance. Otherwise it is undecided. Estimate and
    interval are those of the least favourable unit; `p` is the largest of the units' one-sided bootstrap p, (1 + draws
    on the wrong side) / (1 + draws) (partial conjunction, Dror 2017). `limits` (unit, end) are ready intervals.
    Without draws and limits the estimate decides, and without measures the claim is untestable. Percentile intervals
    keep the bias of resampling; `method` tells if the estimate lies outside its own interval.
    """
    if measures is None:
        return Verdict(np.nan, np.nan, np.nan, np.nan, "", UNTESTABLE)
    compare, worst = COMPARISONS[relation]
    values = measures.transpose("unit", "replicate").values.astype(np.float64)
    estimates, draws = np.median(values[:, :runs], axis=1), np.nan_to_num(values[:, runs:])
    unit = worst(estimates)
    estimate, of_runs = float(estimates[unit]), values[unit, :runs]
    names = {"unit": str(measures["unit"].values[unit])} if len(estimates) > 1 else {}
    if runs > 1:
        names |= {"lowest_run": float(of_runs.min()), "highest_run": float(of_runs.max())}
    if limits is not None:
        ends = limits.sel(end=["low", "high"]).transpose("end", "unit").values
        verdict, method = _decided(compare(ends, bound)), "interval of the table that was judged"
        return Verdict(estimate, *ends[:, unit].tolist(), np.nan, method, verdict, **names)
    if not draws.size:
        verdict, method = _decided(compare(estimates[[[unit]]], bound)), "estimate of the sample"
        return Verdict(estimate, np.nan, np.nan, np.nan, method, verdict, **names)
    ends, wide = (_limits(draws, level) for level in (1 - LEVEL, (1 - LEVEL) / len(estimates)))
    low, high = (float(limit[worst(limit)]) for limit in ends)
    p = (1 + (~compare(draws, bound)).sum(axis=1).max()) / (1 + draws.shape[1])
    outside = "" if low <= estimate <= high else "; the estimate lies outside"
    method = _method(measures, unit, drawn, runs) + outside
    return Verdict(
        estimate, low, high, float(p), method, _decided(compare(ends, bound), compare(wide, bound)), **names
    )


def _decided(on_side: np.ndarray, refuting: np.ndarray | None = None) -> str:
    """The verdict of intervals (end, unit), from whether each end lies on the claim's side.

    The intervals `refuting`, by default the same ones, decide whether the claim does not hold.
    """
    refuting = on_side if refuting is None else refuting
    return VERDICTS.get((bool(on_side.all()), bool(refuting.any(axis=0).all())), UNDECIDED)


def _limits(draws: np.ndarray, level: float) -> np.ndarray:
    """The percentile interval (end, unit) that leaves out the share `level` of the draws."""
    return np.quantile(draws, [level / 2, 1 - level / 2], axis=1)


def _method(measures: xr.DataArray, unit: np.integer, drawn: str, runs: int) -> str:
    """How an interval is made, in words."""
    parts = [f"{LEVEL:.0%} percentile interval, {measures.sizes['replicate'] - runs} replicates, {drawn}"]
    if measures.sizes["unit"] > 1:
        parts.append(f"worst of {measures.sizes['unit']}: {measures['unit'].values[unit]}")
    lacking = float(measures.isel(replicate=slice(runs, None)).isnull().any("unit").mean())
    if lacking > 0.1:
        parts.append(f"{lacking:.0%} of the replicates have nothing to measure and count as 0")
    return "; ".join(parts)
