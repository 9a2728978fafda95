from itertools import chain

import numpy as np
import pytest
import torch
from architectures import SENTENCES as RUNNING_TEXT
from architectures import byte_level_tokenizer

from analysis.encoders.models import load_tokenizer
from analysis.encoders.tap import read_layers
from analysis.scores import words

SENTENCES = [
    ["The", "xylophonists", "sleep", "."],
    ["It", "rains"],
    ["Unbelievably", ",", "a", "tokenizer", "splits", "antidisestablishmentarianism", "."],
]


@pytest.fixture(scope="module")
def sentences(tiny):
    return words.split_words(tiny.tokenizer, SENTENCES).kept


@pytest.mark.parametrize(
    ("tokenizer", "sentences", "space"),
    [
        (load_tokenizer("tiny"), SENTENCES, ""),
        (byte_level_tokenizer(), [text.split() for text in RUNNING_TEXT], " "),  # before most pieces
    ],
    ids=["word pieces", "byte level"],
)
def test_words_keep_their_places(tokenizer, sentences, space: str):
    for forms, sentence in zip(sentences, words.split_words(tokenizer, sentences).kept, strict=True):
        pieces = [tokenizer.tokenize(space + form) for form in forms]
        tokens = [tokenizer.cls_token, *chain.from_iterable(pieces), tokenizer.sep_token]
        assert tokenizer.convert_ids_to_tokens(sentence.input_ids.tolist()) == tokens
        counts = [*map(len, pieces)]
        assert sentence.word.tolist() == np.repeat(range(len(forms) + 2), [1, *counts, 1]).tolist()
        assert words.piece_counts(tokenizer, forms).tolist() == counts
        assert sentence.words == len(forms)


def test_left_out_sentences_are_counted_and_shift_nothing(tiny):
    sequences = [["a"] * 20, ["a", "\u200b", "b"], [], ["It", "rains"], [" ", "x"]]
    split = words.split_words(tiny.tokenizer, sequences, max_tokens=10)
    assert split.left_out == {words.TOO_LONG: 1, words.NO_PIECES: 2, words.NO_WORDS: 1}
    assert [item.number for item in split.kept] == [3]


def merged(attention: np.ndarray, word: np.ndarray, rows: str) -> np.ndarray:
    """One map between pieces as one between words, pair by pair."""
    pieces = [np.flatnonzero(word == number) for number in range(word[-1] + 1)]
    reduce = {"mean": np.mean, "first": lambda values: values[0]}[rows]
    return np.array([[reduce(attention[row][:, column].sum(axis=1)) for column in pieces] for row in pieces])


@pytest.mark.parametrize("rows", words.ROWS)
def test_maps_of_a_padded_batch_against_loops(tiny, sentences, rows: str):
    layers: list[np.ndarray] = []
    words.read_batch(tiny, sentences, lambda _, maps: layers.append(maps.numpy()), rows)
    assert len(layers) == tiny.layers
    for index, sentence in enumerate(sentences):
        size, pieces = sentence.words + 2, []
        read_layers(tiny, [sentence], lambda _, maps, pieces=pieces: pieces.append(maps[0].numpy()))
        expected = np.array([[merged(head, sentence.word, rows) for head in layer] for layer in pieces])
        result = np.stack(layers)[:, index]
        np.testing.assert_allclose(result[:, :, :size, :size], expected, atol=1e-5)
        assert not result[:, :, size:].any()
        assert not result[..., size:].any()
        np.testing.assert_allclose(words.word_maps(tiny, sentence, rows), expected, atol=1e-5)


def test_without_special_tokens_the_rest_is_the_same(sentences):
    attention = torch.rand(3, 2, *2 * [max(map(len, sentences))])
    whole, inner = (words.word_merge(sentences, special=special)(attention) for special in (True, False))
    for number, item in enumerate(sentences):
        end = item.words
        torch.testing.assert_close(inner[number, :, :end, :end], whole[number, :, 1 : end + 1, 1 : end + 1])
        assert not inner[number, :, end:].any()
        assert not inner[number, :, :, end:].any()
