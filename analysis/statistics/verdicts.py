"""Claims: what evidence says of each, the interval against the bound, the verdict, and the table of them."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import xarray as xr

LEVEL = 0.95
# How a measure compares with the bound, and which of several units is then the least favourable.
RELATIONS = {">=": (operator.ge, np.argmin), ">": (operator.gt, np.argmin), "<=": (operator.le, np.argmax)}
VERDICTS = {(True, True): "holds", (False, False): "does not hold"}
UNTESTABLE, UNDECIDED = "untestable", "undecided"
MARKS = {"holds": "✓", "does not hold": "✗", UNDECIDED: "?", UNTESTABLE: "–"}


@runtime_checkable
class Evidence(Protocol):
    """What the claims of a paper are judged on; `drawn` says in words what a replicate draws.

    An attribute `runs` tells how many fine-tuning runs the sample has (1 where it is missing): the first so many
    replicates are the sample of each run, those behind them are draws.
    """

    drawn: str


class ClaimTables(Protocol):
    """Where the claim tables of a run are kept: what the `summary` of a paper reads."""

    def claims(self, name: str) -> pd.DataFrame:
        """A saved claim table; no rows where it has not been made."""


class Finding(NamedTuple):
    """What the evidence says of a claim: the sample's value in words, how many cases, and what is compared.

    `n` is one number, or one for each unit by name. `measures` (unit, replicate), the sample of every run first: the
    claim holds where they lie on its side of its bound in every unit; NaN where a replicate has nothing to measure.
    None: the evidence has nothing to measure. `limits` (unit, end) is an interval that a table already has, in the
    place of draws. `control` is in words what a control gives, where the finding knows it.
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
    """The estimate of the least favourable unit, its interval, its p, how they were made, and the verdict.

    `unit` names that unit; `lowest_run`, `highest_run` are its measures of single runs (NaN for one run).
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
    """One claim: as stated, its source, as computed, the article's figure, what is measured, and the bound.

    The claim is that the measures stand in `relation` (>=, > or <=) to `bound` in every unit. `by_label` says that
    role labels enter, so that the claim can be judged under another label too. `brief` says it in at most eight words,
    for README, where measures are written as `shown` (a format).
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
        return found, judged(found.measures, self.relation, self.bound, *options)


def runs_of(evidence: Evidence) -> int:
    """How many of the first replicates are samples of runs."""
    return getattr(evidence, "runs", 1)


def claim_table(
    claims: Iterable[Claim],
    evidence: Evidence,
    published: Evidence | None = None,
    controlled: Evidence | None = None,
    control: Evidence | None = None,
) -> pd.DataFrame:
    """One row per claim: claim, source, definition, published, ours, n, the bound, the interval and the verdict.

    `ours` and `estimate` are the median over the sample's fine-tuning runs, in words and in the unit of the
    definition, to compare with `relation` and `bound`; `lowest_run` and `highest_run` are the range of the runs.
    `n` is that of the sample, or of the unit that decides; `low`, `high`, `p`, `method` and `unit` as in `judged`.
    Without replicates in the evidence there is no interval, and the estimate is judged. The verdict is one of holds,
    does not hold, undecided, untestable.

    `published` is the evidence of the released figures: what it gives stands beside the article's own figure.
    `controlled` is the same evidence under the controlled label: its value and verdict stand in the column of that
    name, in claims that role labels enter. `control` is the evidence of the control heads themselves: `control_value`
    is what the claim's measure is for them. Both columns are empty where nothing is given.
    """
    return pd.DataFrame([_row(claim, evidence, published, controlled, control) for claim in claims])


def seed_table(claims: Iterable[Claim], evidence: Mapping[int, Evidence]) -> pd.DataFrame:
    """Every claim judged by the estimate of each fine-tuning run alone: claim, seed, estimate, verdict."""
    return pd.DataFrame(
        {"claim": claim.id, "seed": seed, "estimate": verdict.estimate, "verdict": verdict.verdict}
        for claim in claims
        for seed, of_run in evidence.items()
        for _, verdict in [claim.judge(of_run)]
    )


def short_table(claims: pd.DataFrame) -> pd.DataFrame:
    """What README shows of a claim table: the claim in a few words, BERT-base as published or recomputed from released
    maps, this encoder with the range over fine-tuning runs, and a mark for the verdict.

    † says that the claim holds for control heads as well, and so says nothing about heads; ‡ that it does not hold when
    heads must beat their role's control.
    """
    same = claims["verdict"].eq("holds") & claims["control_verdict"].eq("holds")
    controlled = claims["controlled"].fillna("")
    lost = claims["verdict"].eq("holds") & controlled.ne("") & ~controlled.str.endswith(": holds")
    marks = (
        claims["verdict"].map(MARKS) + same.map({True: " †", False: ""}) + lost.map({True: " ‡", False: ""})
    )
    published = claims["released"].fillna("").where(claims["released"].fillna("") != "", claims["published"])
    columns = {
        "claim": claims["brief"],
        "BERT-base": published.map(_clipped),
        "here": claims["found"].fillna(""),
    }
    return pd.DataFrame(columns | {"": marks})


def _clipped(text: str, longest: int = 48) -> str:
    """A published value without what stands behind it in brackets, cut where it is long."""
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
    """A claim's measure in short, with the range of the runs where there are several; empty where it has none."""
    verdict = claim.judge(evidence)[1] if evidence is not None else None
    if verdict is None or verdict.verdict == UNTESTABLE:
        return ""
    text = claim.shown.format(verdict.estimate)
    if np.isnan(verdict.lowest_run) or verdict.lowest_run == verdict.highest_run:
        return text
    return f"{text} ({claim.shown.format(verdict.lowest_run)} to {claim.shown.format(verdict.highest_run)})"


