"""The one place that touches attention inside a model: it reads attention, replaces it and scales head outputs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from analysis.encoders.dispatch import NAME, dispatched
from analysis.encoders.layout import Pieces
from analysis.encoders.models import Encoder
from analysis.errors import InputError

Attention = Float[Tensor, "batch head token token"]
Read = Callable[[int, Attention], None]
Rows = Float[Tensor, "batch head query token"]  # attention of the query tokens
Replace = Callable[[int, Rows, Bool[Tensor, "batch token"]], Rows]
Values = Float[Tensor, "batch head token size"]
Mix = Callable[[int, Rows, Values], Float[Tensor, "batch head query size"]]


class Reading(NamedTuple):
    """What the heads of one layer do: where they attend, the value vectors there, and the output."""

    weights: Attention  # before any replacement
    values: Values
    context: Float[Tensor, "batch head token size"]  # attention times values, replaced and gated


@dataclass(frozen=True)
class ValueReader:
    """A `read` that sees more than attention: `tap` calls `read(layer, reading)` with a `Reading`."""

    read: Callable[[int, Reading], None]

    def __call__(self, layer: int, reading: Reading) -> None:
        self.read(layer, reading)


@dataclass
class Tap:
    """What to do at every attention of a tapped model."""

    read: Read | ValueReader | None
    gate: Float[Tensor, "layer head"] | Float[Tensor, "sequence layer head"] | None
    replace: Replace | None
    values: Mix | None = None
    layer: int = -1
    # The layer input that gives keys and values where the queries are only some of its rows (see `prefixes`).
    others: Float[Tensor, "batch token width"] | None = None

    def resume(self, layer: int) -> None:
        """Sets the layer of the next attention, for layers that are called one by one."""
        self.layer = layer - 1

    def start(self, *_: object) -> None:
        """Starts counting layers again: a forward pass begins."""
        self.resume(0)

    def attend(self, module, query, key, value, attention_mask, scaling=None, dropout=0.0, bias=None, **_):
        """The output of all heads and their weights, with the signature that transformers expects.

        With `others`, the queries are the layer's own input, and keys and values come from `others`, to which the mask
        and the `bias` of relative positions belong.
        """
        # DistilBERT's attention modules carry no layer_idx, so layers are counted in calling order.
        self.layer += 1
        if self.others is not None:
            key, value = _keys_and_values(module, self.others)
        key, value = (_for_queries(states, query.shape[1]) for states in (key, value))
        weights = _weights(query, key, attention_mask, scaling, bias)
        whole = isinstance(self.read, ValueReader)
        if self.read is not None and not whole:
            self.read(self.layer, weights)
        used = weights if self.replace is None else self._replaced(weights, attention_mask)
        dropped = torch.dropout(used.to(value.dtype), dropout, module.training)
        mix = self.values or (lambda _, weights, value: torch.matmul(weights, value))
        context = mix(self.layer, dropped, value)
        if self.gate is not None:
            context = context * self.gate[..., self.layer, :, None, None]
        if whole:
            self.read(self.layer, Reading(weights, _at_least_float32(value), _at_least_float32(context)))
        return context.transpose(1, 2).contiguous(), used

    def _replaced(self, weights: Rows, mask: Tensor | None) -> Rows:
        shape = weights.shape[0], weights.shape[-1]
        # A mask of local attention differs from row to row, but every real token may attend to itself.
        real = (
            weights.new_ones(shape, dtype=torch.bool)
            if mask is None
            else (mask[:, 0] == 0).any(1).expand(shape)
        )
        return self.replace(self.layer, weights, real)


def _for_queries(
    states: Float[Tensor, "batch group token size"], heads: int
) -> Float[Tensor, "batch head token size"]:
    """Keys or values for each query head, where groups of query heads share them (grouped-query attention)."""
    shared = heads // max(1, states.shape[1])
    return states if shared <= 1 else states.repeat_interleave(shared, dim=1)


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, scaling: float | None, bias: Tensor | None
) -> Rows:
    # Convert to float32 once: mixed types would be converted back and forth. Work in place: this saves two passes over
    # the maps and gives the same bits as eager attention.
    logits = _at_least_float32(torch.matmul(query, key.transpose(2, 3)))
    logits *= query.shape[-1] ** -0.5 if scaling is None else scaling
    if bias is not None:
        logits += bias
    if mask is not None:
        logits += mask
    return torch.softmax(logits, dim=-1)


def _keys_and_values(
    module: nn.Module, hidden: Float[Tensor, "batch token width"]
) -> list[Float[Tensor, "batch head token size"]]:
    names = next(
        pair for pair in (("key", "value"), ("k_lin", "v_lin"), ("k", "v")) if hasattr(module, pair[0])
    )
    return [
        getattr(module, name)(hidden).unflatten(-1, (-1, module.attention_head_size)).transpose(1, 2)
        for name in names
    ]


def _at_least_float32(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


# By the identity of the configuration, which a model shares with all its attention modules.
_active: dict[int, Tap] = {}


def _attention(module, *arguments, **options):
    # A pruned MPNet goes through here outside of the context too.
    return (_active.get(id(module.config)) or Tap(None, None, None)).attend(module, *arguments, **options)


# Without a mask builder of the same name, transformers passes no mask, and heads would attend to padding.
AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def tap(
    model: PreTrainedModel,
    read: Read | ValueReader | None = None,
    gate: Float[Tensor, "layer head"] | Float[Tensor, "sequence layer head"] | None = None,
    replace: Replace | None = None,
    values: Mix | None = None,
) -> Iterator[Tap]:
    """Within the context, reads, scales or replaces the attention of heads, layer by layer.

    `read(layer, weights)` sees the heads' own attention: the probabilities after softmax, at least float32, rows =
    queries; padded columns hold 0 and padded rows are meaningless. A `ValueReader` also sees value vectors and head
    outputs. `gate` scales head outputs, with one gate for all sequences or one for each; 1 changes nothing, 0 removes
    a head (Michel 2019, mask variable xi). `replace(layer, weights, real)` returns the attention that the model uses
    in place of `weights`; `real` marks the tokens that are not padding (see `uniform_heads`). `values(layer, weights,
    value)` returns the head outputs, which are `weights @ value` without it, so that rows may read different value
    vectors. The model is unchanged when the context ends, also after an exception. It must dispatch its attention
    through transformers' AttentionInterface.
    """
    shape = (model.config.num_hidden_layers, model.config.num_attention_heads)
    if gate is not None and (gate.ndim not in (2, 3) or tuple(gate.shape[-2:]) != shape):
        raise InputError(
            f"the gate has shape {tuple(gate.shape)}: it must be (layers, heads) = {shape}, "
            "or one such gate for every sequence"
        )
    key = id(model.config)
    if key in _active:
        raise InputError(f"{type(model).__name__} is already tapped: leave the inner tap() context first")
    state = _active[key] = Tap(read, gate, replace, values)
    hook = model.register_forward_pre_hook(state.start)
    try:
        with dispatched(model):
            yield state
    finally:
        hook.remove()
        del _active[key]


def uniform_rows(real: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch 1 1 token"]:
    """A row of attention for every sequence that is spread evenly over its real tokens."""
    return (real / real.sum(dim=1, keepdim=True))[:, None, None]


class AllRead(Exception):
    """What was to be read has been read: the rest of the encoder, or of the layer, need not run."""


def read_layers(
    encoder: Encoder, batch: Sequence[Pieces], read: Read | ValueReader, check: bool = False
) -> None:
    """Runs one padded batch until `read(layer, attention)` has seen every layer's attention (see `tap`).

    The encoder stops there, since the rest of its last layer holds no attention. What `read` computes is float32 at
    every precision. `check` guards the attention (see `guard`).
    """
    inputs = encoder.inputs(batch)
    whole = isinstance(read, ValueReader)

    def read_until_last(layer: int, reading: Attention | Reading) -> None:
        if check:
            guard(reading.weights if whole else reading, encoder, inputs["attention_mask"])
        with torch.autocast(encoder.device.type, enabled=False):
            read(layer, reading)
        if layer == encoder.layers - 1:
            raise AllRead

    reader = ValueReader(read_until_last) if whole else read_until_last
    # Not inference_mode: autocast does not cache cast weights in it (see `models.cached_casts`).
    with suppress(AllRead), tap(encoder.model, reader), torch.no_grad(), encoder.autocast():
        encoder.model(**inputs)
        raise RuntimeError(f"read the attention of fewer than {encoder.layers} layers")


def guard(attention: Float[Tensor, "batch head token token"], encoder: Encoder, mask: Tensor) -> None:
    """Raises RuntimeError if attention is missing, not normalised or, in the row of a real token, falls on padding."""
    batch, length = mask.shape
    expected = (batch, encoder.heads, length, length)
    if tuple(attention.shape) != expected:
        raise RuntimeError(f"attention has shape {tuple(attention.shape)}, expected {expected}")
    if not ((attention.sum(-1) - 1).abs() <= 1e-4).all():  # True for NaN too
        raise RuntimeError("attention rows do not sum to 1: the weights read are not those after softmax")
    # Local attention leaves rows of padding without any token, which softmax spreads evenly: nothing reads them.
    if (torch.einsum("bhqk,bq->bk", attention, mask.to(attention.dtype)) * (mask == 0)).any():
        raise RuntimeError("attention falls on padding: the attention function received no mask")
