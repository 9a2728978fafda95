"""Sentences say what the numbers are: other numbers, another sentence."""

import numpy as np
import pandas as pd

from analysis.papers.clark2019 import sentences
from analysis.papers.clark2019.published import specialists, surface_layers

HEADS = {"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1]}


def surface(**columns) -> pd.DataFrame:
    shares = {"cls": 0.2, "sep": 0.1, "punct": 0.05, "previous": 0.1, "next": 0.1, "entropy": 3.0}
    return pd.DataFrame(HEADS).assign(**shares | columns)


def test_most_attended():
    text = sentences.most_attended(surface(cls=[0.2, 0.2, 0.4, 0.6]), surface_layers())
    assert "this encoder attends most to [CLS] (35% on average, 50% in layer 1)" in text
    assert "BERT-base in the article to [SEP]" in text
    assert "attends most to [SEP] (90%" in sentences.most_attended(surface(sep=0.9), surface_layers())


def test_neighbour_heads():
    text = sentences.neighbour_heads(surface(previous=[0.6, 0.7, 0, 0]), 0.5, specialists())
    assert (
        "2 heads for the previous token (BERT-base: 4) and no heads for the next token (BERT-base: 5)" in text
    )


def test_missing_kinds():
    text = sentences.missing_kinds({"broad": (0, 1), "[CLS]": (2, 3), "[SEP]": None})
    assert text.startswith("The strongest heads (layer-head) are those for broad (0-1) and [CLS] (2-3).")
    assert "No head attends to [SEP] more" in text
    assert "No head" not in sentences.missing_kinds({"broad": (0, 1)})


def test_broadest_layer():
    text = sentences.broadest_layer(surface(entropy=[4, 3, 2, 1]), 4.8)
    assert text == (
        "Attention is broadest in layer 0 (3.5 of at most 4.8 nats) and narrowest in layer 1 (1.5 nats)."
    )


def test_gradient_ratios():
    slopes = pd.DataFrame({"layer": [0, 0, 0, 1, 1, 1], "group": ["cls", "sep", "other"] * 2,
                           "importance": [1, 2, 4, 3, 8, 4]})  # fmt: skip
    assert "for [CLS] 0.25 to 0.75 times and for [SEP] 0.50 to 2.00 times" in sentences.gradient_ratios(
        slopes
    )


def test_layers_alike():
    assert "of one layer are more alike than heads of two" in sentences.layers_alike(0.2, 0.3, 0.001)
    assert "are not shown to be more alike" in sentences.layers_alike(0.2, 0.3, 0.2)


def dependencies() -> pd.DataFrame:
    return pd.DataFrame(
        {"relation": ["obj", "det", "case"], "layer": [2, 0, 1], "head": [0, 1, 2], "accuracy": [0.75, 0.2, 0.6],
         "offset_accuracy": [0.36, 0.4, 0.5], "p_adjusted": [0.01, 0.01, 0.2]}
    )  # fmt: skip


def test_heads_against_offsets():
    text = sentences.heads_against_offsets(dependencies(), 0.05)
    assert text.startswith(
        "Of 3 relations the best head beats the best fixed offset in 1 and loses in 1; 1 are"
    )
    assert "that of obj: 75% against 36% (head 2-0)" in text
    assert "offset in 2" in sentences.heads_against_offsets(dependencies(), 0.5)


def test_linguistic_layers():
    heads = pd.DataFrame({"layer": [1, 2], "head": [4, 0], "finds": ["obj, det", "coreference"]})
    assert sentences.linguistic_layers(heads, surface()) == (
        "2 of 4 heads find a relation better than position does, or antecedents. They lie in layers 1 and 2; "
        "head 1-4 finds most (obj, det)."
    )
    assert "in layer 2; head 2-0" in sentences.linguistic_layers(heads[1:], surface())
    assert sentences.linguistic_layers(heads[:0], surface()).startswith("None of 4 heads")


def test_offsets_and_optimism():
    offsets = pd.DataFrame({"relation": ["det", "obj"], "offset": [1, -2], "accuracy": [0.6, 0.3]})
    text = sentences.best_offset(offsets)
    assert text.startswith("A fixed offset finds more than half of the arcs of 1 of 2 relations")
    assert "best for det (60%, 1 to the right)" in text
    assert "2 to the left" in sentences.best_offset(offsets.assign(accuracy=[0.1, 0.3]))
    compared = pd.DataFrame({"same_data": [70.0, 60.0, np.nan], "held_out": [68.0, 61.0, 5.0]})
    assert "by +0.5 points (median; from −1.0 to +2.0)" in sentences.optimism(compared)


def test_antecedents_found():
    systems = pd.DataFrame(
        {"system": ["nearest", "rule-based", "best head"], "all": [0.3, 0.7, 0.75], "low": [0.2, 0.6, 0.65],
         "high": [0.4, 0.8, 0.85], "n": 80, "layer": [None, None, 2], "head": [None, None, 4]}
    )  # fmt: skip
    text = sentences.antecedents_found(systems)
    assert text.startswith(
        "The best head (2-4) finds the antecedent of 75% of 80 anaphors, the best rule (rule-based) of 70%"
    )
    assert text.endswith("intervals overlap.")
    assert sentences.antecedents_found(systems.assign(low=[0.2, 0.6, 0.81])).endswith("do not overlap.")


def test_probes_compared():
    summary = pd.DataFrame(
        {"probe": ["attention", "right-branching", "attention"], "encoder": ["e", "none", "e, random layers"],
         "mean": [0.6, 0.3, 0.2]}
    )  # fmt: skip
    text = sentences.probes_compared(summary)
    assert text == (
        "The probe of attention attaches 60% of the words correctly, a right-branching tree 30%, "
        "the best probe on untrained layers 20%."
    )
    assert "untrained" not in sentences.probes_compared(summary[:2])
