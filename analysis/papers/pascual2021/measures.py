"""What each claim on attention and attribution measures, from the tables of the notebooks (no torch)."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from analysis.statistics.claims import not_applicable, of_table, read_claims

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
# The words of the tables.
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
        "P1": by_task(tables["discrepancy"], JSD),
        "P2": by_task(tables["discrepancy"], SHARE),
        "P4": persisting(tables["persistence"], tables["patterns"]),
        "P5": vanishing(tables["effective"]),
        "P6": surviving(tables["survival"], tables["sinks"]),
    }


def by_task(discrepancy: pd.DataFrame, measure: str) -> pd.DataFrame:
    """P1, P2: a measure of attention and attribution, mean over the layers from 1 on and over both states."""
    rows = discrepancy[(discrepancy["pair"] == WHOLE) & (discrepancy["measure"] == measure)]
    rows = rows[rows["head"].isna() & (rows["layer"] > 0) & (rows["tokens"] == "all")]
    return of_table(rows.groupby("task", sort=False)[ENDS].mean().reset_index(), "task")


def persisting(persistence: pd.DataFrame, patterns: pd.DataFrame) -> pd.DataFrame:
    """P4: of the pattern that most heads show on attribution, the share of heads in the layer that has fewest."""
    if persistence.empty:
        return not_applicable("no attribution")
    found = persistence.groupby([*RUN, "pattern"], sort=False)
    weakest = found[["weakest", "low", "high"]].first() / (patterns["head"].max() + 1)
    most = found["attribution"].sum().groupby(level=RUN, sort=False).idxmax()
    shares = weakest.loc[most].groupby("task", sort=False).mean().reset_index()
    return of_table(shares, "task", "weakest").assign(control=0.0)


def vanishing(effective: pd.DataFrame, role: str = "delimiter") -> pd.DataFrame:
    """P5: the heads with the role on effective attention over those on attention, mean over both states."""
    rows = effective[(effective["role"] == role) & (effective["n"] >= FEWEST)]
    if rows.empty:
        return not_applicable(SHORT)
    wide = rows.astype({"heads": float}).set_index([*RUN, "map"]).unstack("map")
    wide = wide[wide["heads"][ATTENTION].fillna(0) > 0]
    columns = {"value": "heads", "low": "heads_low", "high": "heads_high"}
    shares = {name: wide[column][EFFECTIVE] / wide["heads"][ATTENTION] for name, column in columns.items()}
    shares |= {
        name: wide[column][EFFECTIVE_SUM] / wide["heads"][ATTENTION]
        for name, column in zip(("control", "control_low", "control_high"), columns.values(), strict=True)
    }
    means = pd.DataFrame(shares).groupby("task", sort=False).mean().reset_index()
    controls = {name: name for name in ("control", "control_low", "control_high")}
    return (
        of_table(means, "task", **controls) if len(means) else not_applicable(f"no {role} head on attention")
    )


def surviving(survival: pd.DataFrame, sinks: pd.DataFrame, role: str = "syntactic") -> pd.DataFrame:
    """P6: kappa of the labels of a role on attention with those on another map, mean over tasks and states."""
    rows = survival[(survival["role"] == role) & survival["map"].isin([EFFECTIVE, GLOBAL])].dropna(
        subset="kappa"
    )
    changed = sinks[(sinks["map"] == EFFECTIVE) & (sinks["changed"] > 0)].set_index(RUN).index
    rows = rows[(rows["map"] == GLOBAL) | rows.set_index(RUN).index.isin(changed)]
    if rows.empty:
        return not_applicable(f"no {role} head on any map")
    means = rows.groupby("map", sort=False)[["kappa", "low", "high"]].mean().reset_index()
    return of_table(means.replace({"map": {GLOBAL: "attribution"}}), "map", "kappa").assign(control=0.0)
