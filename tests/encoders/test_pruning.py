"""A pruned encoder gives the same logits as the whole one with the same heads off, and has fewer weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from architectures import ARCHITECTURES, HEADS, LAYERS
from classifiers import EXAMPLES, classifier
from transformers import AlbertConfig, AlbertForSequenceClassification

from analysis.encoders.interventions import Intervention, predict, single_heads
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_tokenizer
from analysis.encoders.pruning import load_pruned, prune, save_pruned
from analysis.errors import InputError

GATE = np.array([[1, 0, 1], [0, 1, 0]])
EMPTY = np.array([[0, 0, 0], [0, 1, 1]])
HEAD = 24 * 8 * 4 + 3 * 8  # weights of a head of 8 of the 24 dimensions: query, key, value, output


def weights(encoder: Encoder) -> int:
    return sum(each.numel() for each in encoder.model.parameters())


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
        found = pruned.model(**pruned.inputs(layouts(pruned.tokenizer, EXAMPLES))).logits
    np.testing.assert_allclose(found, expected.sel(intervention="off"), atol=1e-5, rtol=0)
    assert abs(expected.sel(intervention="off") - expected.sel(intervention="none")).max() > 1e-3
    assert weights(encoder) - weights(pruned) == HEAD * int((gate == 0).sum())


def test_predict_reads_a_pruned_encoder():
    encoder = classifier("distilbert")
    expected = predict(encoder, EXAMPLES, [Intervention("off", EMPTY)], progress=False)
    found = predict(prune(encoder, EMPTY), EXAMPLES, [], progress=False)
    np.testing.assert_allclose(found[0], expected[1], atol=1e-5, rtol=0)
    assert found.attrs["weights_sha256"] != expected.attrs["weights_sha256"]


@pytest.mark.parametrize("operator", ["zero", "uniform"])
@pytest.mark.parametrize(("gate", "heads"), [(GATE, 2), (EMPTY, 0)], ids=["some", "empty layer"])
def test_gates_are_not_for_a_pruned_encoder(operator: str, gate: np.ndarray, heads: int):
    encoder = prune(classifier("bert"), gate)
    says = f"^the gate is for 3 heads: layer 0 of the pruned encoder has {heads}$"
    with pytest.raises(InputError, match=says):
        predict(encoder, EXAMPLES, single_heads(encoder, operator), progress=False)


def test_the_encoder_itself_stays_whole():
    encoder = classifier("bert")
    before = predict(encoder, EXAMPLES, [], progress=False)
    pruned = prune(encoder, GATE)
    assert pruned.name == "bert, 3 of 6 heads"
    xr.testing.assert_identical(predict(encoder, EXAMPLES, [], progress=False), before)
    assert all(weight.requires_grad for weight in pruned.model.parameters())


def test_a_saved_one_answers_as_before(tmp_path: Path):
    encoder, folder = classifier("electra", outputs=2), tmp_path / "new" / "pruned"
    save_pruned(encoder, EMPTY, folder)
    found = load_pruned(folder, task="mrpc")
    expected = prune(encoder, EMPTY)
    assert weights(found) == weights(expected)
    np.testing.assert_array_equal(
        predict(found, EXAMPLES, [], progress=False), predict(expected, EXAMPLES, [], progress=False)
    )
    assert [path.name for path in folder.parent.iterdir()] == ["pruned"]
    (folder / "recipe.json").unlink()
    with pytest.raises(InputError, match="recipe.json holds no gate: write the folder with save_pruned$"):
        load_pruned(folder, task="mrpc")


def test_wrong_gates_and_encoders_are_refused(tmp_path: Path):
    encoder = classifier("bert")
    for function in (prune, lambda *given: save_pruned(*given, tmp_path / "pruned")):
        with pytest.raises(InputError, match=r"^the gate of 'bert' has shape \(3, 2\)"):
            function(encoder, np.ones((HEADS, LAYERS)))
        with pytest.raises(InputError, match="^the gate has numbers between 0 and 1"):
            function(encoder, np.full((LAYERS, HEADS), 0.5))
        with pytest.raises(
            InputError, match="^'bert, 3 of 6 heads' is already pruned: prune the whole encoder"
        ):
            function(prune(encoder, GATE), np.ones((LAYERS, HEADS)))
    assert not (tmp_path / "pruned").exists()
    tokenizer = load_tokenizer("tiny")
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    albert = AlbertForSequenceClassification(
        AlbertConfig(vocab_size=len(tokenizer), embedding_size=16, **sizes)
    )
    with pytest.raises(InputError, match="^albert: AlbertForSequenceClassification has no list"):
        prune(Encoder("albert", albert.eval(), tokenizer), np.ones((3, 2)))
