"""What each claim of Clark 2019 measures, from the tables of its notebooks; published values (see published.md)."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from analysis import tables
from analysis.papers.clark2019.coreference import AMONG
from analysis.statistics import claims
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import FIRST_THIRD, LAST_THIRD, MIDDLE_THIRD, cross_fitted, layers_within
from analysis.texts.dependencies import STANFORD

CLAIMS = claims.read_claims(Path(__file__).with_name("claims.yaml"))
ARCS = 100  # of a relation, for the accuracy of its best head
GAIN = {"value": "gain", "low": "gain_low", "high": "gain_high"}
OTHER = {"cls": "sep", "sep": "cls"}  # the special token that is not the sink


def attention_to_sink(layers: xr.Dataset, sinks: Sequence[str], own: bool = False) -> pd.DataFrame:
    """CL2, CL3: attention to the sink (`own`: of the sink itself) in the middle third of the layers.

    The control is the other special token. `layers` is the table `clark_layer_blocks` by block and layer, `sinks` as in
    `sink_name`.
    """
    columns = (f"{token}_{token}" if own else token for token in (sinks[0], OTHER[sinks[0]]))
    values = ({"": region_mean(layers, column, MIDDLE_THIRD)} for column in columns)
    return claims.over_blocks(*values).assign(token=claims.sink_name(sinks))


def change_with_depth(layers: xr.Dataset) -> pd.DataFrame:
    """CL4: attention to [CLS] in the first third of the layers minus the last, to full stops and commas the reverse."""
    cls, stops = (
        region_mean(layers, name, FIRST_THIRD) - region_mean(layers, name, LAST_THIRD)
        for name in ("cls", "punct")
    )
    return claims.over_blocks({"[CLS]": cls, "full stops and commas": -stops})


def distance_between_layers(gaps: pd.DataFrame) -> pd.DataFrame:
    """CL13: distance between heads of different layers minus that within layers; control: heads dealt at random."""
    return claims.over_blocks(*({"": gaps[name].to_numpy()} for name in ("gap", "shuffled")))


def gain_over_offset(relations: pd.DataFrame) -> pd.DataFrame:
    """CL7: accuracy of the best head minus that of the best fixed offset, by relation with ARCS arcs or more."""
    single = relations["relation"].isin(STANFORD) & (relations["relation"] != "all")
    return claims.of_table(relations[single & (relations["n"] >= ARCS)], "relation", **GAIN)


def best_head_of_all(relations: pd.DataFrame) -> pd.DataFrame:
    """CL8: accuracy of the best head over all arcs; the control is the best fixed offset."""
    return claims.of_table(
        relations[relations["relation"] == "all"], value="accuracy", control="offset_accuracy"
    )


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
    return claims.over_blocks(*sides)


def gradient_on_sink(
    layers: xr.Dataset, gradients: pd.DataFrame | None, sinks: Sequence[str]
) -> pd.DataFrame:
    """CL5: the gradient on the sink over that on words, mean of the layers where the sink gets most attention.

    Not applicable without gradients, which need a masked language model, and without such a layer.
    """
    sink, token = sinks[0], claims.sink_name(sinks)
    means = layers.mean("block")
    leads = (means[sink] > means[OTHER[sink]] + means["punct"]).values
    if gradients is None:
        reason = "no masked language model; for comparison another loss, in clark_classifier_gradients"
        return claims.not_applicable(reason).assign(token=token)
    if not leads.any():
        reason = "in no layer the sink gets more attention than the other special token, stops and commas"
        return claims.not_applicable(reason).assign(token=token)
    by_group = gradients.set_index(["block", "layer", "group"])["importance"].to_xarray().isel(layer=leads)
    ratio = (by_group.sel(group=sink) / by_group.sel(group="other")).mean("layer")
    return claims.over_blocks({"": ratio.values}).assign(token=token)


def entropy_gap(layers: xr.Dataset) -> pd.DataFrame:
    """CL6: mean entropy of the first third of the layers minus that of the middle third; the reason has layer 0."""
    middle = region_mean(layers, "entropy", MIDDLE_THIRD)
    first = layers["entropy"].isel(layer=0).values
    rows = claims.over_blocks({"": region_mean(layers, "entropy", FIRST_THIRD) - middle})
    return rows.assign(reason=f"layer 0 alone: {(first - middle).mean():+.2f} nats")


def gain_over_rule(readings: pd.DataFrame, rule: str) -> pd.DataFrame:
    """CL9, CL10: accuracy on the same anaphors of the head that chooses among all words, minus that of a rule.

    The gain among preceding mentions is the reference; the reason names the heads.
    """
    by_reading = readings[readings["system"] == rule].set_index("candidates")
    words, mentions = (by_reading.loc[name] for name in ("all_words", "preceding_mention_heads"))
    rows = claims.frame({"": tuple(words[[*GAIN.values()]])})
    named = ", ".join(
        f"head {row['layer']}-{row['head']} among {AMONG[row.name]}" for row in (words, mentions)
    )
    return claims.with_control(rows, {"": tuple(mentions[[*GAIN.values()]])}).assign(reason=named)


def probe_gain(probes: pd.DataFrame, control: str, random_layers: bool = False) -> pd.DataFrame:
    """CL11, CL12: accuracy of the probe of attention and words minus that of a control, t interval over seeds."""
    is_random = probes["encoder"].str.endswith(UNTRAINED)
    value, other = (
        probes[(probes["probe"] == name) & (is_random == random)].set_index("seed")["uas_no_punct"]
        for name, random in (("attention + words", False), (control, random_layers))
    )
    gains = (value - other).dropna()
    return claims.frame({"": mean_interval(gains.to_numpy())}, runs=len(gains))


COLUMN_NAMES = {  # columns of the surface table in words
    "previous": "previous token",
    "next": "next token",
    "most": "most attended token",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punct": "full stops and commas",
    "cls_cls": "[CLS] to [CLS]",
    "sep_sep": "[SEP] to [SEP]",
    "rest_sep": "other tokens to [SEP]",
    "self": "itself",
}
# Systems of Table 2; by its values, its nearest mention is the nearest on either side.
PRINTED_SYSTEMS = {"nearest, either side": "Nearest", "head match": "Head match", "rule-based": "Rule-based"}
PUBLISHED_HEAD = "BERT head 4-3"
UNTRAINED = "random layers"  # the end of the names of untrained encoders, and their name in Table 3


published = partial(tables.published, Path(__file__).parent)


def beside_dependencies(relations: pd.DataFrame, best_heads: pd.DataFrame) -> pd.DataFrame:
    """Accuracies in percent: of a `dependency_table`, of `best_heads` (same data), and in the authors' notebook."""
    result = relations[["accuracy", "offset_accuracy"]].set_axis(["held out", "offset"], axis=1)
    same_data = best_heads.set_index("relation")["accuracy"]
    result.insert(1, "same data", relations["relation"].map(same_data))
    bert_base = published("dependencies").set_index("relation")[["head", "accuracy", "offset_accuracy"]]
    bert_base = bert_base.reindex(relations["relation"].map(STANFORD)).reset_index(drop=True)
    return pd.concat([relations["relation"], 100 * result, bert_base.add_prefix("BERT-base ")], axis=1)


def beside_coreference(systems: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of Table 2 for each row of `clark_coreference`; the head of the paper stands beside every head."""
    names = systems["system"].map(PRINTED_SYSTEMS).mask(systems["layer"].notna(), PUBLISHED_HEAD)
    return published("coreference").set_index("system").reindex(names).set_index(systems.index) / 100


def beside_probes(means: pd.DataFrame) -> pd.Series:
    """The value of Table 3, in percent, for each row of `probe_means`; NaN for a probe that the paper lacks."""
    names = pd.DataFrame({
        "probe": means["probe"].str.replace("words", "GloVe"),
        "encoder": means["encoder"].mask(means["encoder"] != "none", "BERT-base"),
    })  # fmt: skip
    names["encoder"] = names["encoder"].mask(means["encoder"].str.endswith(UNTRAINED), UNTRAINED)
    return names.merge(published("probes"), how="left")["uas"].set_axis(means.index)
