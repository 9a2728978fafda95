import numpy as np
import pandas as pd
import pytest

from analysis.papers.clark2019 import measures
from analysis.papers.clark2019.measures import CLAIMS
from analysis.statistics.claims import claim_table

LAYERS, BLOCKS = 6, 10
NOISE = np.linspace(-0.01, 0.01, BLOCKS)


def blocks(**columns: list[float]) -> pd.DataFrame:
    table = pd.DataFrame(list(np.ndindex(BLOCKS, LAYERS)), columns=["block", "layer"])
    for name in ("cls", "sep", "punct", "cls_cls", "sep_sep", "entropy"):
        table[name] = np.tile(columns.get(name, [0.1] * LAYERS), BLOCKS) + NOISE[table["block"]]
    return table


def neighbours(previous: float, following: float) -> pd.DataFrame:
    """Head 0-1 is the best for both tokens; in the untrained encoder no head attends to them."""
    rows = []
    for encoder, chance in (("pretrained", 1), ("untrained", 0.1)):
        for block, head in np.ndindex(BLOCKS, 2):
            shares = (chance * head * share + NOISE[block] for share in (previous, following))
            rows.append((encoder, block, 0, head, *shares))
    return pd.DataFrame(rows, columns=["encoder", "block", "layer", "head", "previous", "next"])


GRADIENTS = pd.DataFrame(
    [(block, layer, group, 0.2 if group == "sep" else 1 + NOISE[block])
     for block in range(BLOCKS) for layer in range(LAYERS) for group in ("cls", "sep", "punct", "other")],
    columns=["block", "layer", "group", "importance"],
)  # fmt: skip
TABLES = {
    "neighbour_blocks": neighbours(0.9, 0.8),
    "layer_blocks": blocks(
        sep=[0, 0, 0.6, 0.7, 0, 0], sep_sep=[0, 0, 0.95, 0.97, 0, 0], cls=[0.3, 0.3, 0, 0, 0, 0],
        punct=[0, 0, 0, 0, 0.2, 0.2], entropy=[4, 4, 2, 2, 2, 2],
    ),
    "gradient_blocks": GRADIENTS,
    "distance_blocks": pd.DataFrame({"block": range(BLOCKS), "gap": 0.2 + NOISE, "shuffled": NOISE}),
    "dependencies": pd.DataFrame({
        "relation": ["all", "obj", "det", "det+det:predet", "iobj"], "n": [900, 300, 200, 200, 50],
        "accuracy": [0.3, 0.8, 0.9, 1, 1], "low": [0.28, 0.7, 0.8, 1, 1], "high": [0.32, 0.9, 1, 1, 1],
        "offset_accuracy": [0.25, 0.4, 0.8, 0, 0], "gain": [0.05, 0.4, 0.1, 1, 1], "gain_low": [0, 0.3, 0.05, 1, 1],
        "gain_high": [0.1, 0.5, 0.15, 1, 1],
    }),
    "coreference_readings": pd.DataFrame({
        "candidates": ["all_words"] * 2 + ["preceding_mention_heads"] * 2, "system": ["head match", "rule-based"] * 2,
        "layer": 2, "head": [9, 9, 4, 4], "gain": [0.2, -0.02, 0.3, 0.1], "gain_low": [0.15, -0.04, 0.2, 0.05],
        "gain_high": [0.25, 0.0, 0.4, 0.15],
    }),
    "probes": pd.DataFrame(
        [(probe, encoder, seed, uas + seed / 1000) for seed in range(3) for probe, encoder, uas in
         (("attention + words", "x", 0.7), ("distances + words", "x", 0.6),
          ("attention + words", "x random layers", 0.4))],
        columns=["probe", "encoder", "seed", "uas_no_punct"],
    ),
}  # fmt: skip


