"""Heads as a differentiable function, on four architectures against finite differences."""

import pytest
import torch
from architectures import ARCHITECTURES, LAYERS, SENTENCES, save
from torch.func import jvp, vmap

from analysis.encoders.derivatives import STARTS, head_outputs
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.tap import ValueReader, read_layers
from analysis.texts.examples import Example


@pytest.fixture(scope="module", params=ARCHITECTURES)
def encoder(request, tmp_path_factory) -> Encoder:
    return load_encoder(save(request.param, tmp_path_factory.mktemp("checkpoints")))


def batch_of(encoder: Encoder) -> list:
    """Two sequences, of which one needs padding."""
    return layouts(encoder.tokenizer, [Example(sentence, sentence) for sentence in SENTENCES[:2]])


@pytest.mark.parametrize("start", STARTS)
def test_at_its_own_hidden_states_the_function_gives_what_the_heads_give(encoder: Encoder, start: str):
    batch, expected = batch_of(encoder), []
    read_layers(encoder, batch, ValueReader(lambda _, reading: expected.append(reading.context)))
    hidden, function = head_outputs(encoder, batch, start)
    assert len(hidden) == (LAYERS if start == "layers" else 1)
    result = function(hidden)
    for number, sequence in enumerate(batch):
        size = len(sequence)
        torch.testing.assert_close(result[:, number, :, :size], torch.stack(expected)[:, number, :, :size])


@pytest.mark.parametrize("start", STARTS)
def test_derivatives_against_finite_differences(encoder: Encoder, start: str):
    """In float64, in a padded batch; inputs of one sequence do not affect the heads of another."""
    exact = Encoder(encoder.name, encoder.model.double(), encoder.tokenizer)
    try:
        hidden, function = head_outputs(exact, batch_of(encoder), start)
        tangent = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(0), dtype=hidden.dtype)
        tangent[:, 1] = 0
        result = vmap(lambda item: jvp(function, (hidden,), (item,))[1])(torch.stack([tangent, 2 * tangent]))
        step = 1e-5
        difference = (function(hidden + step * tangent) - function(hidden - step * tangent)) / (2 * step)
    finally:
        encoder.model.float()
    assert (result[0] - difference).abs().max() < 1e-7 * difference.abs().max()
    torch.testing.assert_close(result[1], 2 * result[0])
    assert result[0][:, 1].abs().max() == 0 < result[0][:, 0].abs().max()


def test_a_layer_depends_on_its_own_part_alone(encoder: Encoder):
    hidden, function = head_outputs(encoder, batch_of(encoder), "layers")
    tangent = torch.zeros_like(hidden)
    tangent[1] = 1
    result = jvp(function, (hidden,), (tangent,))[1]
    assert result[0].abs().max() == 0 < result[1].abs().max()
