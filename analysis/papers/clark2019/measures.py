"""The measures of the claims of Clark 2019, from the tables of its notebooks."""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.papers.clark2019.published import BOTH_HALVES, UNTRAINED
from analysis.statistics.claims import frame, not_applicable, of_table, over_blocks, read_claims
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import FIRST_THIRD, LAST_THIRD, MIDDLE_THIRD, layers_within, on_other_half

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
BLOCKS = ("neighbour_blocks", "layer_blocks", "gradient_blocks", "distance_blocks")
TABLES = (*BLOCKS, "dependencies", "coreference_readings", "probes")
ARCS = 100  # of a relation, for the accuracy of its best head
GAIN = {"value": "gain", "low": "gain_low", "high": "gain_high"}
FAIR = "preceding_mention_heads"  # the candidates of the head, as of the rules
OTHER = {"cls": "sep", "sep": "cls"}  # the special token that is not the sink


def measures(tables: Mapping[str, pd.DataFrame], sink: str) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `clark_<name>` of TABLES; `sink` is cls or sep."""
    layers, relations, probes = tables["layer_blocks"], tables["dependencies"], tables["probes"]
    gaps = tables["distance_blocks"]
    mean_of = partial(region_means, layers)  # column, region
    is_sum = relations["relation"].str.startswith("all")
    return {
        "CL1": attention_to_neighbours(tables["neighbour_blocks"]),
        "CL2": attention_to_sink(layers, sink),
        "CL3": attention_to_sink(layers, sink, from_itself=True),
        "CL4": over_blocks({
            "[CLS]": mean_of("cls", FIRST_THIRD) - mean_of("cls", LAST_THIRD),
            "full stops and commas": mean_of("punct", LAST_THIRD) - mean_of("punct", FIRST_THIRD),
        }),
        "CL5": gradient_on_sink(layers, tables["gradient_blocks"], sink),
        "CL6": over_blocks({"": mean_of("entropy", FIRST_THIRD) - mean_of("entropy", MIDDLE_THIRD)}),
        "CL7": of_table(relations[~is_sum & (relations["n"] >= ARCS)], "relation", **GAIN),
        "CL8": of_table(
            relations[relations["relation"] == "all"], value="accuracy", control="offset_accuracy"
        ),
        "CL9": gain_over_rule(tables["coreference_readings"], "head match"),
        "CL10": gain_over_rule(tables["coreference_readings"], "rule-based"),
        "CL11": probe_gain(probes, "distances + words"),
        "CL12": probe_gain(probes, "attention + words", random_layers=True),
        "CL13": over_blocks({"": gaps["gap"].to_numpy()}, {"": gaps["shuffled"].to_numpy()}),
    }  # fmt: skip


def region_means(
    layers: pd.DataFrame, column: str, region: tuple[Fraction, Fraction]
) -> Float[np.ndarray, " block"]:
    """The mean of a column over a region of the layers, for every block."""
    inside = layers_within(layers["layer"].nunique(), region)
    return layers[layers["layer"].isin(inside)].groupby("block")[column].mean().to_numpy()


def attention_to_neighbours(blocks: pd.DataFrame) -> pd.DataFrame:
    """CL1: attention to the previous, and to the next token, of the head that the other half of the blocks chooses."""

    def shares(encoder: str) -> dict[str, np.ndarray]:
        by_head = blocks[blocks["encoder"] == encoder].pivot(index="block", columns=["layer", "head"])
        return {f"{name} token": on_other_half(by_head[name].to_numpy()) for name in ("previous", "next")}

    return over_blocks(shares("pretrained"), control=shares("untrained"))


def attention_to_sink(layers: pd.DataFrame, sink: str, from_itself: bool = False) -> pd.DataFrame:
    """CL2, CL3: attention to the sink, of all tokens or of itself, in the middle third of the layers.

    The control is the other special token.
    """
    values, control = (
        region_means(layers, f"{token}_{token}" if from_itself else token, MIDDLE_THIRD)
        for token in (sink, OTHER[sink])
    )
    return over_blocks({"": values}, {"": control}).assign(token=f"[{sink.upper()}]")


def gradient_on_sink(layers: pd.DataFrame, gradients: pd.DataFrame, sink: str) -> pd.DataFrame:
    """CL5: the gradient on the sink over that on words, mean of the layers where the sink gets most attention."""
    means = layers.groupby("layer")[["cls", "sep", "punct"]].mean()
    leads = means.index[means[sink] > means.drop(columns=sink).sum(axis=1)]
    if leads.empty:
        return not_applicable(
            "in no layer the sink gets more attention than the other special token, stops and commas"
        )
    in_leads = gradients[gradients["layer"].isin(leads)]
    by_group = in_leads.pivot(index=["block", "layer"], columns="group", values="importance")
    ratio = (by_group[sink] / by_group["other"]).groupby("block").mean()
    return over_blocks({"": ratio.to_numpy()}).assign(token=f"[{sink.upper()}]")


def gain_over_rule(readings: pd.DataFrame, rule: str) -> pd.DataFrame:
    """CL9, CL10: accuracy of the best head minus that of a rule, on the same anaphors."""
    fair = (readings["candidates"] == FAIR) & (readings["scored_on"] == BOTH_HALVES)
    return of_table(readings[fair & (readings["system"] == rule)], **GAIN)


def probe_gain(probes: pd.DataFrame, control: str, random_layers: bool = False) -> pd.DataFrame:
    """CL11, CL12: accuracy of the probe of attention and words minus that of a control, t interval over seeds."""
    is_random = probes["encoder"].str.endswith(UNTRAINED)
    value, other = (
        probes[(probes["probe"] == name) & (is_random == random)].set_index("seed")["uas_no_punct"]
        for name, random in (("attention + words", False), (control, random_layers))
    )
    return frame({"": mean_interval((value - other).dropna().to_numpy())})
