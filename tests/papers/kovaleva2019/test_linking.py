"""Scores of links on a hand-made sentence, and the test against other placements."""

import itertools

import numpy as np
import pytest

from analysis.encoders.models import Encoder, load_encoder
from analysis.papers.kovaleva2019.frames import (
    DIRECTIONS,
    MODES,
    Link,
    link_placements,
    link_scores,
    link_table,
    placement_test,
)
from analysis.scores.extraction import read_attention
from analysis.scores.words import split_words
from analysis.texts.examples import Example

WORDS = tuple("the man saw that the old man felt agitated today .".split())
LINK = Link(
    "by hand", WORDS, target=(8,), elements=((4, 5, 6),)
)  # "the old man", of which two words came before


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load_encoder("tiny")


def own_pairs(encoder: Encoder, mode: str, direction: str) -> set[tuple[str, int, str, int]]:
    """The words of each pair of a link, with their places among the pieces."""
    [pieces] = split_words(encoder.tokenizer, [WORDS]).kept
    found = link_placements(LINK, pieces, mode, direction)
    tokens = encoder.tokenizer.convert_ids_to_tokens(pieces.input_ids.tolist())
    rows, columns = found.rows[found.own], found.columns[found.own]
    return {(tokens[i], int(i), tokens[j], int(j)) for i, j in zip(rows, columns, strict=True)}


def test_released_code_pairs_first_occurrences_one_by_one(tiny):
    [(element, place, target, end)] = own_pairs(tiny, "faithful", "element_to_target")
    assert (element, place) == ("the", 1)  # not the fifth word, which is the element's
    assert target == "ag" or target == "agitated"
    assert own_pairs(tiny, "faithful", "target_to_element") == {(target, end, element, place)}


def test_all_pairs_are_those_of_the_words_themselves(tiny):
    [pieces] = split_words(tiny.tokenizer, [WORDS]).kept
    targets, elements = (np.flatnonzero(np.isin(pieces.word, words)) for words in ([9], [5, 6, 7]))
    found = own_pairs(tiny, "all_pairs", "target_to_element")
    assert {(i, j) for _, i, _, j in found} == {*itertools.product(targets.tolist(), elements.tolist())}


def test_scores_are_the_largest_attention_of_the_pairs(tiny):
    scores, left_out = link_scores(tiny, [LINK], progress=False)
    assert sum(left_out.values()) == 0
    _, attention = read_attention(tiny, Example("same", " ".join(WORDS)))
    for key in itertools.product(MODES, DIRECTIONS):
        [(found, own)] = scores[key]
        pairs = [(i, j) for _, i, _, j in own_pairs(tiny, *key)]
        expected = np.max([attention[:, :, i, j] for i, j in pairs], axis=0)
        assert found[own] == pytest.approx(expected, abs=1e-6)
    table = link_table(scores, permutations=99)
    assert len(table) == len(scores) * tiny.layers * tiny.heads
    assert (table["n"] == 1).all()


def test_placement_test_counts_all_placements():
    """Two sentences of three placements each: the null has nine equally likely sums."""
    rng = np.random.default_rng(3)
    sentences = [(rng.random((3, 2, 3)), own) for own in (0, 2)]
    sums = [a + b for a, b in itertools.product(sentences[0][0], sentences[1][0])]
    observed = sentences[0][0][0] + sentences[1][0][2]
    exact = np.mean([each >= observed - 1e-9 for each in sums], axis=0)
    assert placement_test(sentences, permutations=20_000) == pytest.approx(exact, abs=0.015)