def judged(*sinks: str, **tables: pd.DataFrame) -> pd.DataFrame:
    """The claims of the notebooks of Clark 2019, from the tables that they read."""
    tables, sinks = TABLES | tables, sinks or ("sep",)
    layers = tables["layer_blocks"].set_index(["block", "layer"]).to_xarray()
    readings, probes = tables["coreference_readings"], tables["probes"]
    return claim_table(CLAIMS, {
        "CL1": measures.attention_to_neighbours(tables["neighbour_blocks"]),
        "CL2": measures.attention_to_sink(layers, sinks),
        "CL3": measures.attention_to_sink(layers, sinks, own=True),
        "CL4": measures.change_with_depth(layers),
        "CL5": measures.gradient_on_sink(layers, tables["gradient_blocks"], sinks),
        "CL6": measures.entropy_gap(layers),
        "CL7": measures.gain_over_offset(tables["dependencies"]),
        "CL8": measures.best_head_of_all(tables["dependencies"]),
        "CL9": measures.gain_over_rule(readings, "head match"),
        "CL10": measures.gain_over_rule(readings, "rule-based"),
        "CL11": measures.probe_gain(probes, "distances + words"),
        "CL12": measures.probe_gain(probes, "attention + words", random_layers=True),
        "CL13": measures.distance_between_layers(tables["distance_blocks"]),
    }).set_index("claim")  # fmt: skip


def test_every_claim_is_supported_by_tables_that_support_it():
    table = judged()
    assert [*table.index] == [claim.id for claim in CLAIMS]
    values = [0.8, 0.65, 0.96, 0.2, 0.2, 2, 0.25, 0.3, 0.2, -0.02, 0.1, 0.3, 0.2]
    expected = {f"CL{number}": value for number, value in enumerate(values, 1)}
    assert table["estimate"].to_dict() == pytest.approx(expected, abs=0.001)
    assert table["verdict"].unique().tolist() == ["supported"]
    assert table.loc["CL7", "units"] == 2  # not the rare relation, all arcs, and arcs that det has already
    assert table.loc["CL9", "reason"] == "head 2-9 among all words, head 2-4 among preceding mentions"
    assert table.loc[["CL9", "CL10"], "reference"].tolist() == [0.3, 0.1]
    assert table.loc["CL6", "reason"].startswith("layer 0 alone: +2.00 nats")
    assert table["runs"].to_dict() == dict.fromkeys(expected, 0) | {"CL11": 3, "CL12": 3}
    assert table.loc[["CL1", "CL2", "CL8"], "control"].tolist() == pytest.approx([0.08, 0, 0.25], abs=0.001)


def test_claims_about_the_sink_read_the_token_that_is_the_sink():
    table = judged("cls")
    assert table.loc[["CL2", "CL3", "CL5"], "token"].tolist() == ["[CLS]"] * 3
    assert table.loc[["CL2", "CL3"], "verdict"].tolist() == ["not supported"] * 2
    # More than each of the other two, but not than both together: the sink does not lead.
    flat = judged("sep", layer_blocks=blocks(sep=[0.15] * LAYERS))
    assert flat.loc["CL5", ["verdict", "token"]].tolist() == ["not applicable", "[SEP]"]
    reason = judged(gradient_blocks=None).loc["CL5", "reason"]
    assert reason.startswith("no masked language model")


def test_the_choice_among_all_words_decides_about_coreference_and_the_other_is_in_the_row():
    readings = TABLES["coreference_readings"].copy()
    readings.loc[0, ["gain", "gain_low", "gain_high"]] = -0.07, -0.1, -0.04
    row = judged(coreference_readings=readings).loc["CL9"]
    assert row[["verdict", "estimate", "reference"]].tolist() == ["not supported", -0.07, 0.3]


def test_one_target_alone_does_not_support_both():
    assert judged(neighbour_blocks=neighbours(0.9, 0.2)).loc["CL1", "verdict"] == "mixed"
    assert judged(neighbour_blocks=neighbours(0.3, 0.2)).loc["CL1", "verdict"] == "not supported"
