"""How much the loss of a classifier depends on each of its heads (Michel 2019), from one backward pass."""

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Num
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from analysis.encoders.classifiers import about_texts, check_examples
from analysis.encoders.interventions import check_gate
from analysis.encoders.layout import Layout, layouts, stream
from analysis.encoders.models import Encoder
from analysis.encoders.tap import ValueReader, tap
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
