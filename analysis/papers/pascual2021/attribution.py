"""Attribution: how much a head's output depends on each input token, by gradients (Pascual 2021).

Importing this module makes maps known to `extract(..., maps=...)`: attribution, local_attribution, and effective and
effective_sum (effective attention, Brunner 2020).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import jvp, vmap

from analysis.encoders.layout import Layout, Pieces
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import Call, body, recorded_calls
from analysis.encoders.tap import AllRead, Attention, Read, Reading, ValueReader, read_layers, tap
from analysis.errors import InputError
from analysis.scores.maps import MAPS, ReadMaps, Source, by_batch, find_source

# Where hidden states enter: after the normalisation of the embeddings, before it, or before every layer.
POST_LN, PRE_LN, LAYERS = STARTS = ("post_ln", "pre_ln", "layers")
PROBES = 8
MEMORY = 200e6  # bytes that the derivatives of one call may use; a single derivative may need more
# Besides the output of every layer, a derivative holds this many numbers per token and unit of width, and per token,
# head and token attended to. Measured on MiniLM at 16 to 53 tokens.
PER_WIDTH, PER_PAIR = 28, 16

Attributions = Float[Tensor, "layer head token token"]
Hidden = Float[Tensor, "part batch token width"]
Outputs = Float[Tensor, "layer batch head token size"]


def attributions(probes: int | None = PROBES, seed: int = 0, start: str = POST_LN) -> Callable[..., None]:
    """Reads, layer by layer, maps of how much each head's output at a token depends on every input token.

    Each sequence runs alone (see `attributed`), so that nothing depends on the batch.
    """

    def read_attribution(encoder: Encoder, batch: Sequence[Pieces], read: Read, check: bool = False) -> None:
        if check:
            read_layers(encoder, batch, lambda *_: None, check)
        longest = max(map(len, batch))
        shape = encoder.layers, len(batch), encoder.heads, longest, longest
        maps = torch.zeros(shape, device=encoder.device)
        for number, sequence in enumerate(batch):
            size = len(sequence)
            maps[:, number, :, :size, :size] = attributed(encoder, sequence, probes, seed, start)
        for layer, layer_maps in enumerate(maps):
            read(layer, layer_maps)

    return read_attribution


def attributed(
    encoder: Encoder, sequence: Pieces, probes: int | None = PROBES, seed: int = 0, start: str = POST_LN
) -> Attributions:
    """The attribution of every head on one sequence; rows are the tokens of the output.

    Entry (j, i) says how strongly the head's output at token j, before the output projection, changes when the hidden
    state of token i at `start` changes: the Frobenius norm of the derivative, divided by the sum of its row. With
    `start` `layers` it is the input of the layer itself (local attribution; see `head_outputs`). The norm is estimated
    from `probes` orthogonal random directions, which are the same for all tokens of a sequence and depend on `seed` and
    the `id` of the sequence. With as many probes as the width of the hidden states (or None) it is exact. Computed in
    float32. Source: Pascual 2021 (gradient attribution of a head's output to the input tokens); norm and estimator are
    this study's own choice.
    """
    hidden, function = head_outputs(encoder, [sequence], start)
    parts, _, tokens, width = hidden.shape
    directions = _probes(width, probes, [seed, crc32(sequence.id.encode())]).to(hidden)
    shape = encoder.layers, encoder.heads, tokens, tokens
    squares = torch.zeros(shape, dtype=torch.float64, device=hidden.device)

    def derivative(tangent: Tensor) -> Tensor:
        """Squared length of the derivative of every head's output at every token."""
        return jvp(function, (hidden,), (tangent,))[1].square().sum(-1)[:, 0]

    count = len(directions)
    per_token = width * (encoder.layers + PER_WIDTH) + PER_PAIR * encoder.heads * tokens
    at_once = max(1, int(MEMORY / (tokens * per_token) / torch.float32.itemsize))
    for chunk in torch.arange(tokens * count, device=hidden.device).split(at_once):
        token, probe = chunk // count, chunk % count
        tangents = hidden.new_zeros(len(chunk), parts, 1, tokens, width)
        tangents[torch.arange(len(chunk)), :, 0, token] = directions[probe][:, None]
        values = vmap(derivative)(tangents)
        squares.index_add_(-1, token, values.movedim(0, -1).to(squares.dtype))
    norms = squares.sqrt()
    return (norms / norms.sum(-1, keepdim=True)).to(hidden.dtype)


def _probes(width: int, count: int | None, seeds: list[int]) -> Float[Tensor, "probe width"]:
    """Orthogonal directions, scaled so that the mean of squares over them estimates the sum over all directions."""
    count = width if count is None else count
    if not 1 <= count <= width:
        raise InputError(f"probes is {count}: choose 1 to {width}, the width of the hidden states")
    gaussian = np.random.default_rng(seeds).standard_normal((width, count))
    basis, _ = np.linalg.qr(gaussian)
    return torch.from_numpy(basis.T.copy())


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


def attribution(probes: int | None = PROBES, seed: int = 0) -> Source:
    """Maps of how much each head's output depends on each input token (see `attribution.attributions`)."""
    return Source("attribution", by_batch(attributions(probes, seed, POST_LN)))


def local_attribution(probes: int | None = PROBES, seed: int = 0) -> Source:
    """The same with respect to each layer's own input: what a head does with it, without the mixing in lower layers."""
    return Source("local_attribution", by_batch(attributions(probes, seed, LAYERS)))


class MapStore:
    """The maps of one slow source on one encoder, by the id of the sequence (4 bytes a layer, head and token pair).

    `sequences` are those whose maps are stored, in the order in which they were computed.
    """

    def __init__(self, of: str | Source = "attention"):
        self.of = find_source(of)
        self.maps: dict[str, Float[Tensor, "layer head token token"]] = {}
        self.sequences: list[Layout] = []

    @property
    def source(self) -> Source:
        """A source that reads stored maps, and computes and stores missing ones."""
        return replace(self.of, prepare=self._prepare)

    def _prepare(self, encoder: Encoder, sequences: Sequence[Layout]) -> ReadMaps:
        return partial(self._read, encoder, self.of.prepare(encoder, sequences))

    def _read(
        self, encoder: Encoder, compute: ReadMaps, batch: Sequence[Layout], read: Read, check: bool = False
    ) -> None:
        missing = [layout for layout in batch if layout.id not in self.maps]
        layers: list[Tensor] = []
        if missing:
            compute(missing, lambda _, maps, *__: layers.append(maps), check)
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


MAPS |= {
    "effective": Source("effective", by_batch(effective), distributions=False),
    "effective_sum": Source("effective_sum", by_batch(partial(effective, sums=True)), distributions=False),
    "attribution": attribution(),
    "local_attribution": local_attribution(),
}
