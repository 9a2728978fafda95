from collections.abc import Callable

import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES, HEADS, LAYERS, projections
from classifiers import EXAMPLES, classifier
from torch.nn.functional import cross_entropy

from analysis.encoders.interventions import Intervention, predict
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder
from analysis.encoders.pruning import importance, normalised, prune
from analysis.encoders.tap import tap
from analysis.texts.examples import Example

GATE = np.array([[1, 0, 1], [0, 1, 0]])
EMPTY = np.array([[0, 0, 0], [0, 1, 1]])
HEAD = 24 * 8 * 4 + 3 * 8  # weights of a head of 8 of the 24 dimensions: query, key, value, output


def weights(encoder: Encoder) -> int:
    return sum(item.numel() for item in encoder.model.parameters())


@pytest.mark.parametrize("gate", [GATE, EMPTY, 0 * GATE], ids=["some", "empty layer", "no head"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_answers_are_those_with_the_heads_off(architecture: str, gate: np.ndarray, implementation: str):
    encoder = classifier(architecture)
    off = Intervention("off", gate)
    expected = predict(encoder, EXAMPLES, [off], progress=False)
    pruned = prune(encoder, gate)
    pruned.model.set_attn_implementation(implementation)
    with torch.no_grad():
        result = pruned.model(**pruned.inputs(layouts(pruned.tokenizer, EXAMPLES))).logits
    np.testing.assert_allclose(result, expected.sel(intervention="off"), atol=1e-5, rtol=0)
    assert abs(expected.sel(intervention="off") - expected.sel(intervention="none")).max() > 1e-3
    assert weights(encoder) - weights(pruned) == HEAD * int((gate == 0).sum())


def test_predict_reads_a_pruned_encoder():
    encoder = classifier("distilbert")
    expected = predict(encoder, EXAMPLES, [Intervention("off", EMPTY)], progress=False)
    result = predict(prune(encoder, EMPTY), EXAMPLES, [], progress=False)
    np.testing.assert_allclose(result[0], expected[1], atol=1e-5, rtol=0)
    assert result.attrs["weights_sha256"] != expected.attrs["weights_sha256"]


STEP = 1e-4
Loss = Callable[[torch.Tensor, Example], torch.Tensor]  # of logits (sequence, output) of one example


def class_loss(logits: torch.Tensor, example: Example) -> torch.Tensor:
    return cross_entropy(logits.reshape(1, -1), torch.tensor([example.label]))


def squared_error(logits: torch.Tensor, example: Example) -> torch.Tensor:
    return (logits[0, 0] - example.label) ** 2


NUMBERS = [Example(e.id, e.text_a, label=number - 1.5) for number, e in enumerate(EXAMPLES)]
CASES = [(architecture, 3, EXAMPLES, class_loss) for architecture in ARCHITECTURES]


def double(architecture: str, outputs: int = 3) -> Encoder:
    encoder = classifier(architecture, outputs)
    encoder.model.double()
    return encoder


def loss(encoder: Encoder, example: Example, gate: np.ndarray, of: Loss) -> float:
    with tap(encoder.model, gate=torch.from_numpy(gate)), torch.no_grad():
        logits = encoder.model(**encoder.inputs(layouts(encoder.tokenizer, [example]))).logits
    return float(of(logits, example))


def differences(
    encoder: Encoder, examples: list[Example], of: Loss = class_loss, gate: np.ndarray | None = None
) -> np.ndarray:
    """Central differences (example, layer, head) of each example's loss, read by itself without padding."""
    gate = np.ones((LAYERS, HEADS)) if gate is None else gate
    result = np.empty((len(examples), LAYERS, HEADS))
    for place in np.ndindex(result.shape):
        step = np.zeros_like(gate)
        step[place[1:]] = STEP
        example = examples[place[0]]
        up, down = (loss(encoder, example, gate + sign * step, of) for sign in (1, -1))
        result[place] = (up - down) / (2 * STEP)
    return result


def token_difference(encoder: Encoder, example: Example, layer: int, token: int, head: int) -> float:
    """The central difference of the loss where one head's output is scaled at one token."""
    size = 24 // HEADS
    losses = []
    for scale in (1 + STEP, 1 - STEP):

        def scaled(_, given: tuple, scale: float = scale) -> tuple:
            context = given[0].clone()
            context[:, token, head * size : (head + 1) * size] *= scale
            return (context,)

        with projections(encoder.model)[layer].register_forward_pre_hook(scaled):
            losses.append(loss(encoder, example, np.ones((LAYERS, HEADS)), class_loss))
    return (losses[0] - losses[1]) / (2 * STEP)


@pytest.mark.parametrize(
    ("architecture", "outputs", "examples", "loss"), [*CASES, ("roberta", 1, NUMBERS, squared_error)]
)
def test_importance_is_that_of_finite_differences(
    architecture: str, outputs: int, examples: list[Example], loss: Loss
):
    encoder = double(architecture, outputs)
    slopes = differences(encoder, examples, loss)
    result = importance(encoder, examples, batch_size=2, progress=False)
    np.testing.assert_allclose(result.sel(granularity="example"), abs(slopes).mean(0), rtol=1e-4, atol=1e-7)
    batches = abs(np.array([slopes[:2].sum(0), slopes[2:4].sum(0), slopes[4]])).sum(0) / len(examples)
    np.testing.assert_allclose(result.sel(granularity="batch"), batches, rtol=1e-4, atol=1e-7)
    assert not np.allclose(batches, abs(slopes).mean(0), rtol=1e-2)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_token_importance_sums_absolute_differences_of_tokens(architecture: str):
    """In a padded batch."""
    encoder, examples = double(architecture), EXAMPLES[3:]
    result = importance(encoder, examples, progress=False).sel(granularity="token")
    expected = np.zeros((LAYERS, HEADS))
    for example, layout in zip(examples, layouts(encoder.tokenizer, examples), strict=True):
        for layer, token, head in np.ndindex(LAYERS, len(layout), HEADS):
            expected[layer, head] += abs(token_difference(encoder, example, layer, token, head))
    np.testing.assert_allclose(result, expected / len(examples), rtol=1e-4, atol=1e-7)


def test_heads_that_are_off_have_no_importance_and_change_that_of_others():
    encoder = double("distilbert")
    gate = np.array([[1, 0, 1], [1, 1, 0]])
    slopes = differences(encoder, EXAMPLES, gate=gate.astype(float))
    result = importance(encoder, EXAMPLES, gate=gate, progress=False).sel(granularity="example")
    np.testing.assert_allclose(result, abs(slopes).mean(0) * gate, rtol=1e-4, atol=1e-7)
    whole = importance(encoder, EXAMPLES, progress=False).sel(granularity="example")
    assert (abs(result - whole) > 1e-4).all()


def test_normalised_importance_has_unit_norm_in_every_layer():
    result = importance(classifier("bert"), EXAMPLES, progress=False)
    result[:, 1] = 0
    scaled = normalised(result)
    np.testing.assert_allclose((scaled[:, 0] ** 2).sum("head"), 1, rtol=1e-6)
    np.testing.assert_allclose(scaled[:, 0] / scaled[:, 0, 0], result[:, 0] / result[:, 0, 0], rtol=1e-5)
    assert (scaled[:, 1] == 0).all()
