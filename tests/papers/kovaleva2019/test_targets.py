"""The tokens of features, word by word and as the released code finds them."""

import numpy as np

from analysis.encoders.models import load_tokenizer
from analysis.papers.kovaleva2019.names import CLS, FEATURES, SEP
from analysis.papers.kovaleva2019.reading import MODES, Targets, find_targets
from analysis.texts.examples import Example, Relation, Tag

TEXT = "another man saw the man ."
SPANS = [(0, 7), (8, 11), (12, 15), (16, 19), (20, 23), (24, 25)]
UPOS = ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"]
RELATIONS = (Relation("nsubj", 0, SPANS[1], SPANS[2]), Relation("dobj", 0, SPANS[4], SPANS[2]))


def found(text_b: str | None = None) -> Targets:
    example = Example("e", TEXT, text_b)
    tags = [Tag(upos, 0, span) for upos, span in zip(UPOS, SPANS, strict=True)]
    if text_b:
        tags += [Tag("PART", 1, (0, 3))]
    return find_targets(load_tokenizer("tiny"), [example], {"e": RELATIONS}, {"e": tags})[0]


def places(targets: Targets, mode: str) -> dict[str, list[int]]:
    """The tokens of the features that are there."""
    marked = targets.marked[MODES.index(mode)]
    return {
        name: np.flatnonzero(row).tolist() for name, row in zip(FEATURES, marked, strict=True) if row.any()
    }


def test_words_are_found_in_their_place():
    known = {"noun": [2, 5], "verb": [3], "subject": [2], "object": [5]}
    known |= {"punctuation": [6], CLS: [0], SEP: [7]}
    assert places(found(), "aligned") == known
    assert places(found(), "faithful") == known | {"subject": [2, 5], "object": [2, 5]}  # spelt alike


def test_absent_features_count_as_zero_in_released_code_but_negation():
    targets = found()
    absent = targets.absent[MODES.index("faithful")]
    assert absent[FEATURES.index("pronoun")] == 0
    assert np.isnan(targets.absent[MODES.index("aligned")]).all()
    # "another" holds "not", but no piece is spelt so.
    assert absent[FEATURES.index("negation")] == 0
    for mode in MODES:
        assert places(found("not"), mode)["negation"] == [8]


def test_subjects_of_verbs():
    targets = found()
    [places] = targets.verbs
    assert (places.rows[places.own].tolist(), places.columns[places.own].tolist()) == ([2], [3])
    assert len(places.rows) == 5  # all neighbours among the six words
    assert (targets.zipped.rows.tolist(), targets.zipped.columns.tolist()) == ([[2]], [[3]])


def test_released_pairs_take_every_piece_that_is_spelt_alike_in_order():
    """The subject's spelling stands twice: both places count, where first occurrences would give one of them twice."""
    example = Example("e", "the man saw the man . the man ran")
    saw, ran = (8, 11), (30, 33)
    arcs = (Relation("nsubj", 0, (4, 7), saw), Relation("nsubj", 0, (26, 29), ran))
    tags = (Tag("VERB", 0, saw), Tag("VERB", 0, ran))
    [targets] = find_targets(load_tokenizer("tiny"), [example], {"e": arcs}, {"e": tags})
    # "man" stands at 2, 5 and 8, the verbs at 3 and 9.
    assert (targets.zipped.rows.tolist(), targets.zipped.columns.tolist()) == ([[2, 5]], [[3, 9]])
