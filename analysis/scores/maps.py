"""Sources of maps (attention, maps made from it, and controls), and the entropies of the maps' rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Attention, Read, read_layers, uniform_rows
from analysis.errors import InputError
from analysis.scores.contraction import row_entropies
from analysis.scores.twins import read_twins

SMOOTHING = 1e-4  # the share of every row that is spread evenly: zeros have no logarithm

ReadMaps = Callable[..., None]  # (encoder, batch, read, check), as `read_layers`
Prepare = Callable[[Encoder, Sequence[Layout], int, bool], ReadMaps]
Change = Callable[[int, Attention, Sequence[Layout]], Attention | tuple[Attention, Tensor]]
Numbers = Float[Tensor, "batch head"]


@dataclass(frozen=True)
class Source:
    """A source of maps, for the argument `maps` of `extract`.

    `read(encoder, batch, read, check)` calls `read(layer, maps)` for every layer in order, as `read_layers` does; with
    `check` it guards the attention that the maps are made of. `distributions` says whether the rows of the maps are
    distributions. `read` may receive a third argument: entropies (batch, head, row; nats) that replace those of the
    rows in roles such as block (see `spread`).

    Twins must see all sequences of an encoder first: `prepare(encoder, sequences, budget, progress)` returns the
    function that reads them.
    """

    name: str
    read: ReadMaps
    prepare: Prepare | None = None
    distributions: bool = True

    def prepared(
        self, encoder: Encoder, sequences: Sequence[Layout], budget: int = 2048, progress: bool = True
    ) -> ReadMaps:
        """The function that reads batches of these sequences."""
        return self.prepare(encoder, sequences, budget, progress) if self.prepare else self.read


MAPS: dict[str, Source] = {"attention": Source("attention", read_layers)}


def find_source(maps: str | ReadMaps | Source) -> Source:
    """The source with this name; a function with the signature of `read_layers` is a source of distributions."""
    if isinstance(maps, Source):
        return maps
    if callable(maps):
        return Source(getattr(maps, "__name__", type(maps).__name__), maps)
    if maps not in MAPS:
        raise InputError(f"unknown maps {maps!r}: choose from {', '.join(MAPS)}, or give a Source")
    return MAPS[maps]


def changed(function: Change, of: str | ReadMaps | Source = "attention", name: str = "") -> Source:
    """The maps of another source, changed layer by layer by `function(layer, maps, batch)`.

    It returns the maps, or the maps and entropies (see `Source`).
    """
    source = find_source(of)

    def prepare(*arguments) -> ReadMaps:
        return partial(_read_changed, function, source.prepared(*arguments))

    read = partial(_read_changed, function, source.read)
    return Source(name or function.__name__, read, prepare, source.distributions)


def _read_changed(
    function: Change,
    read_maps: ReadMaps,
    encoder: Encoder,
    batch: Sequence[Layout],
    read: Read,
    check: bool = False,
) -> None:
    """Reads the maps of `read_maps`, changed."""

    def read_layer(layer: int, attention: Attention, *_: Tensor) -> None:
        maps = function(layer, attention, batch)
        read(layer, *(maps if isinstance(maps, tuple) else (maps,)))

    read_maps(encoder, batch, read_layer, check)


def uniform(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
    """Heads that attend equally to all tokens of their sequence; no model runs."""
    maps = _even(batch, encoder.heads, encoder.device)
    for layer in range(encoder.layers):
        read(layer, maps)


def _even(batch: Sequence[Layout], heads: int, device: torch.device) -> Attention:
    """Maps whose rows are spread evenly over the tokens of their sequence."""
    longest = max(map(len, batch))
    return uniform_rows(_real(longest, batch, device)).expand(-1, heads, longest, -1).contiguous()


def shuffled(seed: int = 0, of: str | ReadMaps | Source = "attention") -> Source:
    """Each head's own maps with the word pieces of a sequence in random order.

    Rows and columns take the same order in all layers and heads; special tokens stay where they are. Scores of cls, sep
    and delimiter do not change; scores that depend on the position of words do. The order depends on `seed` and the id
    of the sequence.
    """
    return changed(partial(_shuffle, seed), of, "shuffled")


def _shuffle(seed: int, layer: int, attention: Attention, batch: Sequence[Layout]) -> Attention:
    orders = np.stack([_order(layout, attention.shape[-1], seed) for layout in batch])
    order = torch.from_numpy(orders).to(attention.device)
    rows = attention.gather(2, order[:, None, :, None].expand_as(attention))
    return rows.gather(3, order[:, None, None, :].expand_as(attention))


def _order(layout: Layout, size: int, seed: int) -> Int[np.ndarray, " token"]:
    """The positions of a padded sequence with its word pieces permuted."""
    order, pieces = np.arange(size), np.flatnonzero(layout.text >= 0)
    order[pieces] = np.random.default_rng([seed, crc32(layout.id.encode())]).permutation(pieces)
    return order


def twin(of: str | ReadMaps | Source = "attention") -> Source:
    """For each head, the map that depends on relative position alone.

    The values of a twin are the head's mean attention, over all given sequences, at each offset between word pieces, to
    [CLS] and to [SEP]; rows of [CLS] and [SEP] have values of their own. Every row is normalised, and a row of zeros is
    spread evenly. If the maps are not distributions, twins keep the values as they are. The first pass reads the maps
    `of` another source; the second needs no model.
    """
    source = find_source(of)

    def prepare(*arguments) -> ReadMaps:
        return read_twins(source.prepared(*arguments), source.distributions, *arguments)

    return Source("twin", _unprepared, prepare, source.distributions)


def _unprepared(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
    raise InputError("a twin needs all sequences: call `prepared` with them first, or use `extract`")


def spread(of: str | ReadMaps | Source = "attention") -> Source:
    """Heads with even rows that have the entropies of each head's own rows.

    No real row is like this: such rows exist only in the arithmetic of block, which multiplies every row by its
    entropy. Roles without entropies get uniform heads.
    """
    return changed(_spread, of, "spread")


def _spread(layer: int, attention: Attention, batch: Sequence[Layout]) -> tuple[Attention, Tensor]:
    maps = _even(batch, attention.shape[1], attention.device)
    return maps, row_entropies(attention).to(maps.dtype)


MAPS |= {
    "uniform": Source("uniform", uniform),
    "shuffled": shuffled(),
    "twin": twin(),
    "spread": spread(),
}


def mean_row_entropy(attention: Attention, batch: Sequence[Layout]) -> Numbers:
    """Mean entropy (nats) of the rows of every map; ln T for uniform attention.

    Rows are first smoothed to 0.9999 A + 0.0001 / T (Clark 2019, section 3.3, as in the authors' code).
    """
    return _row_mean(_smoothed_entropies(attention, batch), batch)


def cls_row_entropy(attention: Attention, batch: Sequence[Layout]) -> Numbers:
    """Entropy (nats) of the row of [CLS], smoothed as in `mean_row_entropy` (Clark 2019, section 3.3)."""
    return _smoothed_entropies(attention[:, :, :1], batch)[:, :, 0]


def mean_row_maximum(attention: Attention, batch: Sequence[Layout]) -> Numbers:
    """Mean over rows of the largest weight of a row: what its most attended token gets (proportion)."""
    return _row_mean(attention.amax(-1), batch)


ENTROPIES = (mean_row_entropy, cls_row_entropy)  # statistics that are defined for distributions only


def _real(longest: int, batch: Sequence[Layout], device: torch.device) -> Bool[Tensor, "batch token"]:
    """True for tokens, False for padding."""
    lengths = torch.tensor([len(layout) for layout in batch], device=device)
    return torch.arange(longest, device=device) < lengths[:, None]


def _row_mean(values: Float[Tensor, "batch head token"], batch: Sequence[Layout]) -> Numbers:
    """The mean over the rows of real tokens."""
    real = _real(values.shape[-1], batch, values.device)
    return (values * real[:, None]).sum(-1) / real.sum(-1)[:, None]


def _smoothed_entropies(
    attention: Float[Tensor, "batch head row token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head row"]:
    real = _real(attention.shape[-1], batch, attention.device)
    share = SMOOTHING * real / real.sum(-1, keepdim=True)  # padding gets none
    return row_entropies(attention * (1 - SMOOTHING) + share[:, None, None])
