"""What each claim on attention and attribution measures, from the tables of the notebooks (no torch)."""

from pathlib import Path

import pandas as pd

from analysis.statistics.claims import not_applicable, of_table, read_claims

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
# Names of maps and pairs of maps in the tables.
ATTENTION, EFFECTIVE, EFFECTIVE_SUM = "attention", "effective", "effective_sum"
LOCAL, GLOBAL = "local_attribution", "attribution"
# The difference between attention and attribution, and its two parts: what the head does with its input, and what the
# layers below mix into that input.
WHOLE, VALUES, MIXING = "whole", "values and softmax", "mixing"
JSD, RATIO = "jensen_shannon", "mixing_ratio"
TOKENS = {"all": "all tokens", "text": "without special tokens"}
DEFINITIONS = {EFFECTIVE: "rows that shrink", EFFECTIVE_SUM: "rows that keep their sums"}
RUN = ["task", "state"]
FEWEST = 20  # sequences that are longer than a value vector
SHORT = "too few sequences have more tokens than a value vector entries: effective attention is attention"
UNDEFINED = "the abstract does not define a pattern"
ENDS = ["value", "low", "high"]


def divergence(discrepancy: pd.DataFrame) -> pd.DataFrame:
    """P1: divergence of attention and attribution (bits), mean of the layers from 1 on, by task."""
    layers = discrepancy.query("pair == @WHOLE and head.isna() and layer > 0")
    return mean_by(layers[(layers["measure"] == JSD) & (layers["tokens"] == "all")], "task")


def share_of_mixing(discrepancy: pd.DataFrame) -> pd.DataFrame:
    """P2: divergence by mixing over that by values and softmax, mean of the layers from 1 on, by kind of tokens."""
    layers = discrepancy.query("pair == @WHOLE and head.isna() and layer > 0")
    return mean_by(layers[layers["measure"] == RATIO].replace({"tokens": TOKENS}), "tokens")


def mean_by(rows: pd.DataFrame, unit: str) -> pd.DataFrame:
    """The frame of means of values and of their ends; 08_attribution reads one fine-tuning run of a task."""
    if rows.empty:
        return not_applicable("not measured")
    means = rows.groupby(unit, sort=False)[ENDS].mean().reset_index()
    return of_table(means, unit).assign(runs=int((rows["state"] == "finetuned").any()))


def delimiter_labels_left(effective: pd.DataFrame) -> pd.DataFrame:
    """P5: delimiter heads on effective attention, by its definition, over those on attention."""
    rows = effective[(effective["role"] == "delimiter") & (effective["n"] >= FEWEST)]
    if rows.empty:
        return not_applicable(SHORT)
    numbers = rows.set_index([*RUN, "map"])[["heads", "heads_low", "heads_high"]].astype(float)
    numbers = numbers.set_axis(ENDS, axis=1)
    on_attention = numbers["value"].xs(ATTENTION, level="map")
    shares = numbers.div(on_attention[on_attention > 0], axis=0).dropna().reset_index()
    return mean_by(shares[shares["map"].isin(DEFINITIONS)].replace({"map": DEFINITIONS}), "map")


def agreement_of_syntactic_labels(survival: pd.DataFrame, sinks: pd.DataFrame) -> pd.DataFrame:
    """P6: kappa of syntactic labels on attention with those on another map, mean over tasks and states."""
    rows = survival[(survival["role"] == "syntactic") & survival["map"].isin([EFFECTIVE, GLOBAL])]
    changed = sinks[(sinks["map"] == EFFECTIVE) & (sinks["changed"] > 0)].set_index(RUN).index
    rows = rows[(rows["map"] == GLOBAL) | rows.set_index(RUN).index.isin(changed)].dropna(subset="kappa")
    if rows.empty:
        return not_applicable("no syntactic head on any map")
    return mean_by(rows.rename(columns={"kappa": "value"}), "map").assign(control=0.0)
