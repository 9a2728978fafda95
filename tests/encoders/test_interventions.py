from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from architectures import ARCHITECTURES, HEADS, LAYERS
from classifiers import CHOICES, EXAMPLES, classifier

from analysis.encoders import interventions
from analysis.encoders.interventions import Intervention, predict, single_heads
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import OPERATORS, Prefix
from analysis.encoders.tap import tap
from analysis.texts.examples import Example


def naive(encoder: Encoder, examples: list[Example], rows: list[Intervention]) -> np.ndarray:
    """Logits (intervention, sequence, class), each of one gated forward pass over one sequence without padding."""
    inputs = [encoder.inputs([layout]) for layout in layouts(encoder.tokenizer, examples)]
    result = []
    for row in rows:
        gates = OPERATORS[row.operator](torch.from_numpy(row.gate)[None])
        with tap(encoder.model, **gates), torch.no_grad():
            result.append([encoder.model(**one).logits[0].numpy() for one in inputs])
    return np.array(result)


def many(encoder: Encoder, operator: str) -> list[Intervention]:
    """Every kind of intervention, and gates between 0 and 1."""
    order = [(1, 2), (0, 1), (1, 0), (0, 0)]
    gates = np.random.default_rng(0).random((LAYERS, HEADS))
    return [
        *single_heads(encoder, operator),
        *interventions.whole_layers(encoder, operator),
        *interventions.all_but_one(encoder),
        *interventions.cumulative(encoder, order, [0, 1, 3, 4]),
        *interventions.sets(encoder, {"ends": [(0, 0), (1, 2)]}, operator),
        Intervention("dimmed", gates, operator),
    ]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_those_of_gated_forward_passes(architecture: str, operator: str, monkeypatch):
    monkeypatch.setattr(interventions, "STACKED", {"cpu": 100})
    encoder = classifier(architecture)
    rows = many(encoder, operator)
    result = predict(encoder, EXAMPLES, rows, batch_size=2, progress=False)
    assert result.intervention.values.tolist() == ["none", *(row.name for row in rows)]
    assert result.sequence.values.tolist() == [example.id for example in EXAMPLES]
    expected = naive(encoder, EXAMPLES, [Intervention("none", np.ones((LAYERS, HEADS))), *rows])
    np.testing.assert_allclose(result, expected, atol=1e-5, rtol=0)
    changes = abs(result - result.sel(intervention="none")).max(("sequence", "class"))
    assert (changes.drop_sel(intervention=["none", "0"]) > 1e-4).all()
    assert changes.sel(intervention="0") == 0


def test_passes_begin_at_the_first_changed_layer():
    """Each layer runs for the ordinary pass, the check of the first token, and passes that begin below its end."""
    encoder, calls = classifier("electra"), []
    layers = encoder.model.base_model.encoder.layer
    for number, layer in enumerate(layers):
        layer.register_forward_pre_hook(
            lambda _, arguments, number=number: calls.append((number, arguments[0].shape[1]))
        )
    rows = single_heads(encoder)
    with torch.no_grad():
        predict(encoder, EXAMPLES[:1], rows, batch_size=1, progress=False)
    [layout] = layouts(encoder.tokenizer, EXAMPLES[:1])
    whole = [number for number, tokens in calls if tokens == len(layout)]
    assert whole == [0, 1, 0]  # the ordinary pass, then the heads of layer 0 stacked
    assert [number for number, tokens in calls if tokens == 1] == [1, 1, 1]


NUMBERS = [Example(example.id, example.text_a, label=2.5) for example in EXAMPLES]


@pytest.mark.parametrize(("examples", "classes"), [(NUMBERS, 1), (CHOICES, 2)], ids=["number", "choices"])
def test_one_output_is_a_number_or_the_logit_of_a_choice(examples: list[Example], classes: int):
    encoder = classifier("bert", outputs=1)
    rows = single_heads(encoder)
    result = predict(encoder, examples, rows, batch_size=3, progress=False)
    assert result.sequence.values.tolist() == [example.id for example in examples]
    expected = naive(encoder, examples, rows).reshape(len(rows), len(examples), classes)
    np.testing.assert_allclose(result[1:], expected, atol=1e-5, rtol=0)


def test_bfloat16_is_near():
    encoder = classifier("bert")
    half = Encoder("half", encoder.model, encoder.tokenizer, "bfloat16")
    rows = single_heads(encoder)
    result = predict(half, EXAMPLES, rows, progress=False)
    np.testing.assert_allclose(result, predict(encoder, EXAMPLES, rows, progress=False), atol=0.1, rtol=0)


def passes(monkeypatch, stop_after: int | None = None) -> list[int]:
    """The layers at which changed passes begin; the run is stopped after a given number of them."""
    begun, resume = [], Prefix.resume

    def counted(self, layer, gates, changes):
        if len(begun) == stop_after:
            raise KeyboardInterrupt
        begun.append(layer)
        return resume(self, layer, gates, changes)

    monkeypatch.setattr(Prefix, "resume", counted)
    return begun


def test_a_killed_run_leaves_the_model_as_it_was_and_resumes(tmp_path: Path, monkeypatch):
    encoder = classifier("roberta")
    rows = single_heads(encoder)
    expected = predict(encoder, EXAMPLES, rows, batch_size=2, progress=False)
    with monkeypatch.context() as patch:
        passes(patch, 4)  # the check, both layers of the first batch, and one of the second
        with pytest.raises(KeyboardInterrupt):
            predict(encoder, EXAMPLES, rows, batch_size=2, cache=tmp_path, progress=False)
    assert not any(item._forward_pre_hooks or "forward" in vars(item) for item in encoder.model.modules())
    remaining = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(remaining) == 2
    with monkeypatch.context() as patch:
        begun = passes(patch)
        result = predict(encoder, EXAMPLES, rows, batch_size=2, cache=tmp_path, progress=False)
    assert begun == [1, 0, 1]  # the rest of the second batch, and the third, which is one sequence
    xr.testing.assert_identical(result, expected)
    assert sum(path.read_bytes() == content for path, content in remaining.items()) == 1


def test_other_weights_texts_and_operators_are_not_taken_from_the_cache(tmp_path: Path):
    encoder, other = classifier("bert"), classifier("bert", hidden_act="relu")
    other.model.classifier.bias.data += 1

    for query, examples, operator in [
        (encoder, EXAMPLES, "zero"),
        (encoder, EXAMPLES, "uniform"),
        (other, EXAMPLES, "zero"),
        (encoder, [Example("e0", "A dog .")], "zero"),
    ]:
        rows = single_heads(query, operator)
        result = predict(query, examples, rows, cache=tmp_path, progress=False)
        np.testing.assert_allclose(result[1:], naive(query, examples, rows), atol=1e-5, rtol=0)


def test_texts_are_known_by_their_pieces_segments_and_order():
    tokenizer = classifier("bert").tokenizer
    sequences = layouts(tokenizer, EXAMPLES)
    others = layouts(tokenizer, EXAMPLES, segment_ids="zeros"), sequences[::-1], sequences[1:]
    assert len({interventions.texts_digest(texts) for texts in (sequences, *others)}) == 4
