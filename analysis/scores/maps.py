"""Maps: attention that is changed before it is scored (controls), and entropies of its rows."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.scores.contraction import row_entropies
from analysis.scores.extraction import Change

SMOOTHING = 1e-4  # the part of every row that is spread evenly, so that zeros have a logarithm


Attention = Float[Tensor, "batch head token token"]


def uniform(attention: Attention, batch: Sequence[Layout]) -> Attention:
    """Heads that attend to all tokens of their sequence alike: a `change` of `extract`."""
    lengths = torch.tensor([len(layout) for layout in batch], device=attention.device)
    inside = torch.arange(attention.shape[-1], device=attention.device) < lengths[:, None]
    return (inside / lengths[:, None])[:, None, None, :].expand_as(attention)


def shuffled(seed: int = 0) -> Change:
    """A `change` of `extract`: each head's own attention with the word pieces of a sequence in random order.

    Rows and columns take the same order in all layers and heads, special tokens stay where they are. Scores
    of cls, sep and delimiter remain, those that rest on which word stands where do not. The order depends on `seed`
    and the id of the sequence.
    """

    def change(attention: Attention, batch: Sequence[Layout]) -> Attention:
        orders = np.stack([_order(layout, attention.shape[-1], seed) for layout in batch])
        order = torch.from_numpy(orders).to(attention.device)
        rows = attention.gather(2, order[:, None, :, None].expand_as(attention))
        return rows.gather(3, order[:, None, None, :].expand_as(attention))

    return change


def _order(layout: Layout, size: int, seed: int) -> Int[np.ndarray, "token"]:
    """The positions of a padded sequence with its word pieces permuted."""
    order, pieces = np.arange(size), np.flatnonzero(layout.text >= 0)
    order[pieces] = np.random.default_rng([seed, crc32(layout.id.encode())]).permutation(pieces)
    return order


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
