"""Small models: maxima over word vectors (bag of vectors) or over the states of a BiLSTM."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from analysis.encoders.finetuning import fit
from analysis.encoders.models import Encoder
from analysis.encoders.vectors import word_vectors
from analysis.papers.niven2019.arguments import BAG, BILSTM, DOUBLED, ORIGINAL, SETUPS, Argument, expanded

DIMENSION = 300  # of the word vectors
PADDING = 0
ANSWERED = 256  # points at a time
# Learning rate and dropout by set-up, and for the adversarial training set: what the grid search of Niven 2019 chose.
RATES = {
    BAG: {"full": (0.09, 0.0), "W": (0.08, 0.1), "RW": (0.1, 0.1), "CW": (0.2, 0.1), DOUBLED: (0.1, 0.1)},
    BILSTM: {"full": (0.06, 0.1), "W": (0.06, 0.1), "RW": (0.07, 0.1), "CW": (0.05, 0.1), DOUBLED: (0.04, 0.1)},
}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """How a small model is trained; `hidden` is the size of the BiLSTM in each direction, None for a bag of vectors."""

    learning_rate: float
    dropout: float
    epochs: int
    batch_size: int = 32
    hidden: int | None = None


def published_recipe(
    model: str, setup: str, trained_on: str, epochs: int, hidden: int | None = None
) -> Recipe:
    """The recipe of Niven 2019 for a small model, but for the numbers of epochs and hidden units."""
    rate, dropout = RATES[model][setup if trained_on == ORIGINAL else DOUBLED]
    batch = 16 if model == BAG and trained_on != ORIGINAL else 32
    return Recipe(rate, dropout, epochs, batch, hidden)


class Vocabulary(NamedTuple):
    """Words with their vectors; the first row is for padding."""

    words: dict[str, int]
    vectors: Float32[np.ndarray, "word dimension"]
    label: str


def vocabulary(
    encoder: Encoder, arguments: Sequence[Argument], glove: str | Path | None = None
) -> Vocabulary:
    """The words of arguments with GloVe vectors from a file, or with vectors from the encoder's embeddings.

    Words that are not in the file get vectors drawn from N(0, 1) (Niven 2019). Departure: without a file, principal
    components of the word embeddings replace GloVe.
    """
    texts = [(argument.claim, argument.reason, *argument.warrants) for argument in arguments]
    words = sorted({word for parts in texts for text in parts for word in expanded(text)})
    vectors = word_vectors(encoder, words, glove, DIMENSION)
    values, unknown = vectors.values, ~vectors.values.any(axis=1)
    values[unknown] = np.random.default_rng(0).normal(size=(unknown.sum(), values.shape[1]))
    padding = np.zeros((1, values.shape[1]), np.float32)
    places = {word: place for place, word in enumerate(words, start=1)}
    return Vocabulary(places, np.concatenate([padding, values]).astype(np.float32), vectors.label)


@dataclass(frozen=True)
class Points:
    """Arguments as padded word numbers: the texts before the warrants, and the warrants."""

    shared: Int[Tensor, "point text word"]
    warrants: Int[Tensor, "point warrant word"]
    labels: Int[Tensor, " point"]

    def batch(self, rows: Int[Tensor, " row"]) -> tuple[Tensor, Tensor, Tensor]:
        """Some rows, without columns that are empty in all of them."""
        shared, warrants = self.shared[rows], self.warrants[rows]
        width = max(1, int((torch.cat([shared, warrants], dim=1) != PADDING).sum(-1).max()))
        return shared[..., :width], warrants[..., :width], self.labels[rows]


def points(arguments: Sequence[Argument], setup: str, words: dict[str, int], joined: bool) -> Points:
    """The arguments as a set-up shows them; `joined` makes one text from claim and reason."""
    shared = [[getattr(argument, part) for part in SETUPS[setup]] for argument in arguments]
    if joined and SETUPS[setup]:
        shared = [[" ".join(texts)] for texts in shared]
    numbers = []
    for parts, argument in zip(shared, arguments, strict=True):
        for text in (*parts, *argument.warrants):
            numbers.append(torch.tensor([words[word] for word in expanded(text)] or [PADDING]))
    padded = pad_sequence(numbers, batch_first=True).unflatten(0, (len(arguments), -1))
    labels = torch.tensor([argument.label for argument in arguments])
    return Points(padded[:, :-2], padded[:, -2:], labels)


class PooledWords(nn.Module):
    """One number for each warrant: a linear function of the maxima over the words of each text.

    Words are vectors, trained with the rest, or outputs of a BiLSTM that all texts share. Source: Niven 2019, released
    code.
    """

    def __init__(self, vectors: Float32[np.ndarray, "word dimension"], texts: int, recipe: Recipe):
        super().__init__()
        values, size, hidden = torch.tensor(vectors), vectors.shape[1], recipe.hidden
        self.embedding = nn.Embedding.from_pretrained(values, freeze=False, padding_idx=PADDING)
        self.lstm = nn.LSTM(size, hidden, batch_first=True, bidirectional=True) if hidden else None
        self.dropout = nn.Dropout(recipe.dropout)
        self.linear = nn.Linear((texts + 1) * (2 * hidden if hidden else size), 1)

    def forward(
        self, shared: Int[Tensor, "point text word"], warrants: Int[Tensor, "point warrant word"]
    ) -> Float[Tensor, "point warrant"]:
        """The logits of the warrants."""
        pooled = self._pooled(torch.cat([shared, warrants], dim=1))
        before = pooled[:, : shared.shape[1]].flatten(1)[:, None].expand(-1, warrants.shape[1], -1)
        return self.linear(self.dropout(torch.cat([before, pooled[:, shared.shape[1] :]], dim=-1)))[..., 0]

    def _pooled(self, words: Int[Tensor, "point text word"]) -> Float[Tensor, "point text feature"]:
        flat = words.flatten(0, 1)
        inside = flat != PADDING
        inside[:, 0] = True  # a text without words keeps one padding vector
        states = self.embedding(flat)
        if self.lstm is not None:
            packed = pack_padded_sequence(states, inside.sum(1), batch_first=True, enforce_sorted=False)
            packed, _ = self.lstm(packed)
            states, _ = pad_packed_sequence(packed, batch_first=True, total_length=flat.shape[1])
        return states.masked_fill(~inside[..., None], -torch.inf).amax(1).unflatten(0, words.shape[:2])


def train_words(train: Points, vectors: np.ndarray, recipe: Recipe, seed: int) -> PooledWords:
    """A small model trained by Adam."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PooledWords(vectors, train.shared.shape[1], recipe)
        optimiser = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, fused=True)

        def loss(rows: Int[Tensor, " row"]) -> Float[Tensor, ""]:
            shared, warrants, labels = train.batch(rows)
            return cross_entropy(model(shared, warrants), labels)

        for _ in range(recipe.epochs):
            fit(torch.randperm(len(train.labels)).split(recipe.batch_size), loss, optimiser)
    return model.eval()


def answers(model: PooledWords, points: Points) -> Float32[np.ndarray, "point warrant"]:
    """The logits of every point."""
    model.eval()
    with torch.no_grad():
        rows = torch.arange(len(points.labels)).split(ANSWERED)
        return torch.cat([model(*points.batch(batch)[:2]) for batch in rows]).numpy()
