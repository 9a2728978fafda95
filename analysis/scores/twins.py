"""Twins of heads: maps that depend on relative position alone, made from a head's mean attention at each offset."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from analysis.encoders.layout import Layout, stream
from analysis.encoders.models import Encoder, cached_casts
from analysis.encoders.tap import Attention, Read, uniform_rows

KINDS = 3  # of tokens: word piece, [CLS], [SEP]
PADDING = KINDS


def read_twins(
    maps: Callable[..., None],
    distributions: bool,
    encoder: Encoder,
    sequences: Sequence[Layout],
    budget: int,
    progress: bool,
) -> Callable[..., None]:
    """A function that reads the twins of every layer (see `maps.twin`), as `read_layers` reads attention.

    The values come from each head's mean attention at every place (see `_places`), for which `maps` reads all
    sequences. With `distributions`, rows are normalised, and a row of zeros is spread evenly.
    """
    longest = max(map(len, sequences))
    profiles = _profiles(maps, encoder, sequences, longest, budget, progress)

    def read_profiles(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
        place = _places(batch, longest, profiles.device).flatten(1)
        real = _kinds(batch).to(profiles.device) != PADDING
        cells = place[:, None].expand(-1, profiles.shape[1], -1)
        for layer, profile in enumerate(profiles):
            twin_maps = profile.expand(len(batch), -1, -1).gather(2, cells).unflatten(2, 2 * real.shape[1:])
            if distributions:
                total = twin_maps.sum(-1, keepdim=True)
                twin_maps = torch.where(total > 0, twin_maps / total.clamp_min(1e-30), uniform_rows(real))
            read(layer, twin_maps)

    return read_profiles


def _profiles(
    maps: Callable[..., None],
    encoder: Encoder,
    sequences: Sequence[Layout],
    longest: int,
    budget: int,
    progress: bool,
) -> Float[Tensor, "layer head place"]:
    """Each head's mean attention at every place, in one streaming pass: only the maps of one layer are in memory."""
    count = KINDS * _row(longest) + 1
    heads = torch.arange(encoder.heads, device=encoder.device)[:, None, None] * count
    sums = np.zeros((encoder.layers, encoder.heads, count))  # float64: sums over all sequences
    counts = np.zeros(count)
    with cached_casts(encoder):
        for _, batch, check in stream(sequences, budget, "profiles", progress):
            place = _places(batch, longest, encoder.device)
            counts += place.flatten().bincount(minlength=count).cpu().numpy()
            sums_of_batch = torch.zeros(encoder.layers, encoder.heads * count, device=encoder.device)
            cells = (place[:, None] + heads).flatten()  # places of one head after another
            maps(encoder, batch, partial(_add, sums_of_batch, cells), check)
            sums += sums_of_batch.view(sums.shape).cpu().numpy().astype(np.float64)
    sums[..., -1] = 0
    return torch.from_numpy((sums / np.maximum(counts, 1)).astype(np.float32)).to(encoder.device)


def _add(sums: Tensor, cells: Tensor, layer: int, attention: Attention, *_: Tensor) -> None:
    """Adds the attention of one layer to the sums of its places."""
    sums[layer].index_add_(0, cells, attention.flatten().to(sums.dtype))


def _row(longest: int) -> int:
    """The number of places in the row of one kind of token: all distances, [CLS] and [SEP]."""
    return 2 * longest + 1


def _places(batch: Sequence[Layout], longest: int, device: torch.device) -> Int[Tensor, "batch token token"]:
    """The place of every cell in the maps of a padded batch; a twin has one value for all cells of a place.

    Rows of word pieces, of [CLS] and of [SEP] have places of their own. Within a row, word pieces have a place for each
    distance, in sequences of up to `longest` tokens; [CLS] has one and [SEP] another, at any distance. The last place
    is for padding and for longer distances.
    """
    kinds = _kinds(batch).to(device)
    row, column = kinds[:, :, None], kinds[:, None, :]
    positions = torch.arange(kinds.shape[1], device=device)
    offset = (positions - positions[:, None]).expand(len(batch), -1, -1)
    within = torch.where(column == 0, offset + longest - 1, 2 * longest - 2 + column)
    unknown = (row == PADDING) | (column == PADDING) | (offset.abs() >= longest)
    return (row * _row(longest) + within).masked_fill_(unknown, KINDS * _row(longest))


def _kinds(batch: Sequence[Layout]) -> Int[Tensor, "batch token"]:
    """0 for word pieces, 1 for [CLS], 2 for [SEP] and any other special token, PADDING after the sequence."""
    kinds = np.full((len(batch), max(map(len, batch))), PADDING)
    for row, layout in zip(kinds, batch, strict=True):
        row[: len(layout)] = np.where(layout.text >= 0, 0, np.where(layout.cls, 1, 2))
    return torch.from_numpy(kinds)
