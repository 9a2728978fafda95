"""Tokens, special tokens, texts and spans of sequences, and batches of similar length."""

from itertools import pairwise

import numpy as np
import pytest
from architectures import byte_level_tokenizer
from transformers import PreTrainedTokenizerBase

from analysis.encoders.layout import Layout, batches, layouts
from analysis.encoders.models import load_tokenizer
from analysis.texts.examples import Example

PAIR = ("I don't see it .", "The cat saw the cat !")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    """WordPiece, lower-cased."""
    return load_tokenizer("tiny")


def one(tokenizer: PreTrainedTokenizerBase, *texts: str) -> Layout:
    """The layout of one sequence."""
    return layouts(tokenizer, [Example("only", *texts)])[0]


def test_pair_by_hand(tokenizer):
    layout = one(tokenizer, *PAIR)
    assert " ".join(layout.tokens) == "[CLS] i don ' t see it . [SEP] the cat saw the cat ! [SEP]"
    assert layout.text.tolist() == [-1] + [0] * 7 + [-1] + [1] * 6 + [-1]
    assert layout.sentence.tolist() == [0] * 8 + [1] * 8
    assert layout.type_ids.tolist() == [0] * 9 + [1] * 7
    for mark, places in (("cls", [0]), ("sep", [8, 15]), ("punctuation", [3, 7, 14])):
        assert np.flatnonzero(getattr(layout, mark)).tolist() == places
    written = [PAIR[t][a:b] for t, (a, b) in zip(layout.text, layout.spans, strict=True) if t >= 0]
    assert " ".join(written) == "I don ' t see it . The cat saw the cat !"
    assert layout.cut == 0


def test_single_text_and_single_word(tokenizer):
    layout = one(tokenizer, "Unbelievable")
    assert layout.tokens == ("[CLS]", "unbelievable", "[SEP]")
    assert layout.text.tolist() == [-1, 0, -1]
    assert layout.sentence.tolist() == [0, 0, 1]


def test_two_middle_separators_of_roberta():
    layout = one(byte_level_tokenizer(), "The cat , sat .", "The dog — saw it .")
    first, *others = np.flatnonzero(layout.sep)
    assert others == [first + 1, len(layout) - 1]
    assert layout.sentence.tolist() == [0] * first + [1] * (len(layout) - first)
    second = [1] * (len(layout) - first - 3)
    assert layout.text.tolist() == [-1] + [0] * (first - 1) + [-1] * 2 + second + [-1]
    assert np.flatnonzero(layout.cls).tolist() == [0]


def test_punctuation_is_found_through_the_spelling_of_byte_level_tokens():
    text = "The cat , sat — . did ?"
    layout = one(byte_level_tokenizer(), text)
    assert "Ġ," in layout.tokens
    assert {text[a:b] for a, b in layout.spans[layout.punctuation]} == {",", "—", ".", "?"}
    assert not {text[a:b] for a, b in layout.spans[~layout.punctuation]} & {",", "—", ".", "?"}


def blank(length: int) -> Layout:
    """A layout with only a length."""
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
