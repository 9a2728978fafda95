import itertools
import json

import numpy as np
import pytest
from framenet import SENTENCES, write_framenet

from analysis.papers.kovaleva2019 import frames
from analysis.papers.kovaleva2019.reading import LinkScores
from analysis.scores.extraction import read_attention
from analysis.scores.words import Words, split_words
from analysis.texts.examples import Example

WORDS = tuple("the man saw that the old man felt agitated today .".split())
# "the old man", two words of which occur before
LINK = frames.Link(WORDS, target=(8,), elements=(4, 5, 6))


@pytest.fixture(scope="module")
def pieces(tiny) -> Words:
    [pieces] = split_words(tiny.tokenizer, [WORDS]).kept
    return pieces


def pairs_of(pieces: Words) -> set[tuple[int, int]]:
    """The positions of each pair of the link (element, target) among the pieces."""
    places = frames.link_placements(LINK, pieces)
    rows, columns = (side[places.original].tolist() for side in (places.rows, places.columns))
    return {*zip(rows, columns, strict=True)}


def test_pairs_join_every_piece_of_element_and_target(pieces):
    targets, elements = (np.flatnonzero(np.isin(pieces.word, words)) for words in ([9], [5, 6, 7]))
    assert pairs_of(pieces) == {*itertools.product(elements.tolist(), targets.tolist())}


def test_scores_are_the_largest_attention_of_the_pairs(tiny, pieces):
    scores = frames.link_scores(tiny, [LINK])
    _, attention = read_attention(tiny, Example("same", " ".join(WORDS)))
    table = frames.link_table(scores, permutations=99)
    table = table.set_index(["direction", "layer", "head"]).sort_index()
    for direction, maps in zip(frames.FRAME_DIRECTIONS, (attention, attention.swapaxes(2, 3)), strict=True):
        [sentence] = scores[direction]
        expected = np.max([maps[:, :, i, j] for i, j in pairs_of(pieces)], axis=0)
        assert sentence.link == pytest.approx(expected, abs=1e-6)
        assert table["mean"].loc[direction].to_numpy() == pytest.approx(expected.ravel(), abs=1e-6)


def test_placement_test_counts_all_placements():
    """Two sentences of three placements each: the null has nine equally likely sums."""
    rng = np.random.default_rng(3)
    sentences = [LinkScores(rng.random((3, 2, 3)), original) for original in (0, 2)]
    sums = [a + b for a, b in itertools.product(*(sentence.values for sentence in sentences))]
    observed = sentences[0].values[0] + sentences[1].values[2]
    exact = np.mean([total >= observed - 1e-9 for total in sums], axis=0)
    assert frames.placement_test(sentences, permutations=20_000) == pytest.approx(exact, abs=0.015)


def test_a_line_takes_first_occurrences():
    sentence = "he saw that he was so agitated"
    row = {"sentence": sentence, "target": "agitated", "frame_elements": ["he", "so agitated"]}
    assert frames.line_link(json.dumps(row), "here") == frames.Link(tuple(sentence.split()), (6,), (0, 5, 6))


def test_bundled_links_are_arguments_at_a_distance():
    links = frames.read_links(n=20)
    assert len(links) == 20
    for link in links:
        assert all(abs(place - link.target[0]) >= frames.APART for place in link.elements)


def test_a_span_covers_no_word_that_only_touches_it():
    words = [(0, 3), (3, 4), (5, 8)]  # "saw. The"
    assert [frames.covered(words, span) for span in ((0, 3), (3, 4), (2, 6))] == [(0,), (1,), (0, 1, 2)]


def test_only_what_passes_the_filter_is_linked(tmp_path):
    [link] = frames.read_links(write_framenet(tmp_path / "framenet_v17"))
    assert link == frames.Link(tuple(SENTENCES["linked"][0].split()), (6,), (1, 2, 3))


def test_released_sentences(data_dir):
    links = frames.read_links(data_dir / "framenet" / "links.jsonl")
    assert len(links) == 473
    assert max(len(link.words) for link in links) <= 12