def _spread(verdict: Verdict, runs: int) -> str:
    """The range of the runs in words, to follow the median; nothing for one run."""
    if runs == 1 or verdict.verdict == UNTESTABLE:
        return ""
    unit = f" for {verdict.unit}" if verdict.unit else ""
    return f"; median of {runs} runs, which give {verdict.lowest_run:.2g} to {verdict.highest_run:.2g}{unit}"


def _in_words(claim: Claim, evidence: Evidence) -> str:
    found, verdict = claim.judge(evidence)
    return f"{found.value}: {verdict.verdict}"


def _recomputed(claim: Claim, published: Evidence | None) -> str:
    """What the released figures give for the claim, as a sentence to follow the article's own."""
    if published is None:
        return " (article)"
    found, verdict = claim.judge(published)
    if verdict.verdict == UNTESTABLE:
        return " (article); the released maps cannot tell"
    return f" (article); {found.value} recomputed from the released maps: {verdict.verdict}"


def judged(
    measures: xr.DataArray | None,
    relation: str,
    bound: float | int,
    drawn: str = "",
    runs: int = 1,
    limits: xr.DataArray | None = None,
) -> Verdict:
    """Whether measures (unit, replicate) lie on the claim's side of the bound in every unit.

    The first `runs` replicates are the samples of fine-tuning runs, whose median is the estimate; the others are
    draws, named by `drawn`. holds: the whole 95 % percentile interval of every unit lies on the claim's side. does not
    hold: that of some unit lies on the other side, at the level .05 / units, so that many units do not refute a claim
    by chance; holding in every unit needs no such correction. Else undecided. Estimate and limits are the least
    favourable unit's, at 95 %; `p` is the partial conjunction, the largest of the units' one-sided bootstrap p,
    (1 + replicates on the wrong side) / (1 + replicates). A replicate without a measure counts as 0: only
    claims of more than some share can lack one. Without draws there is no interval and the estimate is judged, unless
    `limits` are given, which then count as the interval of every unit. No measures are untestable. The percentile
    interval keeps the bias of resampling: shares of test decisions may lie outside their own interval, which `method`
    tells. Source: Dror 2017 (partial conjunction).
    """
    if measures is None:
        return Verdict(np.nan, np.nan, np.nan, np.nan, "", UNTESTABLE)
    on_side, worst = RELATIONS[relation]
    values = measures.transpose("unit", "replicate").values.astype(np.float64)
    estimates, draws = np.median(values[:, :runs], axis=1), np.nan_to_num(values[:, runs:])
    unit = worst(estimates)
    estimate = float(estimates[unit])
    several = len(estimates) > 1
    ends = {"unit": str(measures["unit"].values[unit]) if several else ""}
    if runs > 1:
        of_runs = values[unit, :runs]
        ends |= {"lowest_run": float(of_runs.min()), "highest_run": float(of_runs.max())}
    if limits is not None:
        low, high = (limits.sel(end=end).values for end in ("low", "high"))
        inside, outside = (
            (on_side(low, bound) & on_side(high, bound)).all(),
            ~on_side(low, bound) & ~on_side(high, bound),
        )
        verdict = VERDICTS.get((bool(inside), not outside.any()), UNDECIDED)
        ends_of = float(low[unit]), float(high[unit])
        return Verdict(estimate, *ends_of, np.nan, "interval of the table that was judged", verdict, **ends)
    if not draws.size:
        verdict = VERDICTS[(bool(on_side(estimate, bound)),) * 2]
        method = "estimate of the sample"
        return Verdict(estimate, np.nan, np.nan, np.nan, method, verdict, **ends)
    limits, refuting = (_limits(draws, level) for level in (1 - LEVEL, (1 - LEVEL) / len(estimates)))
    low, high = (float(limit[worst(limit)]) for limit in limits)
    holds = all(on_side(limit, bound).all() for limit in limits)
    fails = (~on_side(refuting[0], bound) & ~on_side(refuting[1], bound)).any()
    p = (1 + (~on_side(draws, bound)).sum(axis=1).max()) / (1 + draws.shape[1])
    method = _method(measures, unit, drawn, runs)
    if not low <= estimate <= high:
        method += "; the estimate lies outside"
    return Verdict(estimate, low, high, float(p), method, VERDICTS.get((holds, not fails), UNDECIDED), **ends)


def _limits(draws: np.ndarray, level: float) -> np.ndarray:
    """Both ends of every unit's percentile interval, which leaves out the share `level` of the draws."""
    return np.quantile(draws, [level / 2, 1 - level / 2], axis=1)


def _method(measures: xr.DataArray, unit: np.integer, drawn: str, runs: int) -> str:
    """In words how an interval was made."""
    parts = [f"{LEVEL:.0%} percentile interval, {measures.sizes['replicate'] - runs} replicates, {drawn}"]
    if measures.sizes["unit"] > 1:
        parts.append(f"worst of {measures.sizes['unit']}: {measures['unit'].values[unit]}")
    lacking = float(measures.isel(replicate=slice(runs, None)).isnull().any("unit").mean())
    if lacking > 0.1:
        parts.append(f"{lacking:.0%} of the replicates have nothing to measure and count as 0")
    return "; ".join(parts)
