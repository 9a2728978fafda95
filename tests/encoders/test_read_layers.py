"""Every layer's attention is read; the pass stops when it has all of it, and faulty attention raises an error."""

import pytest
import torch
from torch import Tensor

from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.tap import Reading, ValueReader, guard, read_layers
from analysis.texts.examples import Example

EXAMPLES = [Example("pair", "The old dog ran .", "It saw a red cat ."), Example("word", "Run")]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    """Three layers of four heads."""
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def batch(tiny) -> list:
    """Two sequences, of which one needs padding."""
    return layouts(tiny.tokenizer, EXAMPLES)


def collect(encoder: Encoder, batch: list, **options) -> list[Tensor]:
    maps: list[Tensor] = []
    read_layers(encoder, batch, lambda layer, attention: maps.append((layer, attention)), **options)
    assert [layer for layer, _ in maps] == [0, 1, 2]
    return [attention for _, attention in maps]


def spread(*shape: int) -> Tensor:
    return torch.ones(shape) / shape[-1]


def test_the_rest_of_the_last_layer_is_not_run(tiny, batch):
    run: list[int] = []
    hooks = [
        layer.intermediate.register_forward_hook(lambda *_, number=number: run.append(number))
        for number, layer in enumerate(tiny.model.encoder.layer)
    ]
    collect(tiny, batch)
    for hook in hooks:
        hook.remove()
    assert run == [0, 1]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_value_vectors_are_read_with_the_attention(batch, precision: str):
    encoder, result = load_encoder("tiny", precision=precision), []

    def read(layer: int, reading: Reading) -> None:
        assert torch.is_autocast_enabled("cpu") is False
        result.append((layer, reading, reading.weights @ reading.values))

    read_layers(encoder, batch, ValueReader(read), check=True)
    assert [layer for layer, *_ in result] == [0, 1, 2]
    for (_, reading, context), attention in zip(result, collect(encoder, batch), strict=True):
        assert torch.equal(reading.weights, attention)
        assert {part.dtype for part in reading} == {torch.float32}
        torch.testing.assert_close(
            reading.context, context, atol=1e-5 if precision == "float32" else 3e-2, rtol=1e-2
        )


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (spread(2, 4, 3, 3), "falls on padding"),
        (spread(2, 3, 3, 3), r"shape \(2, 3, 3, 3\), expected \(2, 4, 3, 3\)"),
        (spread(2, 4, 3, 3) * 1.01, "do not sum to 1"),
        (torch.full((2, 4, 3, 3), torch.nan), "do not sum to 1"),
    ],
)
def test_guard_stops_what_is_not(tiny, attention: Tensor, message: str):
    with pytest.raises(RuntimeError, match=message):
        guard(attention, tiny, torch.tensor([[1, 1, 1], [1, 1, 0]]))


def test_guard_watches_over_a_pass_whose_padding_is_attended_to(tiny, batch, monkeypatch):
    from analysis.encoders import tap

    def forget_the_mask(module, query, key, value, attention_mask, **options):
        return tap._active[id(module.config)].attend(module, query, key, value, None, **options)

    monkeypatch.setitem(tap.AttentionInterface._global_mapping, tap.NAME, forget_the_mask)
    with pytest.raises(RuntimeError, match="falls on padding"):
        collect(tiny, batch, check=True)
