"""Syntactic heads predicted by attention heads: for every word, the word that an attention head picks."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int16
from torch import Tensor

from analysis.encoders.layout import stream
from analysis.encoders.models import Encoder, cached_casts
from analysis.encoders.tap import read_layers
from analysis.errors import InputError
from analysis.scores.words import LIMIT, WordMaps, Words, read_batch, split_words

# Two ways to read a map: the word to which the dependent attends most, or the word that attends most to the dependent.
DIRECTIONS = ("dependent to head", "head to dependent")


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
    """The head of every word by every layer, attention head and direction (see DIRECTIONS).

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
    predicted = np.zeros((len(words), encoder.layers, len(DIRECTIONS), encoder.heads), np.int16)

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


def cross_fitted(
    correct: Bool[np.ndarray, " case *place"],
    first_half: Bool[np.ndarray, " case"],
    scored: Bool[np.ndarray, " case *place"] | None = None,
) -> Bool[np.ndarray, " case"]:
    """Whether each case is right at the place (a head) that is best in the half without the case.

    Each half chooses a place by `correct` for the other half, of equally good places the first. The result is read from
    `scored`, the answers on another map, or else from `correct` itself.
    """
    scored = correct if scored is None else scored
    result = np.zeros(len(correct), bool)
    for chosen_on in (first_half, ~first_half):
        accuracy = correct[chosen_on].mean(axis=0)
        best = np.unravel_index(accuracy.argmax(), accuracy.shape)
        result[~chosen_on] = scored[(~chosen_on, *best)]
    return result
