"""The one place that touches attention inside a model: read the weights layer by layer, scale heads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from .errors import InputError

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
