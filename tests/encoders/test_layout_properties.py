"""Layouts of any text: spans stand in order and leave out nothing but blanks, and truncation keeps the start."""

import numpy as np
import pytest
from architectures import tokenizer_of
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.encoders.layout import Layout, layouts, piece_ranges
from analysis.errors import InputError
from analysis.texts.examples import Example

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
    assert cut.cut == len(whole) - len(cut)
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
