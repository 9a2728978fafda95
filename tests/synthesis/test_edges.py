"""Edits of single edges, against loops over the rows of small maps and inside a model."""

import numpy as np
import pytest
import torch
from classifiers import classifier

from analysis.encoders.interventions import predict
from analysis.encoders.layout import layouts
from analysis.encoders.models import load_tokenizer
from analysis.synthesis import edges
from analysis.texts.examples import Example

PAIRS = [
    Example("one", "The cat ran .", "A cat and the dog ran .", label=0),
    Example("two", "Nothing here", "is shared there", label=1),
    Example("three", "cat", "cat", label=1),
]


@pytest.fixture
def case() -> dict[str, torch.Tensor]:
    """Random rows of two heads over seven tokens, of which the last is padding; each row has two edges or none."""
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(6), (1, 2, 7))
    weights = torch.from_numpy(np.concatenate([weights, np.zeros((1, 2, 7, 1))], axis=-1))
    marked = torch.zeros(1, 1, 7, 7, dtype=torch.bool)
    marked[0, 0, 1, [3, 5]] = marked[0, 0, 4, [0, 2]] = True
    real = torch.tensor([[[[True] * 6 + [False]]]])
    order = torch.from_numpy(rng.random((1, 1, 7, 7)))
    return {"weights": weights, "edges": marked, "real": real, "order": order}


def test_edges_off(case):
    found = edges.edges_off(*case.values())
    assert found.sum(-1).numpy() == pytest.approx(1)
    row, kept = case["weights"][0, 1, 1], [0, 1, 2, 4]
    assert found[0, 1, 1, [3, 5]].tolist() == [0, 0]
    assert found[0, 1, 1, kept].numpy() == pytest.approx((row[kept] / row[kept].sum()).numpy())
    assert torch.allclose(found[0, :, 2], case["weights"][0, :, 2])


def test_edges_only(case):
    found = edges.edges_only(*case.values())
    assert found.sum(-1).numpy() == pytest.approx(1)
    row = case["weights"][0, 0, 4]
    assert found[0, 0, 4, [0, 2]].tolist() == row[[0, 2]].tolist()
    assert found[0, 0, 4, [1, 3, 4, 5]].numpy() == pytest.approx(float(1 - row[[0, 2]].sum()) / 4)
    assert found[0, 0, 3].tolist() == pytest.approx([1 / 6] * 6 + [0])


def test_as_much_elsewhere(case):
    """Row by row: tokens without an edge lose attention in their order until as much is gone as edges have."""
    turn = edges.in_turn(case["edges"], case["real"], case["order"])
    found = edges.as_much_elsewhere(case["weights"], case["edges"], case["real"], turn)
    assert found.sum(-1).numpy() == pytest.approx(1)
    for head in range(2):
        row, order = case["weights"][0, head, 1].clone(), case["order"][0, 0, 1]
        left = float(row[[3, 5]].sum())
        for token in sorted([0, 1, 2, 4], key=lambda place: order[place]):
            taken = min(left, float(row[token]))
            row[token], left = row[token] - taken, left - taken
        if row.sum() > 1e-6:
            assert found[0, head, 1].numpy() == pytest.approx((row / row.sum()).numpy(), abs=1e-9)
    assert torch.allclose(found[0, :, 6], case["weights"][0, :, 6])


def test_logits_without_changes_are_those_of_predict():
    """Heads in sequences without a shared word lose nothing with edges off; others do."""
    encoder = classifier("bert", outputs=2)
    every = [*np.ndindex(encoder.layers, encoder.heads)]
    found = edges.edited_logits(encoder, PAIRS, {"all": every}, progress=False)
    plain = predict(encoder, PAIRS, [], progress=False)[0]
    np.testing.assert_allclose(found.sel(intervention="none"), plain, atol=1e-5)
    apart = edges.edited_logits(encoder, PAIRS, {"all": every}, budget=8, progress=False)
    np.testing.assert_allclose(found, apart, atol=1e-5)
    off = abs(found.sel(intervention="edges off, all") - found.sel(intervention="none")).max("class")
    assert off.sel(sequence="two") < 1e-5
    assert (off.sel(sequence=["one", "three"]) > 1e-3).all()


def test_overlap_counts_shared_words_of_each_text():
    single = Example("single", "The cat ran .")
    found = edges.overlap(layouts(load_tokenizer("tiny"), [*PAIRS, single]))
    assert found[1].tolist() == [0, 0]
    assert found[2].tolist() == [1, 1]
    assert np.isnan(found[3]).all()
    assert found[0, 0] == 1  # the, cat and ran stand in the other text
    assert found[0, 1] < 1
