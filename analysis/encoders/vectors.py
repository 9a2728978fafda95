"""Vectors of words without context: GloVe from a text file, or vectors from an encoder's embeddings."""

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

DIMENSION = 100  # of the vectors in Clark 2019


class WordVectors(NamedTuple):
    """A vector for each of a list of words, 0 for unknown words, and a description of the vectors."""

    values: Float32[np.ndarray, "word dimension"]
    label: str


def word_vectors(
    encoder: Encoder, forms: Sequence[str], glove: str | Path | None = None, dimension: int = DIMENSION
) -> WordVectors:
    """Vectors of words: those of a GloVe file, or else principal components of the encoder's word embeddings.

    A word is looked up in GloVe in lower case. The components (at most `dimension`) are those of the mean embeddings of
    each word's pieces, over the different words given. They are divided by one number, so that their mean square is 1.
    They do not replace GloVe for a comparison of numbers. Source: Clark 2019, 5 (GloVe).
    """
    if glove is not None:
        return _glove(forms, glove)
    vocabulary, places = np.unique(np.asarray(forms, dtype=str), return_inverse=True)
    means = _static(encoder, vocabulary.tolist())
    size = min(dimension, *means.shape)
    components = PCA(size, svd_solver="full").fit_transform(means)
    components /= np.sqrt((components**2).mean()) or 1
    label = f"{size} principal components of the word embeddings of {encoder.name}"
    return WordVectors(components.astype(np.float32)[places], label)


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
    """The vectors of a file with a word and its numbers in every line; a few words of GloVe 840B contain spaces."""
    path = expand(glove)
    words = [form.lower() for form in forms]
    vectors = dict.fromkeys(words)
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            size = next(lines).rstrip().count(" ")
            lines.seek(0)
            for line in lines:
                word, *numbers = line.rstrip("\r\n ").rsplit(" ", size)
                if word in vectors:
                    vectors[word] = np.array(numbers, np.float32)
        known = {word: vector for word, vector in vectors.items() if vector is not None}
        table = np.stack([known.get(word, np.zeros(size, np.float32)) for word in words])
    except (OSError, ValueError, StopIteration) as error:
        raise InputError(
            f"{path} is not readable as GloVe vectors (each line a word and its numbers): {error}"
        ) from error
    if not known:
        raise InputError(f"{path} has none of the words: give GloVe vectors in text form")
    return WordVectors(table, path.stem)
