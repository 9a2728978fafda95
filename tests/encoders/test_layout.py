from itertools import pairwise

import numpy as np
import pytest
from architectures import byte_level_tokenizer, tokenizer_of
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from analysis.encoders.layout import Layout, batches, layouts, piece_ranges
from analysis.encoders.models import load_tokenizer
from analysis.errors import InputError
from analysis.texts.examples import Example

PAIR = ("I don't see it .", "The cat saw the cat !")


def one(tokenizer: PreTrainedTokenizerBase, *texts: str) -> Layout:
    return layouts(tokenizer, [Example("only", *texts)])[0]


def test_pair_and_single_text_by_hand():
    tokenizer = load_tokenizer("tiny")
    layout = one(tokenizer, *PAIR)
    assert " ".join(layout.tokens) == "[CLS] i don ' t see it . [SEP] the cat saw the cat ! [SEP]"
    assert layout.text.tolist() == [-1] + [0] * 7 + [-1] + [1] * 6 + [-1]
    assert layout.sentence.tolist() == [0] * 8 + [1] * 8
    assert layout.type_ids.tolist() == [0] * 9 + [1] * 7
    for mark, places in (("cls", [0]), ("sep", [8, 15]), ("punctuation", [3, 7, 14])):
        assert np.flatnonzero(getattr(layout, mark)).tolist() == places
    written = [PAIR[t][a:b] for t, (a, b) in zip(layout.text, layout.spans, strict=True) if t >= 0]
    assert " ".join(written) == "I don ' t see it . The cat saw the cat !"
    layout = one(tokenizer, "Unbelievable")
    assert layout.tokens == ("[CLS]", "unbelievable", "[SEP]")
    assert layout.text.tolist() == [-1, 0, -1]
    assert layout.sentence.tolist() == [0, 0, 1]


def test_two_middle_separators_of_roberta_and_punctuation_through_the_spelling_of_byte_level_tokens():
    texts = ("The cat , sat .", "The dog — saw it ? .")
    layout = one(byte_level_tokenizer(), *texts)
    first, *others = np.flatnonzero(layout.sep)
    assert others == [first + 1, len(layout) - 1]
    assert layout.sentence.tolist() == [0] * first + [1] * (len(layout) - first)
    second = [1] * (len(layout) - first - 3)
    assert layout.text.tolist() == [-1] + [0] * (first - 1) + [-1] * 2 + second + [-1]
    assert np.flatnonzero(layout.cls).tolist() == [0]
    assert "Ġ," in layout.tokens
    spelt = [texts[text][start:end] for text, (start, end) in zip(layout.text, layout.spans, strict=True)]
    marks = [spelling for spelling, is_mark in zip(spelt, layout.punctuation, strict=True) if is_mark]
    assert marks == [spelling for spelling in spelt if spelling in {*",.—?"}]
    assert {*marks} == {*",.—?"}


def blank(length: int) -> Layout:
    zeros, none = np.zeros(length, int), np.zeros(length, bool)
    return Layout("", ("x",) * length, *[zeros] * 3, np.zeros((length, 2), int), *[none] * 4)


@pytest.mark.parametrize(("budget", "most"), [(1, 32), (100, 32), (100, 3), (10_000, 32)])
def test_batches_hold_every_sequence_once_within_the_budget(budget: int, most: int):
    lengths = np.random.default_rng(0).integers(3, 60, 57).tolist()
    plan = list(batches([blank(length) for length in lengths], budget, most))
    assert sorted(index for batch in plan for index in batch) == list(range(57))
    assert [lengths[index] for batch in plan for index in batch] == sorted(lengths)
    for batch in plan:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget
    for batch, following in pairwise(plan):
        assert len(batch) == most or (len(batch) + 1) * lengths[following[0]] > budget


# One family of each kind of tokenizer.
KINDS = ("bert", "roberta", "xlm-roberta", "deberta-v2")
FAST = settings(max_examples=40, deadline=None, derandomize=True, database=None)
WORDS = st.sampled_from(
    ["a", "The", "cat", "didn't", ",", "é", "e\u0301", "😀", "[SEP]", "</s>", "<s>x", "ﬁ", "中文", "\t"]
)
TEXTS = st.one_of(st.lists(WORDS, min_size=1, max_size=30).map(" ".join), st.text(max_size=40))


def lay(kind: str, *texts: str | None, max_tokens: int = 128) -> Layout | None:
    """The layout, or None if a text has no word piece."""
    try:
        return layouts(tokenizer_of(kind), [Example("a", *texts)], max_tokens)[0]
    except InputError as error:
        if "has no word piece" not in str(error):
            raise
        return None


@pytest.mark.parametrize("kind", KINDS)
@FAST
@given(first=TEXTS, second=st.none() | TEXTS)
def test_spans_are_in_order_and_pieces_in_their_segments(kind: str, first: str, second: str | None):
    layout = lay(kind, first, second)
    if layout is None:
        return
    special = layout.text < 0
    assert layout.cls.tolist() == [True] + [False] * (len(layout) - 1)
    assert layout.sep[-1]
    assert (special == (layout.cls | layout.sep)).all()
    assert not layout.spans[special].any()
    for number, text in enumerate(filter(None, (first, second))):
        pieces = np.flatnonzero(layout.text == number)
        assert (np.diff(pieces) == 1).all()  # a segment is whole
        spans = layout.spans[pieces]
        assert ((spans >= 0) & (spans <= len(text))).all()
        assert (np.diff(spans, axis=0) >= 0).all()
        assert (spans[:, 0] <= spans[:, 1]).all()
        for piece, (start, end) in zip(pieces, spans, strict=True):
            if start < end:
                [[left, right]] = piece_ranges(layout, number, np.array([[start, end]]))
                assert left <= piece < right
    assert (np.diff(layout.sentence) >= 0).all()
    assert (np.diff(layout.places, axis=0) >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
@FAST
@given(words=st.lists(st.sampled_from(["a", "cat", "dog", "the", "saw", "it"]), min_size=1, max_size=40))
def test_spans_tile_the_words_of_a_text(kind: str, words: list[str]):
    text = "  ".join(words)
    layout = lay(kind, text)
    blank = np.isin(layout.tokens, ["▁", "Ġ"])  # alone, it has the place of the character behind it
    spelt = "".join(text[start:end] for start, end in layout.spans[(layout.text == 0) & ~blank])
    assert spelt.replace(" ", "") == "".join(words)


@pytest.mark.parametrize("kind", KINDS)
@FAST
@given(first=TEXTS, second=st.none() | TEXTS, most=st.integers(8, 40))
def test_truncation_keeps_the_start_of_both_texts(kind: str, first: str, second: str | None, most: int):
    whole = lay(kind, first, second)
    if whole is None:
        return
    cut = lay(kind, first, second, max_tokens=most)
    assert len(cut) == min(most, len(whole))
    assert len(cut) + cut.cut == len(whole) + whole.cut
    assert cut.sep.sum() == whole.sep.sum()
    lengths = []
    for number in range(whole.text.max() + 1):
        before, after = (np.flatnonzero(layout.text == number) for layout in (whole, cut))
        lengths.append((len(before), len(after)))
        for name in ("input_ids", "spans", "punctuation", "unknown"):
            expected = getattr(whole, name)[before[: len(after)]]
            np.testing.assert_array_equal(getattr(cut, name)[after], expected)
    assert all(after > 0 for _, after in lengths)
    longest = max(after for _, after in lengths)  # a text that loses pieces stays as long as the other
    assert all(after >= longest - 1 for before, after in lengths if after < before)
