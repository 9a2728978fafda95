"""The head outputs of an encoder as a differentiable function of hidden states."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from analysis.encoders.layout import Pieces
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import Call, body, recorded_calls
from analysis.encoders.tap import AllRead, Reading, ValueReader, read_layers, tap

# Where hidden states enter: after the normalisation of the embeddings, before it, or before every layer.
POST_LN, PRE_LN, LAYERS = STARTS = ("post_ln", "pre_ln", "layers")

Hidden = Float[Tensor, "part batch token width"]
Outputs = Float[Tensor, "layer batch head token size"]


def head_outputs(
    encoder: Encoder, batch: Sequence[Pieces], start: str = POST_LN
) -> tuple[Hidden, Callable[[Hidden], Outputs]]:
    """The hidden states of a padded batch at `start`, and the outputs of all heads as a function of them.

    Outputs are attention times values, before the output projection. The function may be called under `torch.func.jvp`
    and `vmap`: it stores nothing that it computes. It computes in float32 at every precision; the outputs of padded
    tokens are meaningless.

    `post_ln` and `pre_ln` have one part, the sum of the embeddings after or before its normalisation; all layers depend
    on it. `layers` has a part for every layer: the layer's own input, on which that layer alone depends.
    """
    exact, layers = replace(encoder, precision="float32"), body(encoder)[1]
    module = encoder.model.base_model.embeddings.LayerNorm if start == PRE_LN else layers[0]
    with recorded_calls(layers if start == LAYERS else [module]) as calls:
        read_layers(exact, batch, lambda *_: None)
    hidden = torch.stack([arguments[0] for _, arguments, _ in calls])
    if start == LAYERS:
        return hidden, lambda hidden: _layer_by_layer(exact, calls, hidden)
    return hidden, lambda hidden: _whole_pass(exact, batch, module, hidden[0])


def _whole_pass(
    encoder: Encoder, batch: Sequence[Pieces], module: nn.Module, hidden: Float[Tensor, "batch token width"]
) -> Outputs:
    """The outputs of a pass in which `hidden` enters the module."""
    contexts: list[Tensor] = []
    with module.register_forward_pre_hook(lambda _, arguments: (hidden, *arguments[1:])):
        read_layers(encoder, batch, ValueReader(lambda _, reading: contexts.append(reading.context)))
    return torch.stack(contexts)


def _layer_by_layer(encoder: Encoder, calls: Sequence[Call], hidden: Hidden) -> Outputs:
    """The outputs of every layer for its own `hidden`; no layer runs further than its heads."""
    contexts: list[Tensor] = []

    def read(_: int, reading: Reading) -> None:
        contexts.append(reading.context)
        raise AllRead

    with tap(encoder.model, ValueReader(read)) as tapped, torch.no_grad(), encoder.autocast():
        for layer, ((module, arguments, options), layer_input) in enumerate(zip(calls, hidden, strict=True)):
            tapped.resume(layer)
            with suppress(AllRead):
                module(layer_input, *arguments[1:], **options)
    return torch.stack(contexts)
