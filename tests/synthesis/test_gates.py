"""Gates are learnt through the tap: the encoder stays as it was, planted heads are found."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, build_tiny, load_tokenizer
from analysis.encoders.tap import tap
from analysis.synthesis.gates import CLASSES, agreed, both_gates, gate_table, learn_gates
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples

LAYERS, HEADS = 3, 4


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    model = build_tiny(AutoModelForSequenceClassification, num_labels=2)
    return Encoder("tiny classifier", model.eval(), load_tokenizer("tiny"))


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return load_examples("sst-2", "bundled", "train", 96, 0)


def logits(encoder: Encoder, examples: list[Example], gate: torch.Tensor) -> torch.Tensor:
    sequences = layouts(encoder.tokenizer, examples)
    with torch.no_grad(), tap(encoder.model, gate=gate):
        return encoder.model(**encoder.inputs(sequences)).logits


def test_the_encoder_stays_as_it_was(encoder: Encoder, examples: list[Example]):
    before = encoder.model.state_dict(), encoder.model.config._attn_implementation
    weights = {name: value.clone() for name, value in before[0].items()}
    learn_gates(encoder, "sst-2", examples, 0.01, steps=2, batch_size=8)
    assert encoder.model.config._attn_implementation == before[1]
    assert all(torch.equal(value, weights[name]) for name, value in encoder.model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in encoder.model.parameters())


def test_a_planted_interfering_head_is_closed(encoder: Encoder, examples: list[Example]):
    """The labels are the answers of the encoder without one head: with it, the encoder is wrong more often."""
    places = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    alone = {}
    for place in places:
        gate = torch.ones(LAYERS, HEADS)
        gate[place] = 0
        alone[place] = logits(encoder, examples, gate)
    usual = logits(encoder, examples, torch.ones(LAYERS, HEADS)).argmax(-1)
    planted = max(places, key=lambda place: int((alone[place].argmax(-1) != usual).sum()))
    answers = alone[planted].argmax(-1).tolist()
    labelled = [replace(example, label=label) for example, label in zip(examples, answers, strict=True)]
    opened = learn_gates(encoder, "sst-2", labelled, -0.002, steps=80, batch_size=16)
    closed = learn_gates(encoder, "sst-2", labelled, 0.002, steps=80, batch_size=16)
    table = gate_table(opened, closed).set_index(["layer", "head"])
    assert table["interfering"].idxmax() == planted
    assert table.loc[planted, "gate_class"] == "interfering"
    assert (table["gate_class"] == "facilitating").any()


def test_gates_are_kept_and_the_run_goes_on(encoder: Encoder, examples: list[Example], tmp_path, monkeypatch):
    told = {"steps": 2, "batch_size": 4}
    first = both_gates(encoder, "sst-2", examples, tmp_path, seeds=[0], **told)
    made = []
    monkeypatch.setattr(
        "analysis.synthesis.gates.learn_gates", lambda *a, **o: made.append(1) or learn_gates(*a, **o)
    )
    table = both_gates(encoder, "sst-2", examples, tmp_path, seeds=[0, 1], **told)
    assert len(made) == 2  # the second seed's
    pd.testing.assert_frame_equal(table[table["gate_seed"] == 0], first)
    relabelled = [replace(example, label=1 - example.label) for example in examples]
    both_gates(encoder, "sst-2", relabelled, tmp_path, seeds=[0], **told)
    assert len(made) == 4


def test_shares_of_the_classes():
    opened, closed = np.array([[1.0, 0.9, 0.1]]), np.array([[0.9, 0.2, 0.0]])
    table = gate_table(opened, closed)
    assert table["gate_class"].tolist() == ["facilitating", "irrelevant", "interfering"]
    np.testing.assert_allclose(table[[*CLASSES]].sum(axis=1), 1)
    np.testing.assert_allclose(table["irrelevant"], [0.1, 0.72, 0.1])


def test_classes_that_seeds_disagree_on_are_mixed():
    parts = [gate_table(np.array([[0.9, first]]), np.array([[0.8, 0.1]])).assign(task="mrpc", seed=0, gate_seed=number)
             for number, first in enumerate((0.9, 0.2))]  # fmt: skip
    found = agreed(pd.concat(parts))
    assert found["gate_class"].tolist() == ["facilitating", "mixed"]
    assert found["seeds_agree"].tolist() == [True, False]
    np.testing.assert_allclose(found["opened"], [0.9, 0.55])
