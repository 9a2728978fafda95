"""Sources of maps: attention, maps made from it, and controls, such as twins, which depend on position alone."""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analysis.encoders.layout import Layout, stream
from analysis.encoders.models import Encoder, cached_casts
from analysis.encoders.tap import Attention, Read, read_layers, uniform_rows
from analysis.errors import InputError

AT_ONCE = 2**18  # cells of maps whose logarithms fit in the cache
BUDGET = 2048  # padded tokens of a batch
KINDS = 3  # of tokens: word piece, [CLS], [SEP]
PADDING = KINDS

ReadMaps = Callable[..., None]  # (batch, read, check), as `read_layers` of one encoder
Prepare = Callable[[Encoder, Sequence[Layout]], ReadMaps]
Change = Callable[[int, Attention, Sequence[Layout]], Attention | tuple[Attention, Tensor]]


@dataclass(frozen=True)
class Source:
    """A source of maps, for the argument `maps` of `extract`.

    `prepare(encoder, sequences)` sees all sequences first, as twins must, and returns the function that reads their
    batches. That function, `read_maps(batch, read, check)`, calls `read(layer, maps)` for every layer in order; with
    `check` it guards the attention that the maps are made of. `read` may receive a third argument: entropies (batch,
    head, row; nats) that replace those of the rows in roles such as block (see `spread`). `distributions` says whether
    the rows of the maps are distributions.
    """

    name: str
    prepare: Prepare
    distributions: bool = True


def by_batch(read_batch: Callable[..., None]) -> Prepare:
    """The `prepare` of a source that needs no other sequences: `read_batch(encoder, batch, read, check)`."""
    return lambda encoder, sequences: partial(read_batch, encoder)


MAPS: dict[str, Source] = {"attention": Source("attention", by_batch(read_layers))}


def find_source(maps: str | Source) -> Source:
    """The source with this name."""
    if isinstance(maps, Source):
        return maps
    if maps not in MAPS:
        raise InputError(f"unknown maps {maps!r}: choose from {', '.join(MAPS)}, or give a Source")
    return MAPS[maps]


def changed(function: Change, of: str | Source = "attention", name: str = "") -> Source:
    """The maps of another source, changed layer by layer by `function(layer, maps, batch)`.

    It returns the maps, or the maps and entropies (see `Source`).
    """
    source = find_source(of)

    def prepare(encoder: Encoder, sequences: Sequence[Layout]) -> ReadMaps:
        read_maps = source.prepare(encoder, sequences)

        def read_changed(batch: Sequence[Layout], read: Read, check: bool = False) -> None:
            def read_layer(layer: int, attention: Attention, *_: Tensor) -> None:
                result = function(layer, attention, batch)
                read(layer, *(result if isinstance(result, tuple) else (result,)))

            read_maps(batch, read_layer, check)

        return read_changed

    return Source(name or function.__name__, prepare, source.distributions)


