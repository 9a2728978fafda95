"""One pass over an encoder against loops over single maps; cosines; the cache."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

from analysis.encoders.models import Encoder, random_encoder
from analysis.papers.kovaleva2019 import reading as module
from analysis.papers.kovaleva2019.names import FEATURES
from analysis.papers.kovaleva2019.reading import (
    LINKS,
    PADDED,
    Targets,
    attention_of,
    find_targets,
    padded_cosine,
    read_runs,
    read_state,
)
from analysis.scores.words import Words
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse, tags


def lengths(attention, layouts) -> np.ndarray:
    """The number of tokens of a map's sequence, modulo five."""
    assert attention.shape[-1] == max(map(len, layouts))
    return np.array([[len(layout) % 5] * attention.shape[1] for layout in layouts])


LABELLER = SimpleNamespace(key="1", find=lengths)


@pytest.fixture(scope="module")
def other() -> Encoder:
    return random_encoder("tiny", seed=3)


@pytest.fixture(scope="module")
def targets(tiny) -> list[Targets]:
    examples = load_examples("toy-mrpc", split="dev", n=3) + load_examples("toy-sst-2", split="dev", n=3)
    return find_targets(tiny.tokenizer, examples, parse(examples), tags(examples))


@pytest.fixture(scope="module")
def state(tiny, other, targets) -> xr.Dataset:
    return read_state(other, targets, LABELLER, 4, before=tiny, padded=2, budget=200)


def maps_of(encoder: Encoder, target: Targets) -> np.ndarray:
    """All maps of one sequence, read without padding."""
    return np.stack([maps[0].numpy() for maps in attention_of(encoder, [target.layout])])


def test_received_attention_equals_loops(other, targets, state):
    for target in targets:
        maps = maps_of(other, target)
        for number in range(len(FEATURES)):
            received = state["received"].sel(sequence=target.layout.id)[number].values
            tokens = np.flatnonzero(target.features[number])
            if len(tokens):
                expected = np.max([maps[:, :, :, token].mean(axis=-1) for token in tokens], axis=0)
                assert received == pytest.approx(expected, abs=1e-5)
            else:
                assert np.isnan(received).all()


def test_links_of_verbs(other, targets, state):
    target = next(target for target in targets if target.verbs)
    maps = maps_of(other, target)
    scores = []
    for places in target.verbs:
        pairs = zip(places.rows[places.original], places.columns[places.original], strict=True)
        scores.append(np.max([maps[:, :, j, i] for i, j in pairs], axis=0))
    values = state["link"].sel(sequence=target.layout.id, link_name=LINKS[1], link_mode="aligned").values
    assert values == pytest.approx(np.mean(scores, axis=0), abs=1e-5)


def test_cosine_equals_a_loop(tiny, other, targets, state):
    for target in targets:
        first, second = (maps_of(encoder, target).astype(np.float64) for encoder in (tiny, other))
        products = [(a * b).sum((2, 3)) for a, b in ((first, second), (first, first), (second, second))]
        expected = products[0] / np.sqrt(products[1] * products[2])
        assert state["cosine"].sel(sequence=target.layout.id).values == pytest.approx(expected, abs=1e-5)


def test_padded_maps_hold_the_rows_of_padding(tiny, other, targets):
    """As in the authors' code: all maps have one length, and padding attends to the real tokens."""
    layouts = [target.layout for target in targets[:2]]
    length = PADDED // 2
    similarity = padded_cosine(tiny, other, layouts, length)
    filler = Words(0, *np.zeros((2, length), int))
    maps = [attention_of(encoder, [layouts[1], filler])[1][0] for encoder in (tiny, other)]
    expected = torch.nn.functional.cosine_similarity(*(attention.flatten(1) for attention in maps))
    assert similarity[1, 1] == pytest.approx(expected.numpy(), abs=1e-5)


def test_cached_readings_are_not_computed_again(tmp_path, monkeypatch, tiny, targets):
    def read(labeller=LABELLER):
        return read_runs(lambda *_: tiny, {"mrpc": targets}, [], labeller, 2, 0, tmp_path)["mrpc", None]

    first = read()
    monkeypatch.setattr(module, "read_state", lambda *_: pytest.fail("computed again"))
    assert read().identical(first)
    monkeypatch.undo()
    read(SimpleNamespace(key="2", find=lengths))
    assert len([*tmp_path.iterdir()]) == 2
