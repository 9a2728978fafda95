"""What each claim on attention and attribution measures, from the tables of the notebooks (no torch)."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from analysis.statistics.claims import CONTROL, not_applicable, of_table, read_claims

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
# Names of maps and pairs of maps in the tables.
ATTENTION, EFFECTIVE, EFFECTIVE_SUM = "attention", "effective", "effective_sum"
LOCAL, GLOBAL = "local_attribution", "attribution"
# The difference between attention and attribution, and its two parts: what the head does with its input, and what the
# layers below mix into that input.
WHOLE, VALUES, MIXING = "whole", "values and softmax", "mixing"
JSD, SHARE = "jensen_shannon", "mixing_share"
PERSISTS, PARTLY, LOST, ABSENT = "in all layers", "in some layers", "lost", "on neither map"
RUN = ["task", "state"]
FEWEST = 20  # sequences that are longer than a value vector
SHORT = "too few sequences have more tokens than a value vector entries: effective attention is attention"
ENDS = ["value", "low", "high"]


def measures(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The frame of every claim by its id; `tables`: discrepancy, patterns, persistence, effective, survival, sinks."""
    return {
        "P1": mean_of_layers(tables["discrepancy"], JSD),
        "P2": mean_of_layers(tables["discrepancy"], SHARE),
        "P4": heads_with_persistent_pattern(tables["persistence"], tables["patterns"]),
        "P5": delimiter_labels_left(tables["effective"]),
        "P6": agreement_of_syntactic_labels(tables["survival"], tables["sinks"]),
    }


def mean_of_layers(discrepancy: pd.DataFrame, measure: str) -> pd.DataFrame:
    """P1: divergence of attention and attribution; P2: share of mixing. Means of the layers from 1 on, both states."""
    rows = discrepancy[(discrepancy["pair"] == WHOLE) & (discrepancy["measure"] == measure)]
    rows = rows[rows["head"].isna() & (rows["layer"] > 0) & (rows["tokens"] == "all")]
    return of_table(rows.groupby("task", sort=False)[ENDS].mean().reset_index(), "task")


def heads_with_persistent_pattern(persistence: pd.DataFrame, patterns: pd.DataFrame) -> pd.DataFrame:
    """P4: of the pattern that most heads show on attribution, the share of heads in the layer that has fewest."""
    if persistence.empty:
        return not_applicable("no attribution")
    by_pattern = persistence.groupby([*RUN, "pattern"], sort=False)
    fewest = by_pattern[["weakest", "low", "high"]].first() / (patterns["head"].max() + 1)
    most_frequent = by_pattern["attribution"].sum().groupby(level=RUN, sort=False).idxmax()
    shares = fewest.loc[most_frequent].groupby("task", sort=False).mean().reset_index()
    return of_table(shares, "task", "weakest").assign(control=0.0)


def delimiter_labels_left(effective: pd.DataFrame) -> pd.DataFrame:
    """P5: delimiter heads on effective attention over those on attention; control: rows that keep their sums."""
    rows = effective[(effective["role"] == "delimiter") & (effective["n"] >= FEWEST)]
    if rows.empty:
        return not_applicable(SHORT)
    counts = rows.set_index([*RUN, "map"])[["heads", "heads_low", "heads_high"]].astype(float).unstack("map")
    counts = counts[counts["heads"][ATTENTION].fillna(0) > 0]
    if counts.empty:
        return not_applicable("no delimiter head on attention")
    shares = counts.div(counts["heads"][ATTENTION], axis=0)
    value = shares.xs(EFFECTIVE, axis=1, level="map").set_axis(ENDS, axis=1)
    control = shares.xs(EFFECTIVE_SUM, axis=1, level="map").set_axis(CONTROL, axis=1)
    means = value.join(control).groupby("task", sort=False).mean().reset_index()
    return of_table(means, "task", **{name: name for name in CONTROL})


def agreement_of_syntactic_labels(survival: pd.DataFrame, sinks: pd.DataFrame) -> pd.DataFrame:
    """P6: kappa of syntactic labels on attention with those on another map, mean over tasks and states."""
    rows = survival[(survival["role"] == "syntactic") & survival["map"].isin([EFFECTIVE, GLOBAL])]
    rows = rows.dropna(subset="kappa")
    changed = sinks[(sinks["map"] == EFFECTIVE) & (sinks["changed"] > 0)].set_index(RUN).index
    rows = rows[(rows["map"] == GLOBAL) | rows.set_index(RUN).index.isin(changed)]
    if rows.empty:
        return not_applicable("no syntactic head on any map")
    means = rows.groupby("map", sort=False)[["kappa", "low", "high"]].mean().reset_index()
    return of_table(means.replace({"map": {GLOBAL: "attribution"}}), "map", "kappa").assign(control=0.0)
