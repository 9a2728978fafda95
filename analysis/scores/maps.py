"""Maps: where they come from (attention, and controls made of it or of nothing), and the entropies of their rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from analysis.scores.twins import profile

SMOOTHING = 1e-4  # the part of every row that is spread evenly, so that zeros have a logarithm

ReadMaps = Callable[..., None]  # (encoder, batch, read, check), as `read_layers`
Prepare = Callable[[Encoder, Sequence[Layout], int, bool], ReadMaps]
Change = Callable[[int, Attention, Sequence[Layout]], Attention]


@dataclass(frozen=True)
class Source:
    """Where maps come from: `maps` of `extract`.

    `read(encoder, batch, read, check)` calls `read(layer, maps)` for every layer in order, as `read_layers` does, and
    with `check` guards the attention that the maps are made of. `prepare(encoder, sequences, budget, progress)` gives
    such a function to a source that has to see all sequences of an encoder first, in batches of `budget` padded
    tokens. `distributions` says whether the rows of the maps are distributions. A third argument of `read` are
    entropies (batch, head, row; nats) that roles such as block take in the place of the rows' own (see `spread`).
    """

    name: str
    read: ReadMaps
    prepare: Prepare | None = None
    distributions: bool = True

    def __call__(self, encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
        self.read(encoder, batch, read, check)

    def prepared(
        self, encoder: Encoder, sequences: Sequence[Layout], budget: int = 2048, progress: bool = True
    ) -> "Source":
        """The source that is ready to read batches of these sequences."""
        if self.prepare is None:
            return self
        return replace(self, read=self.prepare(encoder, sequences, budget, progress), prepare=None)


MAPS: dict[str, Source] = {"attention": Source("attention", read_layers)}


def map_source(
    name: str, prepare: Prepare | None = None, distributions: bool = True
) -> Callable[[ReadMaps], Source]:
    """Decorator that registers a function with the signature of `read_layers` as a source of maps (see `Source`)."""

    def register(function: ReadMaps) -> Source:
        MAPS[name] = Source(name, function, prepare, distributions)
        return MAPS[name]

    return register


def find_source(maps: str | ReadMaps) -> Source:
    """The source of that name; a function with the signature of `read_layers` is a source under its own name.

    Raises InputError for an unknown name.
    """
    if isinstance(maps, Source):
        return maps
    if callable(maps):
        return Source(maps.__name__, maps)
    if maps not in MAPS:
        raise InputError(
            f"unknown maps {maps!r}: choose from {', '.join(MAPS)}, or register with @map_source"
        )
    return MAPS[maps]


def changed(function: Change, of: str | ReadMaps = "attention", name: str = "") -> Source:
    """The maps of another source, changed layer by layer by `function(layer, attention, batch)`.

    Its name is that of the function where none is given.
    """
    source = find_source(of)

    def changing(maps: Source) -> ReadMaps:
        def read_changed(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
            maps(encoder, batch, lambda layer, found, *_: read(layer, function(layer, found, batch)), check)

        return read_changed

    prepare = source.prepare and (lambda *sequences: changing(source.prepared(*sequences)))
    return replace(source, name=name or function.__name__, read=changing(source), prepare=prepare)


@map_source("uniform")
def uniform(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
    """Heads that attend to all tokens of their sequence alike; no model runs."""
    maps = _even(batch, encoder.heads, encoder.device)
    for layer in range(encoder.layers):
        read(layer, maps)


def _even(
    batch: Sequence[Layout], heads: int, device: torch.device
) -> Float[Tensor, "batch head token token"]:
    """Maps whose rows are spread evenly over the tokens of their sequence."""
    longest = max(map(len, batch))
    row = uniform_rows(_real_tokens(longest, batch, device))
    return row.expand(-1, heads, longest, -1).contiguous()


def shuffled(seed: int = 0, of: str | ReadMaps = "attention") -> Source:
    """Each head's own maps with the word pieces of a sequence in random order.

    Rows and columns take the same order in all layers and heads, special tokens stay where they are. Scores
    of cls, sep and delimiter remain, those that rest on which word stands where do not. The order depends on `seed`
    and the id of the sequence.
    """

    def shuffle(_: int, attention: Attention, batch: Sequence[Layout]) -> Attention:
        orders = np.stack([_order(layout, attention.shape[-1], seed) for layout in batch])
        order = torch.from_numpy(orders).to(attention.device)
        rows = attention.gather(2, order[:, None, :, None].expand_as(attention))
        return rows.gather(3, order[:, None, None, :].expand_as(attention))

    return changed(shuffle, of, f"shuffled({seed})" if seed else "shuffled")


def _order(layout: Layout, size: int, seed: int) -> Int[np.ndarray, "token"]:
    """The positions of a padded sequence with its word pieces permuted."""
    order, pieces = np.arange(size), np.flatnonzero(layout.text >= 0)
    order[pieces] = np.random.default_rng([seed, crc32(layout.id.encode())]).permutation(pieces)
    return order


def twin(of: str | ReadMaps = "attention") -> Source:
    """For each head the map that depends on relative position alone.

    Its profile is the head's mean attention at each offset between word pieces, to [CLS] and to [SEP], over all
    sequences given; rows of [CLS] and [SEP] have profiles of their own (see `twins.Places`). The map of a sequence has
    these values, every row normalised; a row of zeros is spread evenly. The first pass reads the maps `of` another
    source, the second needs no model.
    """
    source = find_source(of)

    def prepare(encoder: Encoder, sequences: Sequence[Layout], budget: int, progress: bool) -> ReadMaps:
        ready = source.prepared(encoder, sequences, budget, progress)
        return profile(encoder, sequences, ready, budget, progress).read

    return Source("twin", _unprepared, prepare, source.distributions)


def _unprepared(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
    raise InputError("a twin is made of all sequences: call `prepared` with them first, or `extract`")


def spread(of: str | ReadMaps = "attention") -> Source:
    """Heads whose rows have the entropies of each head's own rows, and are spread evenly over the sequence.

    Such rows exist in the arithmetic of block alone, which multiplies every row by its entropy: even rows of each
    head's own entropies. Roles without entropies see uniform heads.
    """
    source = find_source(of)

    def spreading(maps: Source) -> ReadMaps:
        def read_spread(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
            even = _even(batch, encoder.heads, encoder.device)
            maps(
                encoder,
                batch,
                lambda layer, found, *_: read(layer, even, row_entropies(found).to(even.dtype)),
                check,
            )

        return read_spread

    prepare = source.prepare and (lambda *sequences: spreading(source.prepared(*sequences)))
    return Source("spread", spreading(source), prepare, source.distributions)


MAPS |= {"shuffled": shuffled(), "twin": twin(), "spread": spread()}


def all_rows(
    attention: Float[Tensor, "batch head token token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """Mean entropy (nats) of the rows of every map; ln T for uniform attention.

    Rows are smoothed to 0.9999 A + 0.0001 / T first (Clark 2019, section 3.3, as the released code computes).
    """
    real = _real_tokens(attention.shape[-1], batch, attention.device)
    entropies = _smoothed_entropies(attention, real)  # batch, head, token
    return (entropies * real[:, None]).sum(-1) / real.sum(-1)[:, None]


def first_row(
    attention: Float[Tensor, "batch head token token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """Entropy (nats) of the row of [CLS], smoothed as in `all_rows` (Clark 2019, section 3.3)."""
    real = _real_tokens(attention.shape[-1], batch, attention.device)
    return _smoothed_entropies(attention[:, :, :1], real)[:, :, 0]


def _real_tokens(longest: int, batch: Sequence[Layout], device: torch.device) -> Bool[Tensor, "batch token"]:
    """True for tokens, False for padding."""
    lengths = torch.tensor([len(layout) for layout in batch], device=device)
    return torch.arange(longest, device=device) < lengths[:, None]


def _smoothed_entropies(
    attention: Float[Tensor, "batch head row token"], real: Bool[Tensor, "batch token"]
) -> Float[Tensor, "batch head row"]:
    share = SMOOTHING * real / real.sum(-1, keepdim=True)  # padding gets none
    smoothed = attention * (1 - SMOOTHING) + share[:, None, None]
    return row_entropies(smoothed)
