import numpy as np
import pytest
import torch
import xarray as xr

from analysis.encoders.classifiers import random_encoder
from analysis.encoders.models import Encoder, load_tokenizer
from analysis.papers.kovaleva2019 import reading
from analysis.papers.kovaleva2019.labellers import label_maps
from analysis.papers.kovaleva2019.measures import CLS, FEATURES, SEP
from analysis.texts.examples import Example, Relation, Tag
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse, tags

TEXT = "another man saw the man ."
SPANS = [(0, 7), (8, 11), (12, 15), (16, 19), (20, 23), (24, 25)]
UPOS = ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"]
RELATIONS = (Relation("nsubj", 0, SPANS[1], SPANS[2]), Relation("dobj", 0, SPANS[4], SPANS[2]))


def targets_of(text_b: str | None = None) -> reading.Targets:
    example = Example("e", TEXT, text_b)
    tags = [Tag(upos, 0, span) for upos, span in zip(UPOS, SPANS, strict=True)]
    if text_b:
        tags += [Tag("PART", 1, (0, 3))]
    return reading.find_targets(load_tokenizer("tiny"), [example], {"e": RELATIONS}, {"e": tags})[0]


@pytest.mark.parametrize("text_b", [None, "not"])
def test_words_are_found_by_their_position(text_b: str | None):
    """The second "man" is spelled like the subject, and "another" contains "not": neither counts."""
    rows = zip(FEATURES, targets_of(text_b).features, strict=True)
    tokens = {name: np.flatnonzero(row).tolist() for name, row in rows if row.any()}
    expected = {"noun": [2, 5], "verb": [3], "subject": [2], "object": [5], "punctuation": [6], CLS: [0]}
    assert tokens == expected | ({"negation": [8], SEP: [7, 9]} if text_b else {SEP: [7]})


def test_subjects_of_verbs():
    [places] = targets_of().verbs
    assert (places.rows[places.original].tolist(), places.columns[places.original].tolist()) == ([2], [3])
    assert len(places.rows) == 5  # all neighbours among the six words


@pytest.fixture(scope="module")
def other() -> Encoder:
    return random_encoder("tiny", seed=3)


@pytest.fixture(scope="module")
def targets(tiny) -> list[reading.Targets]:
    examples = load_examples("toy-mrpc", split="dev", n=3) + load_examples("toy-sst-2", split="dev", n=3)
    return reading.find_targets(tiny.tokenizer, examples, parse(examples), tags(examples))


@pytest.fixture(scope="module")
def state(tiny, other, targets) -> xr.Dataset:
    return reading.read_state(other, targets, before=tiny)


def maps_of(encoder: Encoder, target: reading.Targets) -> np.ndarray:
    return np.stack([maps[0].numpy() for maps in reading.attention_of(encoder, [target.layout])])


def test_received_attention_cosines_and_patterns_equal_loops(tiny, other, targets, state):
    for target in targets:
        before, maps = maps_of(tiny, target).astype(np.float64), maps_of(other, target)
        sequence = state.sel(sequence=target.layout.id)
        for number in range(len(FEATURES)):
            received = sequence["received"][number].values
            tokens = np.flatnonzero(target.features[number])
            means = maps[..., tokens].mean(axis=2)
            expected = means.max(axis=-1) if len(tokens) else np.full_like(received, np.nan)
            assert received == pytest.approx(expected, abs=1e-5, nan_ok=True)
        products = [(a * b).sum((2, 3)) for a, b in ((before, maps), (before, before), (maps, maps))]
        expected = products[0] / np.sqrt(products[1] * products[2])
        assert sequence["cosine"].values == pytest.approx(expected, abs=1e-5)
        patterns = [label_maps(torch.from_numpy(layer)[None], [target.layout])[0] for layer in maps]
        assert (sequence["pattern"] == np.stack(patterns)).all()


def test_links_of_verbs(other, targets, state):
    target = next(target for target in targets if target.verbs)
    maps = maps_of(other, target)
    scores = []
    for places in target.verbs:
        pairs = zip(places.rows[places.original], places.columns[places.original], strict=True)
        scores.append(np.max([maps[:, :, j, i] for i, j in pairs], axis=0))
    link = state["link"].sel(link_name=reading.LINKS[1], link_mode="aligned")
    values = link.sel(sequence=target.layout.id).values
    assert values == pytest.approx(np.mean(scores, axis=0), abs=1e-5)


def test_placements_are_all_shifts_within_the_text():
    rows, columns, original = reading.placements([(2, 5), (3, 5)], 1, 8)
    assert rows.tolist() == [[1, 2], [2, 3], [3, 4], [4, 5]]
    assert columns.tolist() == [[4, 4], [5, 5], [6, 6], [7, 7]]
    assert original == 1


def test_largest_equals_a_loop():
    attention = np.random.default_rng(0).random((3, 9, 9))
    places = reading.placements([(2, 6), (3, 6)], 1, 8)
    scores = reading.largest(attention, places)
    for values, rows, columns in zip(scores.values, places.rows, places.columns, strict=True):
        pairs = [*zip(rows, columns, strict=True)]
        assert values.tolist() == [max(head[i, j] for i, j in pairs) for head in attention]
    others = np.delete(scores.values, places.original, axis=0).mean(axis=0)
    assert scores.elsewhere.tolist() == others.tolist()


def test_cached_readings_are_not_computed_again(tmp_path, monkeypatch, tiny, targets):
    def read():
        return reading.read_runs(lambda *_: tiny, {"mrpc": targets}, [], tmp_path)["mrpc", None]

    first = read()
    monkeypatch.setattr(reading, "read_state", lambda *_: pytest.fail("computed again"))
    assert read().identical(first)
    monkeypatch.undo()
    monkeypatch.setattr(reading, "RULES_DIGEST", "other rules")
    read()
    assert len([*tmp_path.iterdir()]) == 2
