"""Claims whose measures are functions of a paper's evidence; `claims` judges them and `claim_tables` tells them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import pandas as pd
import xarray as xr

from analysis.statistics import claim_tables, claims
from analysis.statistics.claims import ARTICLE, Verdict, sampled, tabled


@runtime_checkable
class Evidence(Protocol):
    """What the claims of a paper are judged on; `drawn` describes what a replicate draws."""

    drawn: str


class ClaimTables(Protocol):
    """The claim tables of a run, which the `summary` of a paper reads."""

    def claims(self, name: str) -> pd.DataFrame:
        """A saved claim table; without rows if there is none."""


class Finding(NamedTuple):
    """What the evidence says of a claim: the value of the sample in words, the number of cases, and the measures.

    `n` is one number, or a number for each unit by name. `measures` (unit, replicate) hold the sample and then draws;
    they are None if the evidence has nothing to measure. `limits` (unit, end) are intervals from a table, in the place
    of draws. `control` is the value of a control in words.
    """

    value: str
    n: int | Mapping[str, int]
    measures: xr.DataArray | None
    limits: xr.DataArray | None = None
    control: str = ""

    def frame(self) -> pd.DataFrame:
        """The finding as a frame of `claims`."""
        if self.measures is None:
            return claims.untestable(self.value)
        if self.limits is None:
            return sampled(self.measures, self.n)
        sample = self.measures.isel(replicate=0)
        ends = self.limits.sel(unit=sample["unit"].values)
        table = pd.DataFrame({"unit": sample["unit"].values.astype(str), "value": sample.values})
        for end in ("low", "high"):
            table[end] = ends.sel(end=end).values
        table["n"] = table["unit"].map(self.n) if isinstance(self.n, Mapping) else self.n
        return tabled(table, "unit", "value")


def untestable(reason: str) -> Finding:
    """A finding without measures."""
    return Finding(reason, 0, None)


@dataclass(frozen=True)
class Claim:
    """One claim with the function that measures it; the other fields are those of `claims.Claim`."""

    id: str
    statement: str
    source: str
    definition: str
    published: str
    function: Callable[[Evidence], Finding]
    relation: str
    bound: float | int
    brief: str = field(default="", kw_only=True)
    shown: str = field(default="{:.0%}", kw_only=True)
    origin: str = field(default=ARTICLE, kw_only=True)

    def find(self, evidence: Evidence) -> Finding:
        """What the evidence says."""
        return self.function(evidence)

    def judge(self, evidence: Evidence) -> tuple[Finding, Verdict]:
        """What the evidence says, and whether the claim holds."""
        found = self.find(evidence)
        return found, claims.judge(found.frame(), self.relation, self.bound)

    @property
    def data(self) -> claims.Claim:
        """The claim as `claim_tables` takes it."""
        return claims.Claim(
            self.id, self.brief, self.statement, self.source, self.definition, self.published, self.relation,
            self.bound, origin=self.origin, format=self.shown,
        )  # fmt: skip


def claim_table(judged: Iterable[Claim], evidence: Evidence) -> pd.DataFrame:
    """The table of `claim_tables.claim_table`, with the value and the control of each finding in its words."""
    judged = [*judged]
    found = {claim.id: claim.find(evidence) for claim in judged}
    frames = {name: each.frame() for name, each in found.items()}
    table = claim_tables.claim_table([claim.data for claim in judged], frames, drawn=evidence.drawn)
    return table.assign(
        ours=[each.value for each in found.values()], control_value=[each.control for each in found.values()]
    )


def seed_table(judged: Iterable[Claim], evidence: Mapping[int, Evidence]) -> pd.DataFrame:
    """The verdict of every claim for each single fine-tuning run: claim, seed, estimate, verdict."""
    rows = [
        {"claim": claim.id, "seed": seed, "estimate": verdict.estimate, "verdict": verdict.verdict}
        for claim in judged
        for seed, of_run in evidence.items()
        for _, verdict in [claim.judge(of_run)]
    ]
    return pd.DataFrame(rows)
