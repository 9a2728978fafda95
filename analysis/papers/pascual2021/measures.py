"""What each claim on attention and attribution measures, from the tables of the notebooks (no torch)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.statistics.claims import read_claims, tabled, untestable

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
# The words of the tables.
ATTENTION, EFFECTIVE, EFFECTIVE_SUM = "attention", "effective", "effective_sum"
LOCAL, GLOBAL = "local_attribution", "attribution"
# The difference between attention and attribution, and its two parts: what the head does with its input, and what the
# layers below mix into that input.
WHOLE, VALUES, MIXING = "whole", "values and softmax", "mixing"
JSD, SHARE, SLOPE = "jensen_shannon", "mixing_share", "jensen_shannon_slope"
PERSISTS, PARTLY, LOST, ABSENT = "in all layers", "in some layers", "lost", "on neither map"
RUN = ["task", "state"]
FEWEST = 20  # sequences that are longer than a value vector
SHORT = "too few sequences have more tokens than a value vector entries: effective attention is attention"


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its notebook saved it."""
    return results.claims("claims-pascual2021")


def measures(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The frame of every claim by its id; `tables`: discrepancy, persistence, effective, survival and sinks."""
    discrepancy = tables["discrepancy"]
    return {
        "P1": by_layer(discrepancy, JSD, "all"),
        "P1b": by_layer(discrepancy, JSD, "text"),
        "P2": by_layer(discrepancy, SHARE, "all"),
        "P3": growth(discrepancy),
        "P4": persisting(tables["persistence"]),
        "P5": vanishing(tables["effective"]),
        "P6": surviving(tables["survival"], tables["sinks"]),
    }


def by_layer(discrepancy: pd.DataFrame, measure: str, tokens: str) -> pd.DataFrame:
    """P1, P1b, P2: a measure of attention and attribution in every layer from 1 on (see `discrepancy_table`)."""
    rows = _whole(discrepancy, measure).query("layer > 0").astype({"layer": int})
    frame = tabled(
        rows[rows["tokens"] == tokens], "{task}, {state}, layer {layer}", "value", note="one layer alone"
    )
    text = rows.loc[rows["tokens"] == "text", "value"]
    without = f"without special tokens {text.min():.2f} to {text.max():.2f}" if tokens == "all" else ""
    return frame.assign(note=without) if len(rows) else frame


def growth(discrepancy: pd.DataFrame) -> pd.DataFrame:
    """P3: the slope of the divergence over the layers above layer 0, bits a layer."""
    rows = _whole(discrepancy, SLOPE).dropna(subset="value")
    frame = tabled(rows[rows["tokens"] == "all"], "{task}, {state}", "value", note="fewer than three layers")
    text = rows.loc[rows["tokens"] == "text", "value"]
    return (
        frame.assign(note=f"without special tokens {text.min():+.3f} to {text.max():+.3f}")
        if len(rows)
        else frame
    )


def persisting(persistence: pd.DataFrame) -> pd.DataFrame:
    """P4: of the pattern that covers the most layers on attribution, the heads in the layer that has fewest."""
    if persistence.empty:
        return untestable("no attribution")
    patterns = persistence.drop_duplicates([*RUN, "pattern"]).set_index([*RUN, "pattern"])
    covered = (
        persistence["attribution"].gt(0).groupby([persistence[name] for name in patterns.index.names]).sum()
    )
    patterns = patterns.assign(covered=covered).reset_index()
    order = patterns.sort_values(["covered", "weakest", "low"], ascending=False, kind="stable")
    best = order.drop_duplicates(RUN).sort_values(RUN, ignore_index=True)
    kept = patterns[patterns["verdict"] == PERSISTS]["pattern"].value_counts(sort=False)
    told = ", ".join(f"{name} in {count} of {len(best)}" for name, count in kept.items()) or "none"
    layers = persistence["layer"].nunique()
    most = ", ".join(f"{row.pattern} {row.covered}" for row in best.itertuples())
    note = f"patterns in all layers (tasks and states): {told}; most layers of {layers}: {most}"
    return tabled(
        best.assign(control=0.0), "{task}, {state}", "weakest", n=len(best), control="control", note=note
    )


def vanishing(effective: pd.DataFrame, role: str = "delimiter") -> pd.DataFrame:
    """P5: the heads with the role on effective attention over those on attention; sequences longer than a value
    vector."""
    rows = effective[(effective["role"] == role) & (effective["n"] >= FEWEST)]
    if rows.empty:
        return untestable(SHORT)
    wide = rows.set_index([*RUN, "map"]).unstack("map")
    wide = wide[wide["heads"][ATTENTION].fillna(0) > 0].astype({("heads", ATTENTION): float})
    before = wide["heads"][ATTENTION]
    columns = {"value": "heads", "low": "heads_low", "high": "heads_high"}
    shares = pd.DataFrame(
        {name: wide[each][EFFECTIVE].astype(float) / before for name, each in columns.items()}
    )
    shares = shares.assign(
        n=wide["n"][ATTENTION], control=wide["heads"][EFFECTIVE_SUM].astype(float) / before
    )
    counts = [
        f"{', '.join(run)} {part[EFFECTIVE]:.0f} of {part[ATTENTION]:.0f}"
        for run, part in wide["heads"].iterrows()
    ]
    note = "; ".join(counts) or f"no head with the role {role} on attention"
    return tabled(shares.reset_index(), "{task}, {state}", "value", control="control", note=note)


def surviving(survival: pd.DataFrame, sinks: pd.DataFrame, role: str = "syntactic") -> pd.DataFrame:
    """P6: kappa of the labels of a role on attention with those on attribution and on effective attention."""
    rows = survival[(survival["role"] == role) & survival["map"].isin([EFFECTIVE, GLOBAL])].dropna(
        subset="kappa"
    )
    changed = sinks[(sinks["map"] == EFFECTIVE) & (sinks["changed"] > 0)].set_index(RUN).index
    rows = rows[(rows["map"] == GLOBAL) | rows.set_index(RUN).index.isin(changed)].assign(control=0.0)
    medians = rows.groupby("map", sort=False)["kappa"].median()
    note = ", ".join(f"median on {name.replace('_', ' ')} {value:.2f}" for name, value in medians.items())
    note = note or f"no head with the role {role} on any map"
    return tabled(rows, "{task}, {state}, {map}", "kappa", n=len(rows), control="control", note=note)


def _whole(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of a measure between attention and attribution, without those of single heads."""
    return table[(table["pair"] == WHOLE) & (table["measure"] == measure) & table["head"].isna()]
