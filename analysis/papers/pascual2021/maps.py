"""Sources of maps: attribution (Pascual 2021) and effective attention (Brunner 2020), for `extract(..., maps=...)`.

Importing this module makes their names known: attribution, local_attribution, effective, effective_sum.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from analysis.encoders.layout import Layout, Pieces
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Attention, Read, Reading, ValueReader, read_layers
from analysis.papers.pascual2021.attribution import LAYERS, POST_LN, PROBES, attributions
from analysis.scores.maps import MAPS, ReadMaps, Source, find_source

Values = Float[Tensor, "batch head token size"]


def effective(
    encoder: Encoder, batch: Sequence[Pieces], read: Read, check: bool = False, sums: bool = False
) -> None:
    """Reads the effective attention of every layer: attention minus its projection on the left null space of the
    values.

    The rest gives the same head output: A_eff V = A V. If a sequence has at most as many tokens as a value vector has
    entries, there is no null space, and its attention is returned unchanged. With `sums`, a column of ones is appended
    to the values, so that rows keep their sums. Entries may be negative, and without `sums` rows need not sum to 1:
    they are not distributions. Source: Brunner 2020; departure: the basis of the values comes from a QR decomposition,
    which needs no threshold for the rank.
    """

    lengths = torch.tensor([len(sequence) for sequence in batch], device=encoder.device)

    def project(layer: int, reading: Reading) -> None:
        read(layer, _effective(reading.weights, reading.values, lengths, sums))

    read_layers(encoder, batch, ValueReader(project), check)


def _effective(weights: Attention, values: Values, lengths: Tensor, sums: bool) -> Attention:
    """The attention of one layer, projected on the span of the values and, with `sums`, of a column of ones."""
    # Compare the true length: a short sequence has no null space, however far the batch is padded.
    long = lengths > values.shape[-1]
    if sums:
        values = torch.cat([values, values.new_ones(*values.shape[:-1], 1)], dim=-1)
    real = torch.arange(weights.shape[-1], device=weights.device) < lengths[:, None]
    result = weights.clone()
    if long.any():
        without_padding = values * real[:, None, :, None]
        basis, _ = torch.linalg.qr(without_padding[long])
        result[long] = weights[long] @ basis @ basis.mT
    return result


def attribution(probes: int | None = PROBES, seed: int = 0) -> Source:
    """Maps of how much each head's output depends on each input token (see `attribution.attributions`)."""
    return Source("attribution", attributions(probes, seed, POST_LN))


def local_attribution(probes: int | None = PROBES, seed: int = 0) -> Source:
    """The same with respect to each layer's own input: what a head does with it, without the mixing in lower layers."""
    return Source("local_attribution", attributions(probes, seed, LAYERS))


class MapStore:
    """The maps of one slow source on one encoder, by the id of the sequence (4 bytes a layer, head and token pair).

    `sequences` are those whose maps are stored, in the order in which they were computed.
    """

    def __init__(self, of: str | ReadMaps | Source = "attention"):
        self.of = find_source(of)
        self.maps: dict[str, Float[Tensor, "layer head token token"]] = {}
        self.sequences: list[Layout] = []

    @property
    def source(self) -> Source:
        """A source that reads stored maps, and computes and stores missing ones."""
        return replace(self.of, read=self.read, prepare=None)

    def read(self, encoder: Encoder, batch: Sequence[Layout], read: Read, check: bool = False) -> None:
        """Calls `read(layer, maps)` for the padded batch."""
        missing = [layout for layout in batch if layout.id not in self.maps]
        layers: list[Tensor] = []
        if missing:
            self.of.read(encoder, missing, lambda _, maps, *__: layers.append(maps), check)
        for number, layout in enumerate(missing):
            size = len(layout)
            self.maps[layout.id] = torch.stack([maps[number, :, :size, :size] for maps in layers])
            self.sequences.append(layout)
        longest = max(map(len, batch))
        for layer in range(encoder.layers):
            padded = torch.zeros(len(batch), encoder.heads, longest, longest, device=encoder.device)
            for row, layout in zip(padded, batch, strict=True):
                row[:, : len(layout), : len(layout)] = self.maps[layout.id][layer]
            read(layer, padded)


MAPS |= {
    "effective": Source("effective", effective, distributions=False),
    "effective_sum": Source("effective_sum", partial(effective, sums=True), distributions=False),
    "attribution": attribution(),
    "local_attribution": local_attribution(),
}
