"""Twins of heads: maps that depend on relative position alone, made from a head's mean attention at each offset."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from tqdm import tqdm

from analysis.encoders.layout import Layout, batches
from analysis.encoders.models import Encoder, kept_casts
from analysis.encoders.tap import Read, uniform_rows

KINDS = 3  # of tokens: word piece, [CLS], [SEP]
PADDING = KINDS


@dataclass(frozen=True)
class Places:
    """Gives every cell of a map a number; the cells with one number are averaged into one value of a profile.

    Rows of word pieces, of [CLS] and of [SEP] have numbers of their own. Within a row, word pieces are numbered by
    their distance, for sequences of up to `longest` tokens; [CLS] has one number and [SEP] another, at any distance.
    The last number is for padding and for longer distances.
    """

    longest: int

    @property
    def offsets(self) -> int:
        """Number of possible offsets between word pieces."""
        return 2 * self.longest - 1

    @property
    def row(self) -> int:
        """Number of places in the row of one kind of token."""
        return self.offsets + KINDS - 1

    @property
    def outside(self) -> int:
        """The place of cells that belong to no profile."""
        return KINDS * self.row

    def __len__(self) -> int:
        return self.outside + 1

    def of(
        self, batch: Sequence[Layout], device: torch.device | str = "cpu"
    ) -> Int[Tensor, "batch token token"]:
        """The place of every cell in the maps of a padded batch."""
        kinds = _kinds(batch).to(device)
        row, column = kinds[:, :, None], kinds[:, None, :]
        positions = torch.arange(kinds.shape[1], device=device)
        offset = positions - positions[:, None]
        word = (offset + self.longest - 1).expand(len(batch), -1, -1)
        place = row * self.row + torch.where(column == 0, word, self.offsets + column - 1)
        unknown = (row == PADDING) | (column == PADDING) | (offset.abs() >= self.longest)
        return place.masked_fill_(unknown, self.outside)


def _kinds(batch: Sequence[Layout]) -> Int[Tensor, "batch token"]:
    """0 for word pieces, 1 for [CLS], 2 for [SEP] and any other special token, PADDING after the sequence."""
    kinds = np.full((len(batch), max(map(len, batch))), PADDING)
    for row, layout in zip(kinds, batch, strict=True):
        row[: len(layout)] = np.where(layout.text >= 0, 0, np.where(layout.cls, 1, 2))
    return torch.from_numpy(kinds)


@dataclass(frozen=True)
class Profile:
    """The mean attention of every head at every place, on the device of its encoder."""

    places: Places
    means: Float[Tensor, "layer head place"]
    distributions: bool = True  # whether rows must sum to 1

    def read(self, encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
        """Calls `read(layer, maps)` with the twin maps of every layer; no model runs, and only the maps of one layer
        are in memory."""
        place = self.places.of(batch, self.means.device).flatten(1)
        real = _kinds(batch).to(place.device) != PADDING
        even, tokens, heads = uniform_rows(real), real.shape[1], self.means.shape[1]
        for layer, means in enumerate(self.means):
            cells = place[:, None].expand(-1, heads, -1)
            found = means.expand(len(batch), -1, -1).gather(2, cells).unflatten(2, (tokens, tokens))
            if self.distributions:
                total = found.sum(-1, keepdim=True)
                found = torch.where(total > 0, found / total.clamp_min(1e-30), even)
            read(layer, found)


def profile(
    encoder: Encoder,
    sequences: Sequence[Layout],
    maps: Callable[..., None],
    budget: int = 2048,
    progress: bool = True,
    distributions: bool = True,
) -> Profile:
    """Each head's mean attention at every place, over all sequences, in one streaming pass over `maps`.

    `maps` is a source that is ready to read these sequences in batches of `budget` padded tokens; `distributions` says
    whether its rows are distributions.
    """
    places = Places(max(map(len, sequences)))
    sums = np.zeros((encoder.layers, encoder.heads, len(places)))  # float64: sums over all sequences
    counts = np.zeros(len(places))
    plan = list(batches(sequences, budget))
    with (
        kept_casts(encoder),
        tqdm(total=len(sequences), desc="profiles", unit="sequence", disable=not progress) as bar,
    ):
        for number, indices in enumerate(plan):
            batch = [sequences[index] for index in indices]
            place = places.of(batch, encoder.device)
            counts += place.flatten().bincount(minlength=len(places)).cpu().numpy()
            sums += _sums(encoder, batch, maps, place, len(places), number in (0, len(plan) - 1))
            bar.update(len(batch))
    sums[..., places.outside] = 0
    means = torch.from_numpy((sums / np.maximum(counts, 1)).astype(np.float32))
    return Profile(places, means.to(encoder.device), distributions)


def _sums(
    encoder: Encoder,
    batch: Sequence[Layout],
    maps: Callable[..., None],
    place: Int[Tensor, "batch token token"],
    count: int,
    check: bool,
) -> Float[np.ndarray, "layer head place"]:
    """The attention of one padded batch, summed by place."""
    heads = torch.arange(encoder.heads, device=place.device)[:, None, None]
    cells = (place[:, None] + heads * count).flatten()  # places of one head after another
    found = torch.zeros(encoder.layers, encoder.heads * count, device=place.device)

    def read(layer: int, attention: Float[Tensor, "batch head token token"], *_: Tensor) -> None:
        found[layer].index_add_(0, cells, attention.flatten().to(found.dtype))

    maps(encoder, batch, read, check)
    return found.view(encoder.layers, encoder.heads, count).cpu().numpy().astype(np.float64)
