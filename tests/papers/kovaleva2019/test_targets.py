"""The tokens of features, and subjects with their verbs."""

import numpy as np
import pytest

from analysis.encoders.models import load_tokenizer
from analysis.papers.kovaleva2019.names import CLS, FEATURES, SEP
from analysis.papers.kovaleva2019.reading import Targets, find_targets
from analysis.texts.examples import Example, Relation, Tag

TEXT = "another man saw the man ."
SPANS = [(0, 7), (8, 11), (12, 15), (16, 19), (20, 23), (24, 25)]
UPOS = ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"]
RELATIONS = (Relation("nsubj", 0, SPANS[1], SPANS[2]), Relation("dobj", 0, SPANS[4], SPANS[2]))


def targets_of(text_b: str | None = None) -> Targets:
    example = Example("e", TEXT, text_b)
    tags = [Tag(upos, 0, span) for upos, span in zip(UPOS, SPANS, strict=True)]
    if text_b:
        tags += [Tag("PART", 1, (0, 3))]
    return find_targets(load_tokenizer("tiny"), [example], {"e": RELATIONS}, {"e": tags})[0]


@pytest.mark.parametrize("text_b", [None, "not"])
def test_words_are_found_in_their_place(text_b: str | None):
    """The second "man" is spelled like the subject, and "another" holds "not": neither counts."""
    tokens = {
        name: np.flatnonzero(row).tolist()
        for name, row in zip(FEATURES, targets_of(text_b).features, strict=True)
        if row.any()
    }
    expected = {
        "noun": [2, 5],
        "verb": [3],
        "subject": [2],
        "object": [5],
        "punctuation": [6],
        CLS: [0],
        SEP: [7],
    }
    assert tokens == (expected | {"negation": [8], SEP: [7, 9]} if text_b else expected)


def test_subjects_of_verbs():
    [places] = targets_of().verbs
    assert (places.rows[places.original].tolist(), places.columns[places.original].tolist()) == ([2], [3])
    assert len(places.rows) == 5  # all neighbours among the six words
