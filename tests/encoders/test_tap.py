from contextlib import suppress

import pytest
import torch
from architectures import ARCHITECTURES, LAYERS, SIZES, build, projections
from torch import Tensor
from transformers import AutoModel, EuroBertConfig, PreTrainedModel

from analysis.encoders import tap as tap_module
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.prefixes import uniform_heads
from analysis.encoders.tap import Reading, ValueReader, guard, read_layers, tap
from analysis.texts.examples import Example

LENGTHS = (3, 40, 11)
READ = (*ARCHITECTURES, "camembert", "xlm-roberta", "albert", "modernbert", "deberta-v2")


def batch(model: PreTrainedModel, lengths: tuple[int, ...] = LENGTHS) -> dict[str, Tensor]:
    """Random tokens of very different lengths, padded to the longest."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 50, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": ids.masked_fill(mask == 0, model.config.pad_token_id or 0), "attention_mask": mask}


def run(model: PreTrainedModel, inputs: dict[str, Tensor], **options) -> Tensor:
    """The last hidden states of the real tokens."""
    with torch.inference_mode():
        return model(**inputs, **options).last_hidden_state[inputs["attention_mask"] == 1]


def eager(model: PreTrainedModel, inputs: dict[str, Tensor], **options):
    """The model's own answer under transformers' eager attention."""
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        return model(**inputs, **options)


def state(model: PreTrainedModel) -> tuple:
    hooks = [(name, len(m._forward_hooks), len(m._forward_pre_hooks)) for name, m in model.named_modules()]
    return model.config._attn_implementation, hooks, dict(tap_module._active), model.training


def agrees_with_eager(model: PreTrainedModel) -> None:
    """Hidden states and attention are those of transformers' eager attention, without any on padding."""
    inputs, read = batch(model), {}
    expected = eager(model, inputs, output_attentions=True)
    real = inputs["attention_mask"] == 1
    on_padding = real[:, None, :, None] & ~real[:, None, None]
    with tap(model, read=read.__setitem__):
        torch.testing.assert_close(run(model, inputs), expected.last_hidden_state[real], atol=1e-5, rtol=0)
    assert [*read] == [*range(LAYERS)]
    for layer, attention in enumerate(expected.attentions):
        torch.testing.assert_close(read[layer], attention, atol=1e-6, rtol=0)
        assert read[layer].masked_fill(~on_padding, 0).max() == 0


@pytest.mark.parametrize("architecture", READ)
def test_outputs_and_weights_equal_eager_attention_on_padded_batches(architecture: str):
    agrees_with_eager(build(architecture))


