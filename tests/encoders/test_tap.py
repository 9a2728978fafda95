"""The tap agrees with eager attention, reads its weights, applies changes, and leaves the model as it was."""

from collections.abc import Callable

import pytest
import torch
from architectures import ARCHITECTURES, HEADS, LAYERS, build, projections
from torch import Tensor
from transformers import (
    AlbertConfig,
    AlbertModel,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)

from analysis.encoders import tap as tap_module
from analysis.encoders.models import build_tiny
from analysis.encoders.tap import Reading, ValueReader, tap, uniform_heads

LENGTHS = (3, 40, 11)


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
    """Everything that the tap may change."""
    hooks = [(name, len(m._forward_hooks), len(m._forward_pre_hooks)) for name, m in model.named_modules()]
    return model.config._attn_implementation, hooks, dict(tap_module._active), model.training


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_outputs_and_weights_equal_eager_attention_on_padded_batches(architecture: str):
    model, read = build(architecture), {}
    inputs = batch(model)
    expected = eager(model, inputs, output_attentions=True)
    with tap(model, read=lambda layer, weights: read.setdefault(layer, weights)):
        found = run(model, inputs)
    torch.testing.assert_close(
        found, expected.last_hidden_state[inputs["attention_mask"] == 1], atol=1e-6, rtol=0
    )
    assert list(read) == list(range(LAYERS))
    for layer, attention in enumerate(expected.attentions):
        assert read[layer].shape == (len(LENGTHS), HEADS, max(LENGTHS), max(LENGTHS))
        torch.testing.assert_close(read[layer], attention, atol=1e-6, rtol=0)
        assert read[layer].transpose(1, 3)[inputs["attention_mask"] == 0].abs().max() == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padding_does_not_reach_the_short_sequences(architecture: str):
    model = build(architecture)
    with tap(model):
        padded = run(model, batch(model))
        alone = run(model, {name: column[:1, : LENGTHS[0]] for name, column in batch(model).items()})
    torch.testing.assert_close(padded[: LENGTHS[0]], alone, atol=1e-5, rtol=0)


def test_dropout_while_training_is_that_of_eager_attention():
    model = build("bert")
    inputs = batch(model)
    model.train()
    torch.manual_seed(3)
    expected = eager(model, inputs).last_hidden_state
    torch.manual_seed(3)
    with tap(model), torch.inference_mode():
        found = model(**inputs).last_hidden_state
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert not torch.allclose(found, eager(model.eval(), inputs).last_hidden_state, atol=1e-3)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_model_is_as_before_after_success(architecture: str, implementation: str):
    model = build(architecture)
    model.set_attn_implementation(implementation)
    before, output = state(model), run(model, batch(model))
    assert before[0] == implementation
    with tap(model, read=lambda layer, weights: None):
        assert state(model) != before
        run(model, batch(model))
    assert state(model) == before
    assert torch.equal(run(model, batch(model)), output)


def test_model_is_as_before_after_an_exception_while_reading():
    def read(layer: int, weights: Tensor) -> None:
        if layer == 1:
            raise KeyError("stop")

    model = build("bert")
    before = state(model)
    with pytest.raises(KeyError, match="stop"), tap(model, read=read):
        run(model, batch(model))
    assert state(model) == before


