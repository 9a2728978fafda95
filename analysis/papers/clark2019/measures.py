"""What each claim of Clark 2019 measures: a frame of units from the tables of its notebooks."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.papers.clark2019.published import BOTH_HALVES, UNTRAINED
from analysis.statistics.claims import frame, not_applicable, of_table, over_blocks, read_claims
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import FIRST_THIRD, LAST_THIRD, MIDDLE_THIRD, layers_within, on_other_half

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
BLOCKS = ("neighbour_blocks", "layer_blocks", "gradient_blocks", "distance_blocks")
TABLES = (*BLOCKS, "dependencies", "coreference_readings", "probes")
ARCS = 100  # of a relation, for the accuracy of its best head
GAIN = {"value": "gain", "low": "gain_low", "high": "gain_high"}
FAIR = "preceding_mention_heads"  # what the head that finds antecedents chooses among
Tables = Mapping[str, pd.DataFrame]


def measures(tables: Tables, sink: str) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `clark_<name>` of TABLES; `sink` is cls or sep."""
    layers, other = tables["layer_blocks"], {"cls": "sep", "sep": "cls"}[sink]
    middle = partial(region_means, layers, region=MIDDLE_THIRD)
    token = f"[{sink.upper()}]"
    return {
        "CL1": neighbours(tables["neighbour_blocks"]),
        "CL2": over_blocks({"": middle(sink)}, {"": middle(other)}).assign(token=token),
        "CL3": over_blocks({"": middle(f"{sink}_{sink}")}, {"": middle(f"{other}_{other}")}).assign(
            token=token
        ),
        "CL4": first_and_last_targets(layers),
        "CL5": gradients_of_sink(layers, tables["gradient_blocks"], sink).assign(token=token),
        "CL6": over_blocks({"": region_means(layers, "entropy", FIRST_THIRD) - middle("entropy")}),
        "CL7": relations(tables["dependencies"]),
        "CL8": overall(tables["dependencies"]),
        "CL9": antecedents(tables["coreference_readings"], "head match"),
        "CL10": antecedents(tables["coreference_readings"], "rule-based"),
        "CL11": probes_differ(tables["probes"], "distances + words"),
        "CL12": probes_differ(tables["probes"], UNTRAINED),
        "CL13": over_blocks(
            {"": tables["distance_blocks"]["gap"].to_numpy()},
            {"": tables["distance_blocks"]["dealt"].to_numpy()},
        ),
    }


def region_means(layers: pd.DataFrame, column: str, region: tuple) -> np.ndarray:
    """The mean of a column over a region of the layers, for every block."""
    inside = layers_within(layers["layer"].nunique(), region)
    return layers[layers["layer"].isin(inside)].groupby("block")[column].mean().to_numpy()


def neighbours(blocks: pd.DataFrame) -> pd.DataFrame:
    """CL1: attention to the previous, and to the next token, of the head that the other half of the blocks chooses."""
    units: dict[str, dict[str, np.ndarray]] = {"pretrained": {}, "untrained": {}}
    for encoder, part in blocks.groupby("encoder", sort=False):
        for name in ("previous", "next"):
            by_head = part.pivot(index="block", columns=["layer", "head"], values=name).to_numpy()
            units[encoder][f"{name} token"] = on_other_half(by_head)
    return over_blocks(units["pretrained"], units["untrained"])


def first_and_last_targets(layers: pd.DataFrame) -> pd.DataFrame:
    """CL4: attention to [CLS] in the first third minus the last, and the reverse for full stops and commas."""
    cls, punct = (
        region_means(layers, column, FIRST_THIRD) - region_means(layers, column, LAST_THIRD)
        for column in ("cls", "punct")
    )
    return over_blocks({"[CLS]": cls, "full stops and commas": -punct})


def gradients_of_sink(layers: pd.DataFrame, gradients: pd.DataFrame, sink: str) -> pd.DataFrame:
    """CL5: gradients on the sink over those on words, mean of the layers where it leads all marks together."""
    means = layers.groupby("layer")[["cls", "sep", "punct"]].mean()
    leads = means.index[means[sink] > means.drop(columns=sink).sum(axis=1)]
    if leads.empty:
        return not_applicable(
            "in no layer the sink gets more attention than the other special token, stops and commas"
        )
    wide = gradients[gradients["layer"].isin(leads)].pivot(
        index=["block", "layer"], columns="group", values="importance"
    )
    ratio = (wide[sink] / wide["other"]).groupby("block").mean()
    return over_blocks({"": ratio.to_numpy()})


def relations(dependencies: pd.DataFrame) -> pd.DataFrame:
    """CL7: accuracy of the best head minus that of the best offset, by relation."""
    single = ~dependencies["relation"].str.startswith("all")
    return of_table(dependencies[single & (dependencies["n"] >= ARCS)], "relation", **GAIN)


def overall(dependencies: pd.DataFrame) -> pd.DataFrame:
    """CL8: accuracy of the best head over all arcs; the control is the best offset."""
    return of_table(
        dependencies[dependencies["relation"] == "all"], value="accuracy", control="offset_accuracy"
    )


def antecedents(coreference: pd.DataFrame, rule: str) -> pd.DataFrame:
    """CL9, CL10: accuracy of the best head minus that of a rule, on the same anaphors."""
    chosen = (coreference["candidates"] == FAIR) & (coreference["scored_on"] == BOTH_HALVES)
    return of_table(coreference[chosen & (coreference["system"] == rule)], **GAIN)


def probes_differ(probes: pd.DataFrame, other: str) -> pd.DataFrame:
    """CL11, CL12: accuracy of the probe of attention and words minus that of another, or of itself on random layers."""
    untrained = probes["encoder"].str.endswith(UNTRAINED)
    full = probes["probe"] == "attention + words"
    second = full & untrained if other == UNTRAINED else (probes["probe"] == other) & ~untrained
    one, two = (probes[rows].set_index("seed")["uas_no_punct"] for rows in (full & ~untrained, second))
    return frame({"": mean_interval((one - two).dropna().to_numpy())})
