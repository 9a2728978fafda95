"""Given words as word pieces, and attention between words against loops over words and pieces."""

import numpy as np
import pytest
import torch
from architectures import SENTENCES as LEARNT
from architectures import byte_level_tokenizer

from analysis.encoders.tap import tap
from analysis.scores.words import (
    NO_PIECES,
    NO_WORDS,
    ROWS,
    TOO_LONG,
    WordMerge,
    piece_counts,
    read_batch,
    read_word_maps,
    split_words,
    word_maps,
)

SENTENCES = [
    ["The", "xylophonists", "sleep", "."],
    ["It", "rains"],
    ["Unbelievably", ",", "a", "tokenizer", "splits", "antidisestablishmentarianism", "."],
]


@pytest.fixture(scope="module")
def sentences(tiny):
    return split_words(tiny.tokenizer, SENTENCES).kept


def merged(attention: np.ndarray, word: np.ndarray, rows: str) -> np.ndarray:
    """Oracle: one map between pieces as one between words, pair by pair."""
    pieces = [np.flatnonzero(word == number) for number in range(word[-1] + 1)]
    reduce = {"mean": np.mean, "first": lambda values: values[0], "max": np.max}[rows]
    return np.array([[reduce(attention[row][:, column].sum(axis=1)) for column in pieces] for row in pieces])


def test_words_keep_their_places(tiny, sentences):
    for arguments, result in zip(SENTENCES, sentences, strict=True):
        tokens = tiny.tokenizer.convert_ids_to_tokens(result.input_ids.tolist())
        assert tokens[0] == "[CLS]"
        assert tokens[-1] == "[SEP]"
        assert result.words == len(arguments)
        for place, form in enumerate(arguments, 1):
            own_rows = [token for token, word in zip(tokens, result.word, strict=True) if word == place]
            assert own_rows == tiny.tokenizer.tokenize(form)
        assert not result.type_ids.any()
    assert (np.bincount(sentences[0].word) > 1).any(), "no word is split"


def test_byte_level_words_are_spelled_as_in_running_text():
    """RoBERTa's vocabulary has most words with the blank before them: without it "dog" would be other pieces."""
    tokenizer = byte_level_tokenizer()
    arguments = [sentence.split() for sentence in LEARNT]
    kept = split_words(tokenizer, arguments).kept
    for words, result in zip(arguments, kept, strict=True):
        expected = tokenizer.tokenize("".join(f" {word}" for word in words))
        assert tokenizer.convert_ids_to_tokens(result.input_ids.tolist()) == ["<s>", *expected, "</s>"]
        assert result.words == len(words)
        for place, word in enumerate(words, 1):
            assert (result.word == place).sum() == len(tokenizer.tokenize(f" {word}"))
    assert tokenizer.tokenize("dog") != tokenizer.tokenize(" dog")
    assert piece_counts(tokenizer, arguments[0]).tolist() == np.bincount(kept[0].word)[1:-1].tolist()


def test_left_out_sentences_are_counted_and_shift_nothing(tiny):
    arguments = [["a"] * 20, ["a", "\u200b", "b"], [], ["It", "rains"], [" ", "x"]]
    split = split_words(tiny.tokenizer, arguments, max_tokens=10)
    assert split.left_out == {TOO_LONG: 1, NO_PIECES: 2, NO_WORDS: 1}
    assert [item.number for item in split.kept] == [3]


@pytest.mark.parametrize("rows", ROWS)
def test_maps_of_a_padded_batch_against_loops(tiny, sentences, rows: str):
    pieces, layers = [], []
    with tap(tiny.model, lambda _, weights: pieces.append(weights.numpy())), torch.inference_mode():
        tiny.model(**tiny.inputs(sentences))
    read_batch(tiny, sentences, lambda layer, maps: layers.append((layer, maps.numpy())), rows, check=True)
    assert [layer for layer, _ in layers] == list(range(tiny.layers))
    for (_, result), attention in zip(layers, pieces, strict=True):
        for number, item in enumerate(sentences):
            size = item.words + 2
            for head in range(tiny.heads):
                expected = merged(attention[number, head, : len(item), : len(item)], item.word, rows)
                np.testing.assert_allclose(result[number, head, :size, :size], expected, atol=1e-6)
            assert not result[number, :, size:].any()
            assert not result[number, :, :, size:].any()
    size = sentences[0].words + 2
    alone = np.stack([result[0, :, :size, :size] for _, result in layers])
    np.testing.assert_allclose(word_maps(tiny, sentences[0], rows), alone, atol=1e-5)


def test_without_special_tokens_the_rest_is_the_same(tiny, sentences):
    attention = torch.rand(3, 2, *2 * [max(map(len, sentences))])
    whole, words = (WordMerge(sentences, special=special)(attention) for special in (True, False))
    for number, item in enumerate(sentences):
        inside = slice(0, item.words)
        within = whole[number, :, 1 : item.words + 1, 1 : item.words + 1]
        torch.testing.assert_close(words[number, :, inside, inside], within)
        assert not words[number, :, item.words :].any()
        assert not words[number, :, :, item.words :].any()


def test_streamed_maps_do_not_depend_on_the_batch(tiny, sentences):
    result: dict[tuple[int, int], np.ndarray] = {}

    def read(indices, layer, maps):
        result.update({(index, layer): item.numpy() for index, item in zip(indices, maps, strict=True)})

    read_word_maps(tiny, sentences, read, budget=1, progress=False)
    alone = dict(result)
    read_word_maps(tiny, sentences, read, progress=False)
    assert len(result) == len(sentences) * tiny.layers
    for (index, layer), maps in alone.items():
        size = sentences[index].words + 2
        np.testing.assert_allclose(result[index, layer][:, :size, :size], maps[:, :size, :size], atol=1e-5)
