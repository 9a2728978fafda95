"""The measures of the claims of Clark 2019, from the tables of its notebooks."""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from analysis.papers.clark2019.coreference import AMONG
from analysis.papers.clark2019.published import UNTRAINED
from analysis.statistics.claims import frame, not_applicable, of_table, over_blocks, read_claims, with_control
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import FIRST_THIRD, LAST_THIRD, MIDDLE_THIRD, cross_fitted, layers_within
from analysis.texts.dependencies import STANFORD

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
TABLES = "neighbour_blocks layer_blocks distance_blocks dependencies coreference_readings probes".split()
OPTIONAL = "gradient_blocks"  # of encoders that are masked language models
ARCS = 100  # of a relation, for the accuracy of its best head
GAIN = {"value": "gain", "low": "gain_low", "high": "gain_high"}
OTHER = {"cls": "sep", "sep": "cls"}  # the special token that is not the sink


def measures(tables: Mapping[str, pd.DataFrame], sink: str) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `clark_<name>` of TABLES; `sink` is cls or sep."""
    layers, relations, probes = tables["layer_blocks"], tables["dependencies"], tables["probes"]
    layers, gaps = layers.set_index(["block", "layer"]).to_xarray(), tables["distance_blocks"]
    mean_of = partial(region_mean, layers)  # column, region
    single = relations["relation"].isin(STANFORD) & (relations["relation"] != "all")
    return {
        "CL1": attention_to_neighbours(tables["neighbour_blocks"]),
        "CL2": attention_to_sink(layers, sink),
        "CL3": attention_to_sink(layers, sink, from_itself=True),
        "CL4": over_blocks({
            "[CLS]": mean_of("cls", FIRST_THIRD) - mean_of("cls", LAST_THIRD),
            "full stops and commas": mean_of("punct", LAST_THIRD) - mean_of("punct", FIRST_THIRD),
        }),
        "CL5": gradient_on_sink(layers, tables.get(OPTIONAL), sink),
        "CL6": entropy_gap(layers),
        "CL7": of_table(relations[single & (relations["n"] >= ARCS)], "relation", **GAIN),
        "CL8": of_table(
            relations[relations["relation"] == "all"], value="accuracy", control="offset_accuracy"
        ),
        "CL9": gain_over_rule(tables["coreference_readings"], "head match"),
        "CL10": gain_over_rule(tables["coreference_readings"], "rule-based"),
        "CL11": probe_gain(probes, "distances + words"),
        "CL12": probe_gain(probes, "attention + words", random_layers=True),
        "CL13": over_blocks({"": gaps["gap"].to_numpy()}, {"": gaps["shuffled"].to_numpy()}),
    }  # fmt: skip


def region_mean(
    layers: xr.Dataset, column: str, region: tuple[Fraction, Fraction]
) -> Float[np.ndarray, " block"]:
    """The mean of a column over a region of the layers, for every block."""
    return layers[column].isel(layer=layers_within(layers.sizes["layer"], region)).mean("layer").values


def attention_to_neighbours(blocks: pd.DataFrame) -> pd.DataFrame:
    """CL1: attention to the previous, and to the next token, of the head that the other half of the blocks chooses."""
    values = blocks.set_index(["encoder", "block", "layer", "head"]).to_xarray()
    sides = []
    for encoder in ("pretrained", "untrained"):
        side = values.sel(encoder=encoder)
        sides.append({f"{name} token": cross_fitted(side[name].values) for name in ("previous", "next")})
    return over_blocks(*sides)


def attention_to_sink(layers: xr.Dataset, sink: str, from_itself: bool = False) -> pd.DataFrame:
    """CL2, CL3: attention to the sink, of all tokens or of itself, in the middle third of the layers.

    The control is the other special token.
    """
    values, control = (
        region_mean(layers, f"{token}_{token}" if from_itself else token, MIDDLE_THIRD)
        for token in (sink, OTHER[sink])
    )
    return over_blocks({"": values}, {"": control}).assign(token=f"[{sink.upper()}]")


def gradient_on_sink(layers: xr.Dataset, gradients: pd.DataFrame | None, sink: str) -> pd.DataFrame:
    """CL5: the gradient on the sink over that on words, mean of the layers where the sink gets most attention.

    Not applicable without gradients, which need a masked language model, and without such a layer.
    """
    token, means = f"[{sink.upper()}]", layers.mean("block")
    leads = (means[sink] > means[OTHER[sink]] + means["punct"]).values
    if gradients is None:
        return not_applicable("the encoder is no masked language model").assign(token=token)
    if not leads.any():
        reason = "in no layer the sink gets more attention than the other special token, stops and commas"
        return not_applicable(reason).assign(token=token)
    by_group = gradients.set_index(["block", "layer", "group"])["importance"].to_xarray().isel(layer=leads)
    ratio = (by_group.sel(group=sink) / by_group.sel(group="other")).mean("layer")
    return over_blocks({"": ratio.values}).assign(token=token)


def entropy_gap(layers: xr.Dataset) -> pd.DataFrame:
    """CL6: mean entropy of the first third of the layers minus that of the middle third; the reason has layer 0."""
    middle = region_mean(layers, "entropy", MIDDLE_THIRD)
    first = layers["entropy"].isel(layer=0).values
    rows = over_blocks({"": region_mean(layers, "entropy", FIRST_THIRD) - middle})
    return rows.assign(reason=f"layer 0 alone: {(first - middle).mean():+.2f} nats")


def gain_over_rule(readings: pd.DataFrame, rule: str) -> pd.DataFrame:
    """CL9, CL10: accuracy on the same anaphors of the head that chooses among all words, minus that of a rule.

    The gain among preceding mentions is the reference; the reason names the heads.
    """
    by_reading = readings[readings["system"] == rule].set_index("candidates")
    words, mentions = (by_reading.loc[name] for name in ("all_words", "preceding_mention_heads"))
    rows = frame({"": tuple(words[[*GAIN.values()]])})
    named = ", ".join(
        f"head {row['layer']}-{row['head']} among {AMONG[row.name]}" for row in (words, mentions)
    )
    return with_control(rows, {"": tuple(mentions[[*GAIN.values()]])}).assign(reason=named)


def probe_gain(probes: pd.DataFrame, control: str, random_layers: bool = False) -> pd.DataFrame:
    """CL11, CL12: accuracy of the probe of attention and words minus that of a control, t interval over seeds."""
    is_random = probes["encoder"].str.endswith(UNTRAINED)
    value, other = (
        probes[(probes["probe"] == name) & (is_random == random)].set_index("seed")["uas_no_punct"]
        for name, random in (("attention + words", False), (control, random_layers))
    )
    gains = (value - other).dropna()
    return frame({"": mean_interval(gains.to_numpy())}, runs=len(gains))
