"""The tap computes what eager attention computes, reads what it would show, and leaves no trace."""

from collections.abc import Callable

import pytest
import torch
from architectures import ARCHITECTURES, HEADS, LAYERS, build, projections
from torch import Tensor
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    DebertaV2Config,
    DebertaV2Model,
    PreTrainedModel,
)

from analysis.encoders import tap as tap_module
from analysis.encoders.models import build_tiny
from analysis.encoders.tap import tap
from analysis.errors import InputError

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
    """Everything that the tap may touch."""
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


def test_nesting_is_refused_and_leaves_the_outer_tap_at_work():
    model, seen = build("bert"), []
    with tap(model, read=lambda layer, weights: seen.append(layer)):
        with pytest.raises(InputError, match="tapped already"), tap(model):
            pass
        run(model, batch(model))
    assert seen == list(range(LAYERS))
    assert tap_module._active == {}


def test_two_models_are_tapped_side_by_side():
    first, second, seen = build("bert"), build("electra"), []
    with (
        tap(first, read=lambda layer, _: seen.append("bert")),
        tap(second, read=lambda layer, _: seen.append("electra")),
    ):
        run(second, batch(second))
        run(first, batch(first))
    assert seen == ["electra"] * LAYERS + ["bert"] * LAYERS


def test_model_without_exchangeable_attention_is_refused_and_left_alone():
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
    model = DebertaV2Model(DebertaV2Config(vocab_size=50, **sizes))
    before = state(model)
    with pytest.raises(InputError, match="DebertaV2Model has no exchangeable attention"), tap(model):
        pass
    assert state(model) == before


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


def test_a_gate_of_another_shape_is_refused():
    model = build_tiny(AutoModel)
    with (
        pytest.raises(InputError, match=r"must be \(layers, heads\) = \(3, 4\)"),
        tap(model, gate=torch.ones(3, 1)),
    ):
        pass
