"""A pruned encoder gives the same logits as the whole one with the same heads off, and has fewer weights."""

import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES
from classifiers import EXAMPLES, classifier

from analysis.encoders.interventions import Intervention, predict
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder
from analysis.encoders.pruning import prune

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
