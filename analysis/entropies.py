"""Entropies of attention rows, measured layer by layer beside the sieves (the `statistics` of `extract`)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from .contraction import row_entropies
from .layout import Layout

SMOOTHING = 1e-4  # the part of every row that is spread evenly, so that zeros have a logarithm


def all_rows(
    attention: Float[Tensor, "batch head token token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """Mean entropy (nats) of the rows of every map; ln T for uniform attention.

    Rows are smoothed to 0.9999 A + 0.0001 / T first (Clark 2019, section 3.3, as the released code computes).
    """
    real = _real_tokens(attention, batch)
    entropies = _smoothed_entropies(attention, real)  # batch, head, token
    return (entropies * real[:, None]).sum(-1) / real.sum(-1)[:, None]


def first_row(
    attention: Float[Tensor, "batch head token token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """Entropy (nats) of the row of [CLS], smoothed as in `all_rows` (Clark 2019, section 3.3)."""
    return _smoothed_entropies(attention[:, :, :1], _real_tokens(attention, batch))[:, :, 0]


def _real_tokens(attention: Tensor, batch: Sequence[Layout]) -> Float[Tensor, "batch token"]:
    """1 for tokens, 0 for padding."""
    lengths = torch.tensor([len(layout) for layout in batch], device=attention.device)
    positions = torch.arange(attention.shape[-1], device=attention.device)
    return (positions < lengths[:, None]).to(attention.dtype)


def _smoothed_entropies(
    attention: Float[Tensor, "batch head row token"], real: Float[Tensor, "batch token"]
) -> Float[Tensor, "batch head row"]:
    share = SMOOTHING * real / real.sum(-1, keepdim=True)  # padding gets none
    smoothed = attention * (1 - SMOOTHING) + share[:, None, None]
    return row_entropies(smoothed)
