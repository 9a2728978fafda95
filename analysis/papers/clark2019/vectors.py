"""Vectors of words out of context: GloVe from a text file, or what an encoder's embeddings say of them."""

from collections.abc import Sequence
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

DIMENSION = 100  # of the vectors of Clark 2019


class WordVectors(NamedTuple):
    """A vector for each of a list of words, 0 for an unknown one, and what the vectors are."""

    values: Float32[np.ndarray, "word dimension"]
    label: str
    unknown: int


def word_vectors(
    encoder: Encoder, forms: Sequence[str], glove: str | Path | None = None, dimension: int = DIMENSION
) -> WordVectors:
    """Vectors of words: those of a GloVe file, or else principal components of the encoder's word embeddings.

    A word is looked up in GloVe in lower case. The components, `dimension` at most, are of the means of the
    embeddings of each word's pieces, over the different words given, and divided by one number so that their mean
    square is 1; they are no substitute for GloVe where numbers are compared. Source: Clark 2019, 5 (GloVe).
    """
    if glove is not None:
        return _glove(forms, glove)
    vocabulary, places = np.unique(np.asarray(forms, dtype=str), return_inverse=True)
    means = _static(encoder, vocabulary.tolist())
    size = min(dimension, *means.shape)
    found = PCA(size, svd_solver="full").fit_transform(means)
    found /= np.sqrt((found**2).mean()) or 1
    label = f"{size} principal components of the word embeddings of {encoder.name}"
    return WordVectors(found.astype(np.float32)[places], label, 0)


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
    wanted = dict(zip(vocabulary.tolist(), range(len(vocabulary)), strict=True))
    found: dict[int, np.ndarray] = {}
    size = None
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                word, *numbers = line.rstrip().split(" ")
                size = size or len(numbers)
                if len(numbers) != size:
                    raise InputError(
                        f"{path}, line {number}: {len(numbers)} numbers where others have {size}: mend it"
                    )
                if word in wanted:
                    found[wanted[word]] = _vector(numbers, f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is not readable as GloVe vectors (a word and its numbers a line): {error}"
        ) from error
    if not found:
        raise InputError(f"{path} has none of the words: give GloVe vectors in text form")
    values = np.zeros((len(vocabulary), size), np.float32)
    values[list(found)] = np.stack(list(found.values()))
    known = np.isin(places, list(found))
    return WordVectors(values[places], path.stem, int((~known).sum()))


def _vector(numbers: list[str], place: str) -> Float32[np.ndarray, " dimension"]:
    try:
        return np.array(numbers, dtype=np.float32)
    except ValueError as error:
        raise InputError(f"{place}: {error}: give a word and its numbers a line, as GloVe does") from error
