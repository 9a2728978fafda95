"""From words to word pieces and back: attention between words, and the syntactic head it predicts for each word."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int, Int16
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from analysis.encoders.layout import read_ids, stream
from analysis.encoders.models import Encoder, cached_casts
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


# Two ways to read a map: the word to which the dependent attends most, or the word that attends most to the dependent.
ARC_DIRECTIONS = ("dependent to head", "head to dependent")


class Attachment(NamedTuple):
    """The syntactic head of each word, according to every attention head.

    `words` are the rows of a treebank for sentences that the encoder can read. `predicted` are the positions (from 1)
    of the predicted heads of these words. `left_out` counts the other sentences, by reason.
    """

    words: pd.DataFrame
    predicted: Int16[np.ndarray, "word layer direction head"]
    left_out: dict[str, int]


def attach(
    encoder: Encoder,
    words: pd.DataFrame,
    max_tokens: int = LIMIT,
    rows: str = "mean",
    budget: int = 2048,
    progress: bool = True,
    maps: Callable[..., None] = read_layers,
) -> Attachment:
    """The head of every word by every layer, attention head and direction (see ARC_DIRECTIONS).

    `words` is that of `dependencies.read_trees`. The diagonal is set to zero, [CLS] and [SEP] are dropped, and the
    largest entry is taken, the first if several are equal; so ROOT is never predicted. Sentences that the encoder
    cannot read are left out whole and counted. The maps of a batch are reduced on the device, layer by layer. Source:
    Clark 2019, 4.2; `rows` as in `words.word_merge`, `maps` as in `words.read_batch`.
    """
    forms = [part.tolist() for _, part in words.groupby("sentence", sort=False)["form"]]
    split = split_words(encoder.tokenizer, forms, max_tokens)
    lengths = np.array([len(sentence) for sentence in forms])
    starts = np.cumsum(lengths) - lengths
    numbers = np.repeat(np.arange(len(forms)), lengths)
    readable = np.isin(numbers, [sentence.number for sentence in split.kept])
    predicted = np.zeros((len(words), encoder.layers, len(ARC_DIRECTIONS), encoder.heads), np.int16)

    def read(batch: Sequence[Words], layer: int, word_maps: WordMaps) -> None:
        inside = np.arange(word_maps.shape[-1]) < np.array([[sentence.words] for sentence in batch])
        places = np.concatenate([starts[sentence.number] + np.arange(sentence.words) for sentence in batch])
        predicted[places, layer] = _attended(word_maps).movedim(-1, 1).cpu().numpy()[inside] + 1

    encoder.check_length(max(map(len, split.kept)))
    with cached_casts(encoder):
        for _, batch, check in stream(split.kept, budget, "word maps", progress):
            read_batch(encoder, batch, partial(read, batch), rows, False, check, maps)
    return Attachment(words[readable].reset_index(drop=True), predicted[readable], split.left_out)


def _attended(maps: WordMaps) -> Int16[Tensor, "batch direction head word"]:
    """The most attended word of each word, and the word that attends most to it; the diagonal becomes zero."""
    maps.diagonal(dim1=-2, dim2=-1).zero_()
    return torch.stack([maps.argmax(-1), maps.argmax(-2)], dim=1).to(torch.int16)


def right(attachment: Attachment, scored: pd.DataFrame) -> Bool[np.ndarray, "arc layer direction head"]:
    """Whether each attention head finds the head of each arc (see `dependencies.arcs`)."""
    first = attachment.words.reset_index().drop_duplicates("sentence").set_index("sentence")["index"]
    places = (scored["sentence"].map(first) + scored["word"]).to_numpy()
    return attachment.predicted[places] == scored["head"].to_numpy()[:, None, None, None]


def documents_of(words: pd.DataFrame, scored: pd.DataFrame) -> pd.Series:
    """The document of each arc in `scored`, from the words of a treebank; its sentence, if all are of one document.

    Sentences of a document resemble each other, so that a head is not chosen on some and scored on others.
    """
    if words["document"].nunique() < 2:
        return scored["sentence"]
    return scored["sentence"].map(words.drop_duplicates("sentence").set_index("sentence")["document"])


def halves(units: pd.Series, seed: int = 0) -> Bool[np.ndarray, " row"]:
    """True for the rows of a random half of the units; each half chooses a head for scoring the other."""
    names = units.unique()
    if len(names) < 2:
        raise InputError("one half chooses and the other is scored: give at least two sentences or documents")
    first_half = np.random.default_rng(seed).permutation(names)[: len(names) // 2]
    return units.isin(first_half).to_numpy()
