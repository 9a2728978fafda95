"""The one place that touches attention inside a model: read it, replace it, scale what heads give."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from analysis.encoders.layout import Pieces
from analysis.encoders.models import Encoder
from analysis.errors import InputError

Attention = Float[Tensor, "batch head token token"]
Read = Callable[[int, Attention], None]
Replace = Callable[[int, Attention, Bool[Tensor, "batch token"]], Attention]
NAME = "tapped"


class Reading(NamedTuple):
    """What the heads of one layer do: where they attend, what they find there, and what they give."""

    weights: Attention  # before any replacement
    values: Float[Tensor, "batch head token size"]
    context: Float[Tensor, "batch head token size"]  # attention times values, replaced and gated


@dataclass(frozen=True)
class ValueReader:
    """A `read` that sees more than attention: it is called as `read(layer, reading)` with a `Reading`."""

    read: Callable[[int, Reading], None]

    def __call__(self, layer: int, reading: Reading) -> None:
        self.read(layer, reading)


@dataclass
class Tap:
    """What is done at every attention of a tapped model."""

    read: Read | ValueReader | None
    gate: Float[Tensor, "layer head"] | Float[Tensor, "sequence layer head"] | None
    replace: Replace | None
    layer: int = -1

    def resume(self, layer: int) -> None:
        """Says that the next attention is that of `layer`, where layers are called one by one."""
        self.layer = layer - 1

    def start(self, *_: object) -> None:
        """Counts layers anew: a forward pass begins."""
        self.resume(0)

    def attend(self, module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
        """Attention as transformers asks for it: the output of all heads, and their weights."""
        # DistilBERT's attention modules carry no layer_idx, so layers are counted in calling order.
        self.layer += 1
        scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
        # At least float32 at once: mixed types would be cast back and forth. In place: two passes over the maps less,
        # and to the bit what eager attention gives.
        logits = _at_least_float32(torch.matmul(query, key.transpose(2, 3)))
        logits *= scaling
        if attention_mask is not None:
            logits += attention_mask
        weights = torch.softmax(logits, dim=-1)
        whole = isinstance(self.read, ValueReader)
        if self.read is not None and not whole:
            self.read(self.layer, weights)
        used = weights if self.replace is None else self._replaced(weights, attention_mask)
        dropped = torch.dropout(used.to(value.dtype), dropout, module.training)
        context = torch.matmul(dropped, value)
        if self.gate is not None:
            context = context * self._gate(len(context))
        if whole:
            self.read(self.layer, Reading(weights, _at_least_float32(value), _at_least_float32(context)))
        return context.transpose(1, 2).contiguous(), used

    def _replaced(self, weights: Attention, mask: Tensor | None) -> Attention:
        shape = weights.shape[0], weights.shape[-1]
        real = (
            weights.new_ones(shape, dtype=torch.bool) if mask is None else (mask[:, 0, 0] == 0).expand(shape)
        )
        found = self.replace(self.layer, weights, real)
        if found.shape != weights.shape:
            raise InputError(
                f"the replaced attention has shape {tuple(found.shape)}: it must be {tuple(weights.shape)}"
            )
        return found

    def _gate(self, sequences: int) -> Float[Tensor, "*sequence head 1 1"]:
        if self.gate.ndim == 3 and len(self.gate) != sequences:
            raise InputError(f"the gate is for {len(self.gate)} sequences: the batch has {sequences}")
        return self.gate[..., self.layer, :, None, None]


def _at_least_float32(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


# Keyed by the identity of the configuration that a model shares with all its attention modules.
_active: dict[int, Tap] = {}


def _attention(module, *arguments, **options):
    return _active[id(module.config)].attend(module, *arguments, **options)


# An attention function without a mask builder of the same name is handed no mask: padding would be attended to.
AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def tap(
    model: PreTrainedModel,
    read: Read | ValueReader | None = None,
    gate: Float[Tensor, "layer head"] | Float[Tensor, "sequence layer head"] | None = None,
    replace: Replace | None = None,
) -> Iterator[Tap]:
    """Within the context, heads are read, scaled or given other attention, layer by layer.

    `read(layer, weights)` sees the heads' own attention: the probabilities after softmax, at least float32, rows =
    queries; padded columns hold 0 and padded rows are meaningless. A `ValueReader` also sees value vectors and head
    outputs. `gate` scales head outputs, for all sequences alike or for each on its own; ones change nothing, 0
    removes a head (Michel 2019, mask variable xi). `replace(layer, weights, real)` gives the attention that weighs the
    values in place of `weights`; `real` marks the tokens that are no padding (see `uniform_heads`).
    The model is as before when the context ends, also after an exception. Raises InputError for a gate or a
    replacement of the wrong shape, a model that is tapped already, or one that does not dispatch its attention through
    transformers' AttentionInterface.
    """
    shape = (model.config.num_hidden_layers, model.config.num_attention_heads)
    if gate is not None and (gate.ndim not in (2, 3) or tuple(gate.shape[-2:]) != shape):
        raise InputError(
            f"the gate has shape {tuple(gate.shape)}: it must be (layers, heads) = {shape}, "
            "or one such gate for every sequence"
        )
    key = id(model.config)
    if key in _active:
        raise InputError(f"{type(model).__name__} is tapped already: leave the inner tap() context first")
    before = model.config._attn_implementation
    state = _active[key] = Tap(read, gate, replace)
    hook = model.register_forward_pre_hook(state.start)
    try:
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:
            raise InputError(
                f"{type(model).__name__} has no exchangeable attention: use a BERT-like encoder of transformers 5"
            )
        yield state
    finally:
        hook.remove()
        model.set_attn_implementation(before)
        del _active[key]


def uniform_heads(chosen: Bool[Tensor, "layer head"] | Bool[Tensor, "sequence layer head"]) -> Replace:
    """A `replace` of `tap`: the chosen heads attend to all real tokens alike (Kovaleva 2019, section 4.6)."""

    def replace(layer: int, weights: Attention, real: Bool[Tensor, "batch token"]) -> Attention:
        return torch.where(chosen[..., layer, :, None, None], uniform_rows(real), weights)

    return replace


def uniform_rows(real: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch 1 1 token"]:
    """A row of attention for every sequence that is spread evenly over its real tokens."""
    return (real / real.sum(dim=1, keepdim=True))[:, None, None]


class _AllRead(Exception):
    """The attention of the last layer was read: what the encoder would still do is not needed."""


def read_layers(
    encoder: Encoder, batch: Sequence[Pieces], read: Read | ValueReader, check: bool = False
) -> None:
    """Runs one padded batch until `read(layer, attention)` has seen every layer's attention (see `tap`).

    The encoder stops there: the rest of its last layer gives no attention. What `read` computes is float32 at every
    precision. `check` guards the attention (see `guard`). Raises RuntimeError where a layer was not read.
    """
    inputs = encoder.inputs(batch)
    whole = isinstance(read, ValueReader)

    def read_until_last(layer: int, found: Attention | Reading) -> None:
        if check:
            guard(found.weights if whole else found, encoder, inputs["attention_mask"])
        with torch.autocast(encoder.device.type, enabled=False):
            read(layer, found)
        if layer == encoder.layers - 1:
            raise _AllRead

    reader = ValueReader(read_until_last) if whole else read_until_last
    # Not inference_mode: autocast keeps no casts of weights in it (see `models.kept_casts`).
    with suppress(_AllRead), tap(encoder.model, reader), torch.no_grad(), encoder.autocast():
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
