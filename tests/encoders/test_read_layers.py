"""Every layer's attention is read; the pass stops when it has all of it, and faulty attention raises an error."""

import pytest
import torch
from torch import Tensor

from analysis.encoders import tap
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.tap import Reading, ValueReader, guard, read_layers
from analysis.texts.examples import Example

# Of two sequences one needs padding.
EXAMPLES = [Example("pair", "The old dog ran .", "It saw a red cat ."), Example("word", "Run")]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    """Three layers of four heads."""
    return load_encoder("tiny")


def collect(encoder: Encoder, **options) -> list[Tensor]:
    """The attention of all layers."""
    maps: dict[int, Tensor] = {}
    read_layers(encoder, layouts(encoder.tokenizer, EXAMPLES), maps.__setitem__, **options)
    assert [*maps] == [0, 1, 2]
    return [*maps.values()]


def spread(*shape: int) -> Tensor:
    return torch.ones(shape) / shape[-1]


def test_readings_in_bfloat16_are_in_float32():
    encoder, readings = load_encoder("tiny", precision="bfloat16"), []

    def read(layer: int, reading: Reading) -> None:
        assert torch.is_autocast_enabled("cpu") is False
        readings.append(reading)

    read_layers(encoder, layouts(encoder.tokenizer, EXAMPLES), ValueReader(read), check=True)
    for reading, attention in zip(readings, collect(encoder), strict=True):
        assert torch.equal(reading.weights, attention)
        assert {part.dtype for part in reading} == {torch.float32}
        torch.testing.assert_close(reading.context, reading.weights @ reading.values, atol=3e-2, rtol=1e-2)


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


def test_guard_watches_over_a_pass_whose_padding_is_attended_to(tiny, monkeypatch):
    def forget_the_mask(module, query, key, value, attention_mask, **options):
        return tap._active[id(module.config)].attend(module, query, key, value, None, **options)

    monkeypatch.setitem(tap.AttentionInterface._global_mapping, tap.NAME, forget_the_mask)
    with pytest.raises(RuntimeError, match="falls on padding"):
        collect(tiny, check=True)
