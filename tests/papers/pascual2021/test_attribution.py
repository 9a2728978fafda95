import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES, HEADS, LAYERS, SENTENCES, save
from torch.func import jvp, vmap

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.tap import ValueReader, read_layers
from analysis.papers.pascual2021 import attribution as module
from analysis.papers.pascual2021.attribution import STARTS, attributed, head_outputs
from analysis.texts.examples import Example

EXAMPLES = [Example("long", SENTENCES[0]), Example("short", "She ran .")]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def encoder(request, tmp_path_factory) -> Encoder:
    return load_encoder(save(request.param, tmp_path_factory.mktemp("checkpoints")))


@pytest.fixture
def sequence(tiny: Encoder) -> Layout:
    return layouts(tiny.tokenizer, EXAMPLES)[1]


def maps_of(encoder: Encoder, batch: list[Layout], source, check: bool = False) -> torch.Tensor:
    """The maps of a padded batch: (layer, sequence, head, token, token)."""
    result: list[torch.Tensor] = []
    source.prepare(encoder, batch)(batch, lambda _, maps: result.append(maps), check=check)
    return torch.stack(result)


@pytest.mark.parametrize("start", STARTS)
def test_exact_attribution_is_the_norm_of_finite_differences(encoder: Encoder, start: str):
    [short] = layouts(encoder.tokenizer, [Example("short", "She ran")])
    exact = Encoder(encoder.name, encoder.model.double(), encoder.tokenizer)
    try:
        result = attributed(exact, short, None, start=start)
        hidden, function = head_outputs(exact, [short], start)
        parts, _, tokens, width = hidden.shape
        places = torch.eye(tokens * width, dtype=hidden.dtype).view(-1, 1, 1, tokens, width)
        steps = 1e-5 * places.expand(-1, parts, -1, -1, -1)  # one number of one token at a time
        change = (vmap(function)(hidden + steps) - vmap(function)(hidden - steps)) / 2e-5
    finally:
        encoder.model.float()
    squares = change.square().sum(-1)[:, :, 0].unflatten(0, (tokens, width)).sum(1)  # token, layer, head, row
    norms = squares.movedim(0, -1).sqrt()
    expected = norms / norms.sum(-1, keepdim=True)
    assert result.shape == (LAYERS, HEADS, len(short), len(short))
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    "source", [module.attribution(2), module.local_attribution(2)], ids=["whole", "local"]
)
def test_a_sequence_alone_and_in_any_batch(tiny: Encoder, source):
    batch = layouts(tiny.tokenizer, EXAMPLES)
    together, alone = maps_of(tiny, batch, source, check=True), maps_of(tiny, batch[1:], source)
    size = len(batch[1])
    torch.testing.assert_close(together[:, 1, :, :size, :size], alone[:, 0], rtol=0, atol=1e-6)
    assert together[:, 1, :, :, size:].abs().max() == 0
    torch.testing.assert_close(together[:, 0].sum(-1), torch.ones(tiny.layers, tiny.heads, len(batch[0])))


def test_more_probes_come_closer_to_exact(tiny: Encoder):
    [sequence] = layouts(tiny.tokenizer, [Example("middle", "The dog saw the cat .")])
    exact = attributed(tiny, sequence, None)
    torch.testing.assert_close(attributed(tiny, sequence, 48, seed=3), exact, rtol=0, atol=1e-6)
    errors = [
        np.mean([(attributed(tiny, sequence, k, seed) - exact).abs().sum(-1).mean() / 2 for seed in range(3)])
        for k in (1, 8, 32)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 0.06  # total variation


def test_a_limit_of_memory_changes_nothing(tiny: Encoder, sequence, monkeypatch):
    whole = attributed(tiny, sequence, 3)
    monkeypatch.setattr(module, "MEMORY", 1)
    one_by_one = attributed(tiny, sequence, 3)
    torch.testing.assert_close(one_by_one, whole, rtol=0, atol=1e-6)


def batch_of(encoder: Encoder) -> list:
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


def test_a_layer_depends_on_its_own_part_alone(encoder: Encoder):
    hidden, function = head_outputs(encoder, batch_of(encoder), "layers")
    tangent = torch.zeros_like(hidden)
    tangent[1] = 1
    result = jvp(function, (hidden,), (tangent,))[1]
    assert result[0].abs().max() == 0 < result[1].abs().max()
