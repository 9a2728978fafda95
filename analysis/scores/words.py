"""From words to word pieces and back: inputs made from given words, and attention between words instead of pieces."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from analysis.encoders.layout import read_ids
from analysis.encoders.models import Encoder
from analysis.encoders.tap import read_layers
from analysis.errors import InputError

LIMIT = 128  # word pieces of a sequence, with [CLS] and [SEP]
ROWS = ("mean", "first")
TOO_LONG, NO_PIECES, NO_WORDS = "too long", "a word without word pieces", "no words"

WordMaps = Float[Tensor, "batch head word word"]


@dataclass(frozen=True)
class Words:
    """A sentence or document given as words, in the T word pieces that an encoder reads.

    `word` is the word of each piece: [CLS] is 0, the words are 1 to `words`, [SEP] is the last. `number` is the index
    of the sequence among those given. Segment ids are all 0 (Clark 2019, the authors' code).
    """

    number: int
    input_ids: Int[np.ndarray, " token"]
    word: Int[np.ndarray, " token"]

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def id(self) -> str:
        """The number of the sequence, as text."""
        return str(self.number)

    @property
    def words(self) -> int:
        """Number of words, without [CLS] and [SEP]."""
        return int(self.word[-1]) - 1

    @property
    def type_ids(self) -> Int[np.ndarray, " token"]:
        """The segment id of each piece."""
        return np.zeros_like(self.input_ids)


class Split(NamedTuple):
    """The sequences that an encoder can read, and the number of others by the reason for leaving them out."""

    kept: list[Words]
    left_out: dict[str, int]


def split_words(
    tokenizer: PreTrainedTokenizerBase, sequences: Sequence[Sequence[str]], max_tokens: int = LIMIT
) -> Split:
    """Each sequence of words as word pieces with [CLS] and [SEP]; the numbers of words never shift.

    It leaves out, and counts, sequences of more than `max_tokens` pieces (dropped whole, as in Clark 2019), sequences
    with a word that has no piece (the tokenizer deletes its characters), and sequences without words. Byte-level
    tokenizers (RoBERTa's) see a space before every word, as in running text.
    """
    if not 3 <= max_tokens <= tokenizer.model_max_length:
        raise InputError(f"max_tokens is {max_tokens}: choose 3 to {tokenizer.model_max_length}")
    readable, left_out = [], dict.fromkeys((TOO_LONG, NO_PIECES, NO_WORDS), 0)
    for number, (words, (ids, word)) in enumerate(zip(sequences, _pieces(tokenizer, sequences), strict=True)):
        if not words:
            left_out[NO_WORDS] += 1
        elif len(np.unique(word)) < len(words) + 2:
            left_out[NO_PIECES] += 1
        elif len(ids) > max_tokens:
            left_out[TOO_LONG] += 1
        else:
            readable.append(Words(number, ids, word))
    if not readable:
        counts = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise InputError(f"no sequence of words is left ({counts}): give others or raise max_tokens")
    return Split(readable, left_out)


def _pieces(
    tokenizer: PreTrainedTokenizerBase, sequences: Sequence[Sequence[str]]
) -> Iterator[tuple[Int[np.ndarray, " token"], Int[np.ndarray, " token"]]]:
    """The ids of each sequence's pieces, and their words, numbered as in `Words`."""
    if not len(sequences):
        return
    # Byte-level vocabularies spell a word with the space before it; the words of a list have no space.
    space = "" if tokenizer.tokenize("a") == tokenizer.tokenize(" a") else " "
    spaced = [[word and space + word for word in words] for words in sequences]
    encodings = tokenizer(
        spaced, is_split_into_words=True, split_special_tokens=True, verbose=False
    ).encodings
    for words, encoding in zip(sequences, encodings, strict=True):
        last = len(words) + 1
        word = [0 if index is None else index + 1 for index in encoding.word_ids]
        word[-1] = last
        if word[0] != 0 or 0 in word[1:]:
            raise InputError(
                f"{type(tokenizer).__name__} does not put [CLS] first and [SEP] last: use a BERT-like encoder"
            )
        yield read_ids(tokenizer, encoding), np.array(word)


def piece_counts(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> Int[np.ndarray, " word"]:
    """The number of word pieces of each word."""
    [(_, word)] = _pieces(tokenizer, [words])
    return np.bincount(word, minlength=len(words) + 2)[1:-1]


def word_merge(
    batch: Sequence[Words], rows: str = "mean", device: torch.device | str = "cpu", special: bool = True
) -> Callable[[Float[Tensor, "batch head token token"]], WordMaps]:
    """The function that turns attention between the pieces of a padded batch into attention between words: R A C.

    Attention to a word is the sum over its pieces (C). `rows` says what attention from a word is: the mean over its
    pieces (`mean`, Clark 2019, 4.1), or that of its first piece (`first`, the authors' code). Word 0 is [CLS], and
    [SEP] comes after the last word; padding is 0. Without `special`, [CLS] and [SEP] are dropped, and word 0 is the
    first word.
    """
    if rows not in ROWS:
        raise InputError(f"rows is {rows!r}: choose from {', '.join(ROWS)}")
    words = max(sequence.words for sequence in batch) + 2
    belongs = np.zeros((len(batch), max(map(len, batch)), words), np.float32)
    for pieces, sequence in zip(belongs, batch, strict=True):
        pieces[np.arange(len(sequence)), sequence.word] = 1
        if not special:
            pieces[:, [0, sequence.words + 1]] = 0
    if not special:
        belongs = belongs[:, :, 1:-1]
    if rows == "mean":
        shares = belongs / belongs.sum(axis=1, keepdims=True).clip(1)
    else:
        shares = belongs * (belongs.cumsum(axis=1) == 1)
    to = torch.from_numpy(belongs).to(device)
    of = torch.from_numpy(shares).to(device).mT.contiguous()

    def merge(attention: Float[Tensor, "batch head token token"]) -> WordMaps:
        batch, heads, tokens, _ = attention.shape
        columns = (attention.reshape(batch, heads * tokens, tokens) @ to).view(batch, heads, tokens, -1)
        return of[:, None] @ columns

    return merge


def read_batch(
    encoder: Encoder,
    batch: Sequence[Words],
    read: Callable[[int, WordMaps], None],
    rows: str = "mean",
    special: bool = True,
    check: bool = False,
    maps: Callable[..., None] = read_layers,
) -> None:
    """Runs one padded batch; `read(layer, maps)` receives the word maps of every layer, which are not stored.

    `rows` and `special` are those of `word_merge`. `check` stops a run whose attention is missing, not normalised or
    falls on padding. `maps` is a source of maps (see `maps.Source`) that needs only the pieces of a sequence.
    """
    merge = word_merge(batch, rows, encoder.device, special)
    maps(encoder, batch, lambda layer, attention: read(layer, merge(attention)), check)


def word_maps(
    encoder: Encoder, sequence: Words, rows: str = "mean"
) -> Float[np.ndarray, "layer head word word"]:
    """All word maps of one sequence, with [CLS] and [SEP], for figures."""
    layers: list[np.ndarray] = []
    read_batch(encoder, [sequence], lambda _, maps: layers.append(maps[0].cpu().numpy()), rows, check=True)
    return np.stack(layers)