def test_layers_are_counted_anew_after_a_forward_pass_that_stopped_halfway():
    model, seen = build("distilbert"), []

    def read(layer: int, weights: Tensor) -> None:
        seen.append(layer)
        if len(seen) == 1:
            raise KeyError("stop")

    with tap(model, read=read):
        with pytest.raises(KeyError):
            run(model, batch(model))
        run(model, batch(model))
        run(model, batch(model))
    assert seen == [0, *range(LAYERS), *range(LAYERS)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gate_of_ones_changes_nothing(architecture: str):
    model = build(architecture)
    expected = run(model, batch(model))
    with tap(model):
        ungated = run(model, batch(model))
    with tap(model, gate=torch.ones(LAYERS, HEADS)):
        found = run(model, batch(model))
    assert torch.equal(found, ungated)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def zero_columns(head: int, size: int) -> Callable:
    """A hook that blanks one head's columns of what enters an output projection."""

    def hook(module: torch.nn.Module, arguments: tuple[Tensor]) -> tuple[Tensor]:
        columns = torch.arange(arguments[0].shape[-1]) // size == head
        return (arguments[0].masked_fill(columns, 0),)

    return hook


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("layer", "head"), [(0, 2), (1, 0)])
def test_closed_gate_equals_blank_columns_before_the_output_projection(
    architecture: str, layer: int, head: int
):
    model = build(architecture)
    inputs, gate = batch(model), torch.ones(LAYERS, HEADS)
    gate[layer, head] = 0
    with tap(model, gate=gate):
        found = run(model, inputs)
    assert (found - run(model, inputs)).abs().max() > 1e-3
    assert len(projections(model)) == LAYERS
    handle = projections(model)[layer].register_forward_pre_hook(zero_columns(head, 24 // HEADS))
    expected = run(model, inputs)
    handle.remove()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_gradient_of_a_gate_is_the_slope_of_the_output():
    model = build("bert").double()
    inputs, weights = (
        batch(model),
        torch.randn(24, dtype=torch.float64, generator=torch.Generator().manual_seed(1)),
    )

    def output(gate: Tensor) -> Tensor:
        with tap(model, gate=gate):
            return (model(**inputs).last_hidden_state[:, 0] @ weights).sum()

    gate, step = torch.ones(LAYERS, HEADS, dtype=torch.float64, requires_grad=True), 1e-3
    output(gate).backward()
    for layer, head in [(0, 1), (1, 2)]:
        moved = torch.zeros(LAYERS, HEADS, dtype=torch.float64)
        moved[layer, head] = step
        with torch.no_grad():
            slope = (output(gate + moved) - output(gate - moved)) / (2 * step)
        torch.testing.assert_close(gate.grad[layer, head], slope, rtol=1e-3, atol=1e-5)


def test_classifier_is_tapped_as_its_encoder_is():
    model, seen = build_tiny(AutoModelForSequenceClassification, num_labels=2).eval(), []
    inputs = batch(model)
    with torch.inference_mode():
        expected = model(**inputs).logits
        with tap(model, read=lambda layer, weights: seen.append(layer)):
            found = model(**inputs).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert seen == [0, 1, 2]


def gated(model: PreTrainedModel, gate: Tensor) -> Tensor:
    with tap(model, gate=gate):
        return run(model, batch(model))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_sequence_may_have_its_own_gate(architecture: str):
    """A sequence with its own gate gives the same answer as in a batch where all have that gate."""
    model = build(architecture)
    gates = torch.rand(len(LENGTHS), LAYERS, HEADS, generator=torch.Generator().manual_seed(2)).round()
    assert not torch.equal(gates[0], gates[1])
    found = gated(model, gates).split(LENGTHS)
    for index, own in enumerate(found):
        torch.testing.assert_close(own, gated(model, gates[index]).split(LENGTHS)[index], atol=1e-6, rtol=0)
    assert torch.equal(gated(model, torch.ones_like(gates)), gated(model, torch.ones(LAYERS, HEADS)))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_its_own_attention_in_the_place_of_a_head_changes_nothing(architecture: str):
    model = build(architecture)
    with tap(model):
        expected = run(model, batch(model))
    with tap(model, replace=lambda layer, weights, real: weights):
        assert torch.equal(run(model, batch(model)), expected)
    with tap(model, replace=uniform_heads(torch.zeros(LAYERS, HEADS, dtype=torch.bool))):
        assert torch.equal(run(model, batch(model)), expected)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("lengths", [LENGTHS, (7, 7)], ids=["padded", "no padding"])
def test_uniform_heads_attend_to_real_tokens_alike(architecture: str, lengths: tuple[int, ...]):
    """Rows sum to 1, with nothing on padding; other heads keep their attention; the values are weighted by it."""
    model, used, readings = build(architecture), [], []
    inputs = batch(model, lengths)
    chosen = torch.tensor([[True, False, True], [False, True, False]])
    replace = uniform_heads(chosen)

    def keep(layer: int, weights: Tensor, real: Tensor) -> Tensor:
        assert torch.equal(real, inputs["attention_mask"] == 1)
        used.append(replace(layer, weights, real))
        return used[-1]

    with tap(model, read=ValueReader(lambda layer, reading: readings.append(reading)), replace=keep):
        changed = run(model, inputs)
    assert (changed - run(model, inputs)).abs().max() > 1e-3
    for layer, (attention, reading) in enumerate(zip(used, readings, strict=True)):
        torch.testing.assert_close(attention.sum(-1), torch.ones(attention.shape[:3]), atol=1e-6, rtol=0)
        assert attention.transpose(1, 3)[inputs["attention_mask"] == 0].abs().sum() == 0
        assert torch.equal(attention[:, ~chosen[layer]], reading.weights[:, ~chosen[layer]])
        for index, length in enumerate(lengths):
            torch.testing.assert_close(
                reading.context[index, chosen[layer]],
                reading.values[index, chosen[layer], :length].mean(1, keepdim=True).expand(-1, max(lengths), -1),
                atol=1e-6, rtol=0,
            )  # fmt: skip


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_value_readers_see_what_enters_the_output_projection(architecture: str):
    model, entered, readings, read = build(architecture), [], [], []
    inputs, gate = batch(model), torch.tensor([[1, 0, 0.5], [1, 1, 2.0]])
    handles = [
        each.register_forward_pre_hook(lambda _, found: entered.append(found[0]))
        for each in projections(model)
    ]
    with tap(model, ValueReader(lambda layer, reading: readings.append((layer, reading))), gate):
        run(model, inputs)
    with tap(model, lambda layer, weights: read.append(weights), gate):
        run(model, inputs)
    for handle in handles:
        handle.remove()
    assert [layer for layer, _ in readings] == list(range(LAYERS))
    for (layer, reading), context, weights in zip(readings, entered[:LAYERS], read, strict=True):
        assert isinstance(reading, Reading)
        assert reading.values.shape == (len(LENGTHS), HEADS, max(LENGTHS), 24 // HEADS)
        assert torch.equal(reading.weights, weights)
        heads = reading.context.transpose(1, 2)
        torch.testing.assert_close(heads.flatten(2), context)
        expected = (reading.weights @ reading.values) * gate[layer][:, None, None]
        torch.testing.assert_close(reading.context, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layers_called_one_by_one_are_counted_from_where_they_start(architecture: str):
    model, inputs_of = build(architecture), []
    layers = next(
        each for each in model.modules() if isinstance(each, torch.nn.ModuleList) and len(each) == LAYERS
    )
    handle = layers[1].register_forward_pre_hook(lambda _, found: inputs_of.append(found))
    gate = torch.tensor([[0, 0, 0], [1, 0, 1.0]])
    with tap(model, gate=gate) as tapped:
        expected = run(model, batch(model))
        with torch.inference_mode():
            tapped.resume(1)
            found = layers[1](*inputs_of[0])
    handle.remove()
    assert torch.equal(found[batch(model)["attention_mask"] == 1], expected)


def test_layers_that_share_their_weights_are_tapped_one_by_one():
    """ALBERT runs the same module again for each layer."""
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    model = AlbertModel(AlbertConfig(vocab_size=50, embedding_size=16, initializer_range=0.3, **sizes)).eval()
    inputs, read = batch(model), []
    expected = eager(model, inputs, output_attentions=True)
    with tap(model, lambda layer, weights: read.append((layer, weights)), torch.ones(3, 2)):
        found = run(model, inputs)
    torch.testing.assert_close(
        found, expected.last_hidden_state[inputs["attention_mask"] == 1], atol=1e-6, rtol=0
    )
    assert [layer for layer, _ in read] == [0, 1, 2]
    for (_, weights), attention in zip(read, expected.attentions, strict=True):
        torch.testing.assert_close(weights, attention, atol=1e-6, rtol=0)
    gate = torch.ones(3, 2)
    gate[1, 1] = 0
    assert (gated(model, gate) - found).abs().max() > 1e-3