def uniform(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
    """Heads that attend equally to all tokens of their sequence; no model runs."""
    maps = _even(batch, encoder.heads, encoder.device)
    for layer in range(encoder.layers):
        read(layer, maps)


def _even(batch: Sequence[Layout], heads: int, device: torch.device) -> Attention:
    """Maps whose rows are spread evenly over the tokens of their sequence."""
    longest = max(map(len, batch))
    return uniform_rows(real_tokens(longest, batch, device)).expand(-1, heads, longest, -1).contiguous()


def shuffled(of: str | Source = "attention", seed: int = 0) -> Source:
    """Each head's own maps with the word pieces of a sequence in random order.

    Rows and columns take the same order in all layers and heads; special tokens stay where they are. Scores of cls, sep
    and delimiter do not change; scores that depend on the position of words do. The order depends on `seed` and the id
    of the sequence.
    """

    def order_of(layout: Layout, size: int) -> Int[np.ndarray, " token"]:
        order, pieces = np.arange(size), np.flatnonzero(layout.text >= 0)
        order[pieces] = np.random.default_rng([seed, crc32(layout.id.encode())]).permutation(pieces)
        return order

    def shuffle(layer: int, attention: Attention, batch: Sequence[Layout]) -> Attention:
        orders = np.stack([order_of(layout, attention.shape[-1]) for layout in batch])
        order = torch.from_numpy(orders).to(attention.device)
        rows = attention.gather(2, order[:, None, :, None].expand_as(attention))
        return rows.gather(3, order[:, None, None, :].expand_as(attention))

    return changed(shuffle, of, "shuffled")


def spread(of: str | Source = "attention") -> Source:
    """Heads with even rows that have the entropies of each head's own rows.

    No real row is like this: such rows exist only in the arithmetic of block, which multiplies every row by its
    entropy. Roles without entropies get uniform heads.
    """

    def with_entropies(layer: int, attention: Attention, batch: Sequence[Layout]) -> tuple[Attention, Tensor]:
        maps = _even(batch, attention.shape[1], attention.device)
        return maps, row_entropies(attention).to(maps.dtype)

    return changed(with_entropies, of, "spread")


def row_entropies(attention: Float[Tensor, "batch head row token"]) -> Float[Tensor, "batch head row"]:
    """The entropy of every row of attention (nats)."""
    maps_at_once = max(1, AT_ONCE // max(1, attention.shape[2] * attention.shape[3]))
    entropies = []
    for maps in attention.flatten(0, 1).split(maps_at_once):
        # torch.special.entr gives the same in twice the time: its logarithm is not vectorised.
        logarithms = maps.clamp_min(torch.finfo(maps.dtype).tiny).log_()
        entropies.append(-logarithms.mul_(maps).sum(-1))
    return torch.cat(entropies).reshape(attention.shape[:3])


def twin(of: str | Source = "attention") -> Source:
    """For each head, the map that depends on relative position alone.

    The values of a twin are the head's mean attention, over all given sequences, at each offset between word pieces, to
    [CLS] and to [SEP]; rows of [CLS] and [SEP] have values of their own. Every row is normalised, and a row of zeros is
    spread evenly. If the maps are not distributions, twins keep the values as they are. The first pass reads the maps
    `of` another source; the second needs no model.
    """
    source = find_source(of)

    def prepare(encoder: Encoder, sequences: Sequence[Layout]) -> ReadMaps:
        longest = max(map(len, sequences))
        profiles = _profiles(source.prepare(encoder, sequences), encoder, sequences, longest)
        return partial(_read_twins, profiles, longest, source.distributions)

    return Source("twin", prepare, source.distributions)


def _read_twins(
    profiles: Float[Tensor, "layer head place"],
    longest: int,
    distributions: bool,
    batch: Sequence[Layout],
    read: Read,
    check: bool = False,
) -> None:
    """Reads the twins of every layer, made from each head's mean attention at every place (see `_places`)."""
    place = _places(batch, longest, profiles.device).flatten(1)
    real = _kinds(batch).to(profiles.device) != PADDING
    cells = place[:, None].expand(-1, profiles.shape[1], -1)
    for layer, profile in enumerate(profiles):
        twin_maps = profile.expand(len(batch), -1, -1).gather(2, cells).unflatten(2, 2 * real.shape[1:])
        if distributions:
            total = twin_maps.sum(-1, keepdim=True)
            twin_maps = torch.where(total > 0, twin_maps / total.clamp_min(1e-30), uniform_rows(real))
        read(layer, twin_maps)


def real_tokens(longest: int, batch: Sequence[Sized], device: torch.device) -> Bool[Tensor, "batch token"]:
    """True for tokens, False for padding."""
    lengths = torch.tensor([len(sequence) for sequence in batch], device=device)
    return torch.arange(longest, device=device) < lengths[:, None]


def _profiles(
    read_maps: ReadMaps, encoder: Encoder, sequences: Sequence[Layout], longest: int
) -> Float[Tensor, "layer head place"]:
    """Each head's mean attention at every place, in one streaming pass: only the maps of one layer are in memory."""
    count = KINDS * _row(longest) + 1
    heads = torch.arange(encoder.heads, device=encoder.device)[:, None, None] * count
    sums = np.zeros((encoder.layers, encoder.heads, count))  # float64: sums over all sequences
    counts = np.zeros(count)
    with cached_casts(encoder):
        for _, batch, check in stream(sequences, BUDGET, "profiles", progress=False):
            place = _places(batch, longest, encoder.device)
            counts += place.flatten().bincount(minlength=count).cpu().numpy()
            sums_of_batch = torch.zeros(encoder.layers, encoder.heads * count, device=encoder.device)
            cells = (place[:, None] + heads).flatten()  # places of one head after another

            def add(layer: int, attention: Attention, *_, sums=sums_of_batch, cells=cells) -> None:
                sums[layer].index_add_(0, cells, attention.flatten().to(sums.dtype))

            read_maps(batch, add, check)
            sums += sums_of_batch.view(sums.shape).cpu().numpy().astype(np.float64)
    sums[..., -1] = 0
    return torch.from_numpy((sums / np.maximum(counts, 1)).astype(np.float32)).to(encoder.device)


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


# The sources that controls of roles name, as functions of the source that they are made of.
CONTROLS = {"shuffled": shuffled, "twin": twin, "spread": spread}
MAPS |= {"uniform": Source("uniform", by_batch(uniform))} | {
    name: control() for name, control in CONTROLS.items()
}
