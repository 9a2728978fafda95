"""The forward pass as far as its attention: every layer of a padded batch is handed on as the encoder runs."""

from collections.abc import Sequence
from contextlib import suppress

import torch
from jaxtyping import Float
from torch import Tensor

from .layout import Pieces
from .models import Encoder
from .tap import Read, tap


class _AllRead(Exception):
    """The attention of the last layer was read: what the encoder would still do is not needed."""


def read_layers(encoder: Encoder, batch: Sequence[Pieces], read: Read, check: bool = False) -> None:
    """Runs one padded batch until `read(layer, attention)` has seen every layer's attention (see `tap`).

    The encoder stops there: the rest of its last layer gives no attention. What `read` computes is float32 at every
    precision. `check` guards the attention (see `guard`). Raises RuntimeError where a layer was not read.
    """
    inputs = encoder.inputs(batch)

    def read_until_last(layer: int, attention: Float[Tensor, "batch head token token"]) -> None:
        if check:
            guard(attention, encoder, inputs["attention_mask"])
        with torch.autocast(attention.device.type, enabled=False):
            read(layer, attention)
        if layer == encoder.layers - 1:
            raise _AllRead

    # Not inference_mode: autocast keeps no casts of weights in it (see `models.kept_casts`).
    with suppress(_AllRead), tap(encoder.model, read_until_last), torch.no_grad(), encoder.autocast():
        encoder.model(**inputs)
        raise RuntimeError(f"read the attention of less than {encoder.layers} layers")


def guard(attention: Float[Tensor, "batch head token token"], encoder: Encoder, mask: Tensor) -> None:
    """Stops a run whose attention is silently missing, unnormalised or spilt on padding."""
    batch, length = mask.shape
    expected = (batch, encoder.heads, length, length)
    if tuple(attention.shape) != expected:
        raise RuntimeError(f"attention has shape {tuple(attention.shape)}, expected {expected}")
    if not ((attention.sum(-1) - 1).abs() <= 1e-4).all():  # also where they are NaN
        raise RuntimeError("attention rows do not sum to 1: the weights read are not those after softmax")
    if (attention.sum((1, 2)) * (mask == 0)).any():
        raise RuntimeError("attention falls on padding: the attention function received no mask")
