"""Effective attention: the part of attention that can change a head's output (Brunner 2020)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from analysis.encoders.layout import Pieces
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Attention, Read, Reading, ValueReader, read_layers

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