def test_heads_that_share_keys_and_values_equal_eager_attention():
    torch.manual_seed(0)
    sizes = SIZES | {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = AutoModel.from_config(EuroBertConfig(vocab_size=50, pad_token_id=1, **sizes)).eval()
    agrees_with_eager(model)
    with tap(model, ValueReader(lambda _, reading: shapes.append(reading.values.shape))):
        shapes: list[torch.Size] = []
        run(model, batch(model))
    assert {*shapes} == {(len(LENGTHS), 4, max(LENGTHS), 6)}


def test_dropout_while_training_is_that_of_eager_attention():
    model = build("bert")
    inputs = batch(model)
    model.train()
    torch.manual_seed(3)
    expected = eager(model, inputs).last_hidden_state
    torch.manual_seed(3)
    with tap(model), torch.inference_mode():
        result = model(**inputs).last_hidden_state
    torch.testing.assert_close(result, expected, atol=1e-6, rtol=0)
    assert not torch.allclose(result, eager(model.eval(), inputs).last_hidden_state, atol=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_model_is_as_before_after_success(architecture: str, implementation: str):
    model = build(architecture)
    model.set_attn_implementation(implementation)
    before, output = state(model), run(model, batch(model))
    with tap(model, read=lambda layer, weights: None):
        assert state(model) != before
        run(model, batch(model))
    assert state(model) == before
    assert torch.equal(run(model, batch(model)), output)


def test_an_exception_while_reading_leaves_the_model_as_before_and_layers_are_counted_again():
    model, layers = build("distilbert"), []
    before = state(model)

    def read(layer: int, weights: Tensor) -> None:
        layers.append(layer)
        if len(layers) in (1, LAYERS + 2):
            raise KeyError("stop")

    with suppress(KeyError), tap(model, read=read):
        with pytest.raises(KeyError):
            run(model, batch(model))
        for _ in range(2):
            run(model, batch(model))
    assert layers == [0, *range(LAYERS), 0]
    assert state(model) == before


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "modernbert"])
@pytest.mark.parametrize("lengths", [LENGTHS, (7, 7)], ids=["padded", "no padding"])
def test_uniform_heads_attend_equally_to_real_tokens(architecture: str, lengths: tuple[int, ...]):
    """The other heads keep their attention."""
    model, readings = build(architecture), {}
    inputs = batch(model, lengths)
    selected = torch.tensor([[True, False, True], [False, True, False]])
    with tap(model, ValueReader(readings.__setitem__), replace=uniform_heads(selected)):
        changed = run(model, inputs)
    assert (changed - run(model, inputs)).abs().max() > 1e-3
    uniform = inputs["attention_mask"] / torch.tensor(lengths)[:, None]
    for layer, reading in readings.items():
        weights = torch.where(selected[layer][:, None, None], uniform[:, None, None], reading.weights)
        torch.testing.assert_close(reading.context, weights @ reading.values, atol=1e-6, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_value_readers_see_what_enters_the_output_projection(architecture: str):
    """Attention times values times the gate, of which 0 switches a head off."""
    model, entered, readings, maps = build(architecture), [], {}, {}
    gate = torch.tensor([[1, 0, 0.5], [1, 1, 2.0]])
    for projection in projections(model):
        projection.register_forward_pre_hook(lambda _, arguments: entered.append(arguments[0]))
    for reader in (ValueReader(readings.__setitem__), maps.__setitem__):
        with tap(model, reader, gate):
            run(model, batch(model))
    assert [*readings] == [*maps] == [*range(LAYERS)]
    for (layer, reading), context in zip(readings.items(), entered[:LAYERS], strict=True):
        assert torch.equal(reading.weights, maps[layer])
        torch.testing.assert_close(reading.context.transpose(1, 2).flatten(2), context)
        expected = (reading.weights @ reading.values) * gate[layer][:, None, None]
        torch.testing.assert_close(reading.context, expected, atol=1e-6, rtol=1e-5)


# Of two sequences one needs padding.
EXAMPLES = [Example("pair", "The old dog ran .", "It saw a red cat ."), Example("word", "Run")]


def collect(encoder: Encoder, **options) -> list[Tensor]:
    maps: dict[int, Tensor] = {}
    read_layers(encoder, layouts(encoder.tokenizer, EXAMPLES), maps.__setitem__, **options)
    assert [*maps] == [0, 1, 2]
    return [*maps.values()]


def spread(*shape: int) -> Tensor:
    return torch.ones(shape) / shape[-1]


def test_the_rest_of_the_last_layer_is_not_run(tiny):
    run: list[int] = []
    hooks = [
        layer.intermediate.register_forward_hook(lambda *_, number=number: run.append(number))
        for number, layer in enumerate(tiny.model.encoder.layer)
    ]
    collect(tiny)
    for hook in hooks:
        hook.remove()
    assert run == [0, 1]


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
        return tap_module._active[id(module.config)].attend(module, query, key, value, None, **options)

    monkeypatch.setitem(tap_module.AttentionInterface._global_mapping, tap_module.NAME, forget_the_mask)
    with pytest.raises(RuntimeError, match="falls on padding"):
        collect(tiny, check=True)
