"""A store in memory for maps that are slow to compute: computed once, read as often as needed."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Read
from analysis.scores.maps import ReadMaps, Source, find_source

Maps = Float[Tensor, "layer head token token"]


class MapStore:
    """The maps of one source on one encoder, by the id of the sequence (4 bytes a layer, head and token pair).

    `sequences` are those whose maps are stored, in the order in which they were computed.
    """

    def __init__(self, of: str | ReadMaps | Source = "attention"):
        self.of = find_source(of)
        self.maps: dict[str, Maps] = {}
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
