"""Vectors of words without context: GloVe from a text file, or vectors from an encoder's embeddings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float32
from sklearn.decomposition import PCA
from torch.nn.utils.rnn import pad_sequence

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.files import expand

DIMENSION = 100  # of the vectors in Clark 2019
FIRST = 1000  # lines of a file from which the number of dimensions is read


class WordVectors(NamedTuple):
    """A vector for each of a list of words, 0 for unknown words, and a description of the vectors."""

    values: Float32[np.ndarray, "word dimension"]
    label: str
    unknown: int


def word_vectors(
    encoder: Encoder, forms: Sequence[str], glove: str | Path | None = None, dimension: int = DIMENSION
) -> WordVectors:
    """Vectors of words: those of a GloVe file, or else principal components of the encoder's word embeddings.

    A word is looked up in GloVe in lower case; words in the file may contain spaces. The components (at most
    `dimension`) are those of the mean embeddings of each word's pieces, over the different words given. They are
    divided by one number, so that their mean square is 1. They do not replace GloVe for a comparison of numbers.
    Source: Clark 2019, 5 (GloVe).
    """
    if glove is not None:
        return _glove(forms, glove)
    vocabulary, places = np.unique(np.asarray(forms, dtype=str), return_inverse=True)
    means = _static(encoder, vocabulary.tolist())
    size = min(dimension, *means.shape)
    components = PCA(size, svd_solver="full").fit_transform(means)
    components /= np.sqrt((components**2).mean()) or 1
    label = f"{size} principal components of the word embeddings of {encoder.name}"
    return WordVectors(components.astype(np.float32)[places], label, 0)


def _static(encoder: Encoder, vocabulary: list[str]) -> Float32[np.ndarray, "word dimension"]:
    """The mean of the embeddings of each word's pieces."""
    table = encoder.model.get_input_embeddings().weight.detach().cpu()
    pieces = encoder.tokenizer(vocabulary, add_special_tokens=False, verbose=False)["input_ids"]
    padded = pad_sequence([torch.tensor(ids, dtype=torch.long) for ids in pieces], batch_first=True)
    counts = torch.tensor([len(ids) for ids in pieces])
    inside = (torch.arange(padded.shape[1]) < counts[:, None]).float()
    totals = torch.nn.functional.embedding_bag(padded, table, mode="sum", per_sample_weights=inside)
    return (totals / counts.clamp(min=1)[:, None]).numpy()


def _glove(forms: Sequence[str], glove: str | Path) -> WordVectors:
    path = expand(glove)
    vocabulary, places = np.unique([form.lower() for form in forms], return_inverse=True)
    numbers_of_words = dict(zip(vocabulary.tolist(), range(len(vocabulary)), strict=True))
    vectors_by_word: dict[int, np.ndarray] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for place, word, numbers in _entries(lines, path):
                if word in numbers_of_words:
                    vectors_by_word[numbers_of_words[word]] = _vector(numbers, place)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is not readable as GloVe vectors (each line a word and its numbers): {error}"
        ) from error
    if not vectors_by_word:
        raise InputError(f"{path} has none of the words: give GloVe vectors in text form")
    vectors = np.stack(list(vectors_by_word.values()))
    values = np.zeros((len(vocabulary), vectors.shape[1]), np.float32)
    values[list(vectors_by_word)] = vectors
    has_vector = np.isin(places, list(vectors_by_word))
    return WordVectors(values[places], path.stem, int((~has_vector).sum()))


def _entries(lines: Iterator[str], path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """The position, the word and the numbers of every line.

    A word may contain spaces (`. . .` in GloVe 840B). So a line is split from its end, into as many numbers as most of
    the first lines have.
    """
    first = list(islice(lines, FIRST))
    if not first:
        return
    size = Counter(line.rstrip("\r\n ").count(" ") for line in first).most_common(1)[0][0]
    for number, line in enumerate(chain(first, lines), 1):
        word, *numbers = line.rstrip("\r\n ").rsplit(" ", size)
        if len(numbers) != size or " " in word and _is_number(word.rpartition(" ")[2]):
            count = line.rstrip().count(" ")
            raise InputError(f"{path}, line {number}: {count} numbers where others have {size}: correct it")
        yield f"{path}, line {number}", word, numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _vector(numbers: list[str], place: str) -> Float32[np.ndarray, " dimension"]:
    try:
        return np.array(numbers, dtype=np.float32)
    except ValueError as error:
        raise InputError(
            f"{place}: {error}: give a word and its numbers in each line, as in GloVe"
        ) from error
