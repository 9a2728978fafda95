"""Sources of maps (attention, maps made from it, and controls), and the entropies of the maps' rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analysis.encoders.derivatives import LAYERS, POST_LN, PRE_LN
from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Attention, Read, read_layers, uniform_rows
from analysis.errors import InputError
from analysis.scores.attribution import PROBES, attributions
from analysis.scores.contraction import row_entropies
from analysis.scores.effective import effective
from analysis.scores.twins import profile

SMOOTHING = 1e-4  # the share of every row that is spread evenly: zeros have no logarithm

ReadMaps = Callable[..., None]  # (encoder, batch, read, check), as `read_layers`
Prepare = Callable[[Encoder, Sequence[Layout], int, bool], ReadMaps]
Change = Callable[[int, Attention, Sequence[Layout]], Attention]


@dataclass(frozen=True)
class Source:
    """A source of maps, for the argument `maps` of `extract`.

    `read(encoder, batch, read, check)` calls `read(layer, maps)` for every layer in order, as `read_layers` does; with
    `check` it guards the attention that the maps are made of. If a source has to see all sequences of an encoder
    first, `prepare(encoder, sequences, budget, progress)` returns such a function; it reads the sequences in batches of
    `budget` padded tokens. `distributions` says whether the rows of the maps are distributions. `read` may receive a
    third argument: entropies (batch, head, row; nats) that replace those of the rows in roles such as block (see
    `spread`).
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
        """The source, prepared to read batches of these sequences."""
        if self.prepare is None:
            return self
        return replace(self, read=self.prepare(encoder, sequences, budget, progress), prepare=None)


MAPS: dict[str, Source] = {"attention": Source("attention", read_layers)}


def map_source(name: str) -> Callable[[ReadMaps], Source]:
    """Decorator that registers a function with the signature of `read_layers` as a source of maps (see `Source`)."""

    def register(function: ReadMaps) -> Source:
        MAPS[name] = Source(name, function)
        return MAPS[name]

    return register


def find_source(maps: str | ReadMaps) -> Source:
    """The source with this name; a function with the signature of `read_layers` becomes a source with its own name.

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

    Without a `name`, the source has the name of the function.
    """
    return _passed_on(lambda *given: (function(*given),), find_source(of), name or function.__name__)


