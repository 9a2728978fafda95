"""The one place that touches attention inside a model: read it layer by layer, scale heads."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from analysis.encoders.layout import Pieces
from analysis.encoders.models import Encoder
from analysis.errors import InputError

Read = Callable[[int, Float[Tensor, "batch head token token"]], None]
NAME = "tapped"


@dataclass
class _Tap:
    read: Read | None
    gate: Float[Tensor, "layer head"] | None
    layer: int = -1

    def start(self, *_: object) -> None:
        self.layer = -1

    def attend(self, module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
        # DistilBERT's attention modules carry no layer_idx, so layers are counted in calling order.
        self.layer += 1
        scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
        # Float32 at once: mixed types would be cast back and forth. In place: two passes over the maps less, and to
        # the bit what eager attention gives.
        logits = torch.matmul(query, key.transpose(2, 3)).float()
        logits *= scaling
        if attention_mask is not None:
            logits += attention_mask
        weights = torch.softmax(logits, dim=-1)
        if self.read is not None:
            self.read(self.layer, weights)
        dropped = torch.dropout(weights.to(value.dtype), dropout, module.training)
        context = torch.matmul(dropped, value)
        if self.gate is not None:
            context = context * self.gate[self.layer][None, :, None, None]
        return context.transpose(1, 2).contiguous(), weights


# Keyed by the identity of the configuration that a model shares with all its attention modules.
_active: dict[int, _Tap] = {}


def _attention(module, *arguments, **options):
    return _active[id(module.config)].attend(module, *arguments, **options)


# An attention function without a mask builder of the same name is handed no mask: padding would be attended to.
AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def tap(
    model: PreTrainedModel, read: Read | None = None, gate: Float[Tensor, "layer head"] | None = None
) -> Iterator[None]:
    """Within the context, `read(layer, weights)` sees every layer's attention and `gate` scales head outputs.

    `weights` are the probabilities after softmax, float32, rows = queries; padded columns hold 0 and padded
    rows are meaningless. A gate of ones changes nothing, 0 removes a head (Michel 2019, mask variable xi).
    The model is as before when the context ends, also after an exception. Raises InputError when the
    model is tapped already or does not dispatch its attention through transformers' AttentionInterface.
    """
    shape = (model.config.num_hidden_layers, model.config.num_attention_heads)
    if gate is not None and tuple(gate.shape) != shape:
        raise InputError(f"the gate has shape {tuple(gate.shape)}: it must be (layers, heads) = {shape}")
    key = id(model.config)
    if key in _active:
        raise InputError(f"{type(model).__name__} is tapped already: leave the inner tap() context first")
    before = model.config._attn_implementation
    state = _active[key] = _Tap(read, gate)
    hook = model.register_forward_pre_hook(state.start)
    try:
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:
            raise InputError(
                f"{type(model).__name__} has no exchangeable attention: use a BERT-like encoder of transformers 5"
            )
        yield
    finally:
        hook.remove()
        model.set_attn_implementation(before)
        del _active[key]


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
