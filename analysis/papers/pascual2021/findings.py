"""Findings on the claims of Pascual 2021 and on their consequences, from the tables of its notebooks."""

from dataclasses import dataclass

import pandas as pd
import xarray as xr

from analysis.papers.pascual2021.names import (
    ATTENTION,
    EFFECTIVE,
    EFFECTIVE_SUM,
    GLOBAL,
    JSD,
    PERSISTS,
    SLOPE,
)
from analysis.statistics.measures import with_limits
from analysis.statistics.verdicts import Finding, untestable

RUN = ["task", "state"]
MOST = 0.9  # of the sequences of a task, so that effective attention can differ from attention at all
SHORT = (
    "no task whose sequences have more tokens than a value vector entries: effective attention is attention"
)


@dataclass(frozen=True)
class Tables:
    """The evidence: saved tables of the notebooks, None if one is missing."""

    discrepancy: pd.DataFrame | None = None
    persistence: pd.DataFrame | None = None
    effective: pd.DataFrame | None = None
    survival: pd.DataFrame | None = None
    sinks: pd.DataFrame | None = None
    drawn: str = "sequences"


def differs(tables: Tables, measure: str = JSD) -> Finding:
    """P1, P2: a measure of the discrepancy in every layer from 1 on; the control leaves out special tokens."""
    if tables.discrepancy is None:
        return untestable("no attribution")
    rows = _whole(tables.discrepancy, measure)
    rows = rows[rows["layer"] > 0]
    if rows.empty:
        return untestable("one layer alone")
    names = rows["task"] + ", " + rows["state"] + ", layer " + rows["layer"].astype(int).astype(str)
    return _judged(rows[rows["tokens"] == "all"], names, rows, "layers", "{:.2f}")


def grows(tables: Tables) -> Finding:
    """P3: the slope of the divergence over the layers above layer 0."""
    if tables.discrepancy is None:
        return untestable("no attribution")
    rows = _whole(tables.discrepancy, SLOPE).dropna(subset="value")
    if rows.empty:
        return untestable("fewer than three layers")
    names = rows["task"] + ", " + rows["state"]
    return _judged(rows[rows["tokens"] == "all"], names, rows, "runs", "{:+.3f}")


def persisting(tables: Tables) -> Finding:
    """P4: for the pattern that persists best on attribution, its heads in the layer that has fewest."""
    if tables.persistence is None:
        return untestable("no attribution")
    patterns = tables.persistence.drop_duplicates([*RUN, "pattern"])
    order = patterns.sort_values(["weakest", "low"], ascending=False, kind="stable")
    best = order.drop_duplicates(RUN).sort_values(RUN, ignore_index=True)
    kept = patterns[patterns["verdict"] == PERSISTS].groupby("pattern", sort=False).size()
    runs = len(best)
    value = ", ".join(f"{name} in {count} of {runs}" for name, count in kept.items()) or "none"
    found = _limits(best, best["task"] + ", " + best["state"], "weakest")
    return Finding(
        f"patterns in all layers (tasks and states): {value}", runs, *found, control="uniform heads: none"
    )


def vanishing(tables: Tables, role: str = "delimiter") -> Finding:
    """P5: the number of heads with the role on effective attention divided by the number on attention."""
    if tables.effective is None or tables.sinks is None:
        return untestable("no effective attention")
    rows = _changed(tables.effective[tables.effective["role"] == role], tables.sinks, MOST)
    if rows.empty:
        return untestable(SHORT)
    wide = rows.set_index([*RUN, "map"]).unstack("map")
    wide = wide[wide["heads"][ATTENTION].fillna(0) > 0]
    if wide.empty:
        return untestable(f"no head with the role {role} on attention")
    before = wide["heads"][ATTENTION].astype(float)
    columns = {"value": wide["heads"], "low": wide["heads_low"], "high": wide["heads_high"]}
    shares = pd.DataFrame({name: each[EFFECTIVE].astype(float) / before for name, each in columns.items()})
    names = pd.Series([", ".join(index) for index in wide.index], index=wide.index)
    counts = [
        f"{name} {after:.0f} of {on:.0f}"
        for name, after, on in zip(names, wide["heads"][EFFECTIVE], before, strict=True)
    ]
    kept = wide["heads"][EFFECTIVE_SUM].sum() / before.sum()
    n = int(wide["n"][ATTENTION].min())
    control = f"where rows keep their sums {kept:.0%} are left"
    return Finding("; ".join(counts), n, *_limits(shares, names, "value"), control=control)


def surviving(tables: Tables, role: str = "syntactic") -> Finding:
    """P6: agreement of the labels of a role on attention with those on effective attention and on attribution."""
    if tables.survival is None or tables.sinks is None:
        return untestable("no attribution")
    rows = tables.survival[
        (tables.survival["role"] == role) & tables.survival["map"].isin([EFFECTIVE, GLOBAL])
    ]
    own = rows["map"] == GLOBAL
    rows = pd.concat([rows[own], _changed(rows[~own], tables.sinks)]).dropna(subset="kappa")
    if rows.empty:
        return untestable(f"no head with the role {role} on any map")
    names = rows["task"] + ", " + rows["state"] + ", " + rows["map"]
    means = rows.groupby("map", sort=False)["kappa"].agg(["min", "median"])
    value = "; ".join(
        f"{name}: kappa {row['median']:.2f} (lowest {row['min']:.2f})" for name, row in means.iterrows()
    )
    return Finding(value, len(rows), *_limits(rows, names, "kappa"), control="labels at random: 0")


def _changed(rows: pd.DataFrame, sinks: pd.DataFrame, share: float = 0.0) -> pd.DataFrame:
    """The rows of tasks and states in which effective attention differs from attention in some sequence.

    With `share`, in at least that share of the sequences: those with more tokens than a value vector has entries.
    """
    different = sinks[(sinks["map"] == EFFECTIVE) & (sinks["changed"] > 0) & (sinks["changed"] >= share)]
    return rows.merge(different[RUN].drop_duplicates(), on=RUN)


def _whole(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of a measure between attention and attribution, without those of single heads."""
    return table[(table["pair"] == "whole") & (table["measure"] == measure) & table["head"].isna()]


def _judged(judged: pd.DataFrame, names: pd.Series, rows: pd.DataFrame, what: str, shown: str) -> Finding:
    """The finding on rows with an interval; the control is the range without special tokens."""
    text = rows.loc[rows["tokens"] == "text", "value"]
    ends = [shown.format(end) for end in (judged["value"].min(), judged["value"].max())]
    control = f"without special tokens {shown.format(text.min())} to {shown.format(text.max())}"
    value = f"{ends[0]} to {ends[1]} over {len(judged)} {what}"
    return Finding(
        value, int(judged["n"].min()), *_limits(judged, names[judged.index], "value"), control=control
    )


def _limits(rows: pd.DataFrame, names: pd.Series, column: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Measures and limits of rows that have an interval; a row without spread has only its value."""
    ends = (rows[end].fillna(rows[column]) for end in ("low", "high"))
    return with_limits(names, rows[column], *ends)
