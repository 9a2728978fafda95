"""Scores of links on a hand-made sentence, and the test against other placements."""

import itertools

import numpy as np
import pytest

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
from analysis.scores.words import Words, split_words
from analysis.texts.examples import Example

WORDS = tuple("the man saw that the old man felt agitated today .".split())
# "the old man", of which two words came before
LINK = Link("by hand", WORDS, target=(8,), elements=((4, 5, 6),))


@pytest.fixture(scope="module")
def pieces(tiny) -> Words:
    """The word pieces of the sentence."""
    [pieces] = split_words(tiny.tokenizer, [WORDS]).kept
    return pieces


def own_pairs(pieces: Words, mode: str, direction: str) -> set[tuple[int, int]]:
    """The places of each pair of the link among the pieces."""
    found = link_placements(LINK, pieces, mode)
    pairs = zip(found.rows[found.own].tolist(), found.columns[found.own].tolist(), strict=True)
    return {pair if direction == "element_to_target" else pair[::-1] for pair in pairs}


def test_pairs_of_the_released_code_and_of_the_words_themselves(pieces):
    targets, elements = (np.flatnonzero(np.isin(pieces.word, words)) for words in ([9], [5, 6, 7]))
    # First occurrences, one by one: "the" is the first word, not the fifth, which is the element's.
    assert own_pairs(pieces, "faithful", "element_to_target") == {(1, targets[0])}
    assert own_pairs(pieces, "faithful", "target_to_element") == {(targets[0], 1)}
    expected = {*itertools.product(targets.tolist(), elements.tolist())}
    assert own_pairs(pieces, "all_pairs", "target_to_element") == expected


def test_scores_are_the_largest_attention_of_the_pairs(tiny, pieces):
    scores, _ = link_scores(tiny, [LINK])
    _, attention = read_attention(tiny, Example("same", " ".join(WORDS)))
    table = link_table(scores, permutations=99).set_index(["mode", "direction", "layer", "head"]).sort_index()
    for key in itertools.product(MODES, DIRECTIONS):
        [(found, own)] = scores[key]
        expected = np.max([attention[:, :, i, j] for i, j in own_pairs(pieces, *key)], axis=0)
        assert found[own] == pytest.approx(expected, abs=1e-6)
        assert table["mean"].loc[key].to_numpy() == pytest.approx(expected.ravel(), abs=1e-6)


def test_placement_test_counts_all_placements():
    """Two sentences of three placements each: the null has nine equally likely sums."""
    rng = np.random.default_rng(3)
    sentences = [(rng.random((3, 2, 3)), own) for own in (0, 2)]
    sums = [a + b for a, b in itertools.product(sentences[0][0], sentences[1][0])]
    observed = sentences[0][0][0] + sentences[1][0][2]
    exact = np.mean([each >= observed - 1e-9 for each in sums], axis=0)
    assert placement_test(sentences, permutations=20_000) == pytest.approx(exact, abs=0.015)