def _passed_on(change: Callable[..., tuple[Tensor, ...]], source: Source, name: str) -> Source:
    """A source that passes on what `change(layer, maps, batch)` makes of another's: maps, and entropies if given."""

    def changing(maps: Source) -> ReadMaps:
        def read_changed(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
            maps(encoder, batch, lambda layer, found, *_: read(layer, *change(layer, found, batch)), check)

        return read_changed

    prepare = source.prepare and (lambda *sequences: changing(source.prepared(*sequences)))
    return replace(source, name=name, read=changing(source), prepare=prepare)


@map_source("uniform")
def uniform(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
    """Heads that attend equally to all tokens of their sequence; no model runs."""
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

    Rows and columns take the same order in all layers and heads; special tokens stay where they are. Scores of cls, sep
    and delimiter do not change; scores that depend on the position of words do. The order depends on `seed` and the id
    of the sequence.
    """

    def shuffle(_: int, attention: Attention, batch: Sequence[Layout]) -> Attention:
        orders = np.stack([_order(layout, attention.shape[-1], seed) for layout in batch])
        order = torch.from_numpy(orders).to(attention.device)
        rows = attention.gather(2, order[:, None, :, None].expand_as(attention))
        return rows.gather(3, order[:, None, None, :].expand_as(attention))

    return changed(shuffle, of, _control_name("shuffled", of, [str(seed)] if seed else []))


def _control_name(name: str, of: str | ReadMaps, given: Sequence[str] = ()) -> str:
    """The name of a control with what was `given`, and with the maps it was made from unless they are attention."""
    source = find_source(of).name
    described = [*given, *([f"of={source}"] if source != "attention" else [])]
    return f"{name}({', '.join(described)})" if described else name


def _order(layout: Layout, size: int, seed: int) -> Int[np.ndarray, "token"]:
    """The positions of a padded sequence with its word pieces permuted."""
    order, pieces = np.arange(size), np.flatnonzero(layout.text >= 0)
    order[pieces] = np.random.default_rng([seed, crc32(layout.id.encode())]).permutation(pieces)
    return order


def twin(of: str | ReadMaps = "attention") -> Source:
    """For each head, the map that depends on relative position alone.

    The profile of a head is its mean attention, over all given sequences, at each offset between word pieces, to [CLS]
    and to [SEP]. Rows of [CLS] and [SEP] have their own profiles (see `twins.Places`). The map of a sequence takes its
    values from the profile; every row is normalised, and a row of zeros is spread evenly. If the maps are not
    distributions, twins keep the values as they are. The first pass reads the maps `of` another source; the second
    needs no model.
    """
    source = find_source(of)

    def prepare(encoder: Encoder, sequences: Sequence[Layout], budget: int, progress: bool) -> ReadMaps:
        ready = source.prepared(encoder, sequences, budget, progress)
        return profile(encoder, sequences, ready, budget, progress, source.distributions).read

    return Source(_control_name("twin", source), _unprepared, prepare, source.distributions)


def _unprepared(encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
    raise InputError("a twin needs all sequences: call `prepared` with them first, or use `extract`")


def spread(of: str | ReadMaps = "attention") -> Source:
    """Heads with even rows that have the entropies of each head's own rows.

    No real row is like this: such rows exist only in the arithmetic of block, which multiplies every row by its
    entropy. Roles without entropies get uniform heads.
    """
    source = find_source(of)

    def even(_: int, found: Tensor, batch: Sequence[Layout]) -> tuple[Tensor, Tensor]:
        maps = _even(batch, found.shape[1], found.device)
        return maps, row_entropies(found).to(maps.dtype)

    return _passed_on(even, source, _control_name("spread", source))


def attribution(probes: int | None = PROBES, seed: int = 0, input_point: str = POST_LN) -> Source:
    """Maps of how much each head's output depends on each input token (see `attribution.attributions`).

    `probes` random directions estimate each entry; None computes it exactly. `input_point` is post_ln or pre_ln: the
    sum of the embeddings after or before its normalisation. The name of the source lists other values than
    the defaults. Raises InputError for another input point.
    """
    if input_point not in (POST_LN, PRE_LN):
        raise InputError(f"input_point is {input_point!r}: choose {POST_LN} or {PRE_LN}")
    changes = {"input_point": input_point} if input_point != POST_LN else {}
    return _attribution("attribution", probes, seed, input_point, changes)


def local_attribution(probes: int | None = PROBES, seed: int = 0) -> Source:
    """The same with respect to each layer's own input: what a head does with it, without the mixing in lower layers."""
    return _attribution("local_attribution", probes, seed, LAYERS, {})


def _attribution(
    name: str, probes: int | None, seed: int, start: str, changes: dict[str, str | int]
) -> Source:
    changes |= {"probes": probes or "all"} if probes != PROBES else {}
    changes |= {"seed": seed} if seed else {}
    described = ", ".join(f"{key}={value}" for key, value in changes.items())

    def prepare(encoder: Encoder, sequences: Sequence[Layout], budget: int, progress: bool) -> ReadMaps:
        return attributions(probes, seed, start, progress)

    read = attributions(probes, seed, start, progress=False)
    return Source(f"{name}({described})" if described else name, read, prepare)


MAPS |= {
    "shuffled": shuffled(),
    "twin": twin(),
    "spread": spread(),
    "effective": Source("effective", effective(), distributions=False),
    "effective_sum": Source("effective_sum", effective(sums=True), distributions=False),
    "attribution": attribution(),
    "local_attribution": local_attribution(),
}


def mean_row_entropy(
    attention: Float[Tensor, "batch head token token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """Mean entropy (nats) of the rows of every map; ln T for uniform attention.

    Rows are first smoothed to 0.9999 A + 0.0001 / T (Clark 2019, section 3.3, as in the released code).
    """
    real = _real_tokens(attention.shape[-1], batch, attention.device)
    entropies = _smoothed_entropies(attention, real)  # batch, head, token
    return (entropies * real[:, None]).sum(-1) / real.sum(-1)[:, None]


def cls_row_entropy(
    attention: Float[Tensor, "batch head token token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """Entropy (nats) of the row of [CLS], smoothed as in `mean_row_entropy` (Clark 2019, section 3.3)."""
    real = _real_tokens(attention.shape[-1], batch, attention.device)
    return _smoothed_entropies(attention[:, :, :1], real)[:, :, 0]


def mean_row_maximum(
    attention: Float[Tensor, "batch head token token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """Mean over rows of the largest weight of a row: what its most attended token gets (proportion)."""
    real = _real_tokens(attention.shape[-1], batch, attention.device)
    return (attention.amax(-1) * real[:, None]).sum(-1) / real.sum(-1)[:, None]


ENTROPIES = (mean_row_entropy, cls_row_entropy)  # statistics that are defined for distributions only


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
