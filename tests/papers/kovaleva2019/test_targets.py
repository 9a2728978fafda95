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


def tokens(targets: Targets, mode: str, feature: str) -> list[str]:
    mask = targets.marked[MODES.index(mode), FEATURES.index(feature)]
    return [targets.layout.tokens[place] for place in np.flatnonzero(mask)]


def places(targets: Targets, mode: str, feature: str) -> list[int]:
    return np.flatnonzero(targets.marked[MODES.index(mode), FEATURES.index(feature)]).tolist()


def test_words_are_found_in_their_place():
    targets = found()
    assert places(targets, "aligned", "noun") == [2, 5]
    assert places(targets, "aligned", "subject") == [2]
    assert places(targets, "aligned", "object") == [5]
    assert tokens(targets, "aligned", "verb") == ["saw"]
    assert places(targets, "aligned", "punctuation") == [6]
    assert (places(targets, "aligned", CLS), places(targets, "aligned", SEP)) == ([0], [7])


def test_absent_features_count_as_zero_in_released_code_but_negation():
    targets = found()
    absent = targets.absent[MODES.index("faithful")]
    assert absent[FEATURES.index("pronoun")] == 0
    assert np.isnan(targets.absent[MODES.index("aligned")]).all()
    # "another" holds "not", but no piece is spelt so.
    assert tokens(targets, "faithful", "negation") == []
    assert absent[FEATURES.index("negation")] == 0
    assert tokens(found("not"), "aligned", "negation") == ["not"]
    assert tokens(found("not"), "faithful", "negation") == ["not"]


def test_subjects_of_verbs():
    targets = found()
    [places] = targets.verbs
    assert (places.rows[places.own].tolist(), places.columns[places.own].tolist()) == ([2], [3])
    assert len(places.rows) == 5  # all neighbours among the six words
    assert (targets.zipped.rows.tolist(), targets.zipped.columns.tolist()) == ([[2]], [[3]])


def test_released_pairs_take_every_piece_that_is_spelt_alike_in_order():
    """The subject's spelling stands twice: both places count, where first occurrences would give one of them twice."""
    tokenizer = load_tokenizer("tiny")
    example = Example("e", "the man saw the man . the man ran")
    words = {
        word: (example.text_a.index(word), example.text_a.index(word) + len(word)) for word in ("saw", "ran")
    }
    men = [(at, at + 3) for at in (4, 16, 26)]
    arcs = (Relation("nsubj", 0, men[0], words["saw"]), Relation("nsubj", 0, men[2], words["ran"]))
    tags = tuple(Tag("VERB", 0, span) for span in words.values())
    [targets] = find_targets(tokenizer, [example], {"e": arcs}, {"e": tags})
    ids = targets.layout.input_ids.tolist()
    man, verbs = (tokenizer.convert_tokens_to_ids(each) for each in ("man", ["saw", "ran"]))
    subjects = [place for place, each in enumerate(ids) if each == man]
    heads = [place for place, each in enumerate(ids) if each in verbs]
    assert len(subjects) == 3
    assert targets.zipped.rows.tolist() == [subjects[:2]]
    assert targets.zipped.columns.tolist() == [heads[:2]]
