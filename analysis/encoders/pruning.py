"""The importance of heads, and models from which heads are removed, which makes them faster (Michel 2019, table 4)."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int, Num
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from analysis.encoders import mpnet
from analysis.encoders.dispatch import dispatch
from analysis.encoders.interventions import about_texts, check_examples, check_gate
from analysis.encoders.layout import Layout, layouts, stream
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import body, projections
from analysis.encoders.tap import ValueReader, tap
from analysis.errors import InputError
from analysis.texts.examples import Example

BUDGET = 2048  # padded tokens in one pass


def importance(
    encoder: Encoder,
    examples: Sequence[Example],
    *,
    gate: Num[np.ndarray, "..."] | None = None,
    batch_size: int = 32,
    max_tokens: int = 128,
    progress: bool = True,
) -> xr.DataArray:
    """The mean over examples of |d loss / d gate| (granularity, layer, head) for the labels of the examples.

    The granularity says where the absolute value is taken. `example`: for each example (Michel 2019, equation 2).
    `token`: for each token, then summed over the example (the authors' code, Michel 2019). `batch`: for the sum over
    `batch_size` consecutive examples. The loss is cross entropy in nats, or the squared error of a number. `gate` 0
    ablates heads while the others are measured; these heads get 0.
    """
    check_examples(encoder, examples, max_tokens, labelled=True)
    gate = check_gate(encoder, np.ones((encoder.layers, encoder.heads)) if gate is None else gate)
    all_sequences = layouts(encoder.tokenizer, examples, max_tokens)
    width = max(1, len(examples[0].choices))  # sequences per example
    by_example = [all_sequences[start : start + width] for start in range(0, len(all_sequences), width)]
    labels = np.array([example.label for example in examples])
    signed, absolute = np.empty((2, len(examples), encoder.layers, encoder.heads), np.float32)
    longest = [max(sequences, key=len) for sequences in by_example]
    for indices, _, _ in stream(longest, max(1, BUDGET // width), "importance", progress):
        batch = [layout for index in indices for layout in by_example[index]]
        products = gate_gradients(encoder, batch, labels[indices], gate)
        products = products.unflatten(1, (-1, width)).flatten(2, 3)  # layer, example, token, head
        signed[indices] = products.sum(2).transpose(0, 1).cpu()
        absolute[indices] = products.abs().sum(2).transpose(0, 1).cpu()
    by_batch = np.add.reduceat(signed, range(0, len(examples), batch_size))
    parts = {"example": abs(signed), "token": absolute, "batch": abs(by_batch)}
    values = np.stack([part.sum(0) for part in parts.values()]) / len(examples)
    about = about_texts(all_sequences) | {"max_tokens": max_tokens, "batch_size": batch_size}
    return xr.DataArray(
        values,
        [("granularity", [*parts]), ("layer", range(encoder.layers)), ("head", range(encoder.heads))],
        name="importance",
        attrs={**encoder.provenance, "precision": "float32", **about},
    )


def gate_gradients(
    encoder: Encoder,
    batch: Sequence[Layout],
    labels: Num[np.ndarray, " example"],
    gate: Float[np.ndarray, "layer head"],
) -> Float[Tensor, "layer sequence token head"]:
    """Each token's part of d loss / d gate of each head: the head's output times the gradient of the loss in it.

    The loss is summed over examples. They do not depend on each other, so one backward pass gives each its own
    gradient. The output is taken after the gate; the product is the derivative where the gate is 1.
    """
    contexts: list[Tensor] = []
    reader = ValueReader(lambda _, reading: contexts.append(reading.context))
    # If the weights are frozen, the gate is all that needs a gradient in the first layer.
    gates = torch.from_numpy(gate).to(encoder.device).requires_grad_()
    with torch.enable_grad(), tap(encoder.model, reader, gates):
        logits = encoder.model(**encoder.inputs(batch)).logits
        loss = summed_loss(logits, torch.from_numpy(labels).to(encoder.device))
    gradients = torch.autograd.grad(loss, contexts)
    products = [
        (context.detach() * gradient).sum(-1) for context, gradient in zip(contexts, gradients, strict=True)
    ]
    return torch.stack(products).transpose(2, 3)


def summed_loss(
    logits: Float[Tensor, "sequence class"], labels: Num[Tensor, " example"]
) -> Float[Tensor, ""]:
    """The loss summed over examples: cross entropy of classes or choices, or the squared error of a number."""
    if logits.shape[-1] > 1 or len(logits) > len(labels):
        return cross_entropy(logits.reshape(len(labels), -1), labels.long(), reduction="sum")
    return mse_loss(logits[:, 0], labels.to(logits.dtype), reduction="sum")


def normalised(importance: xr.DataArray) -> xr.DataArray:
    """Importance divided by its L2 norm over the heads of a layer (Molchanov 2017); a layer of zeros stays zero."""
    norm = np.sqrt((importance**2).sum("head"))
    return (importance / norm.where(norm > 0, 1)).assign_attrs(importance.attrs)


def prune(encoder: Encoder, gate: Num[np.ndarray, "..."]) -> Encoder:
    """A copy of the encoder without the heads whose gate is 0; it gives the same logits as the encoder with that gate.

    A layer may lose all heads. The remaining heads get new numbers: use gates, `tap` and `predict` with interventions
    on the original encoder.
    """
    gate = check_gate(encoder, gate)
    if not np.isin(gate, (0, 1)).all():
        raise InputError("the gate has numbers between 0 and 1: a head is pruned (0) or kept (1)")
    model = copy.deepcopy(encoder.model)
    name = f"{encoder.name}, {int(gate.sum())} of {gate.size} heads"
    smaller = Encoder(name, model, encoder.tokenizer, encoder.precision, encoder.absent)
    dispatch(model)  # MPNet's own attention would add the bias of all heads
    for layer, row in zip(body(smaller)[1], gate, strict=True):
        query, key, value, output = projections(layer, name)
        if query.out_features < query.in_features:
            raise InputError(
                f"{encoder.name!r} is already pruned: prune the whole encoder, with one gate for all heads"
            )
        dimensions = torch.from_numpy(np.flatnonzero(row.repeat(query.out_features // len(row))))
        for linear in (query, key, value):
            _shrink(linear, dimensions.to(encoder.device), dim=0)
        _shrink(output, dimensions.to(encoder.device), dim=1)
        for module in layer.modules():
            if isinstance(module, mpnet.Attention):
                module.remaining_heads = np.flatnonzero(row)
    return smaller


def _shrink(linear: nn.Linear, dimensions: Int[Tensor, " dimension"], dim: int) -> None:
    """Leaves a linear layer these output dimensions (dim 0) or input dimensions (dim 1)."""
    linear.weight = nn.Parameter(linear.weight.detach().index_select(dim, dimensions))
    if dim == 0 and linear.bias is not None:
        linear.bias = nn.Parameter(linear.bias.detach()[dimensions])
    linear.out_features, linear.in_features = linear.weight.shape
