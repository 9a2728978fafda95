"""Gradients of a loss with respect to attention (Clark 2019, figure 3): of masked words, and of a classifier.

The authors released no code for this; `gradient_importance` says how this study settles what the paper leaves open.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm
from transformers import AutoModelForMaskedLM

from analysis.encoders.layout import Layout, batches, layouts
from analysis.encoders.models import Encoder, check_device, display_name, load_tokenizer, load_weights
from analysis.encoders.tap import tap
from analysis.errors import InputError
from analysis.papers.clark2019.surface import passage_blocks
from analysis.scores.extraction import Scored, stack
from analysis.scores.sieves import SIEVES
from analysis.texts.examples import Example

# The groups of attended tokens, and their sieves: punct is full stops and commas, other the rest.
GROUPS = {"cls": "cls", "sep": "sep", "punct": "stops", "other": "content"}
AS_MASK, AS_RANDOM = 0.8, 0.1  # shares of the masked tokens; the rest do not change (BERT)
UNLABELLED = -100
BUDGET = 1024  # padded tokens of a batch of gradients


Masked = tuple[Layout, Int[np.ndarray, " token"]]  # a sequence with masked tokens, and its labels


def load_language_model(name: str | Path, device: str = "cpu") -> Encoder | None:
    """The same encoder with the masked-language head of its checkpoint; None without such a head or a mask token.

    The head of `tiny` has random weights, as the rest of it.
    """
    try:
        model, missing = load_weights(AutoModelForMaskedLM, name)
    except InputError:  # the architecture has no such head; damage is reported on loading the encoder
        return None
    # A decoder that shares the weights of the embeddings is not listed as a parameter of its own.
    head = {key for key, _ in model.named_parameters() if not key.startswith(f"{model.base_model_prefix}.")}
    tokenizer = load_tokenizer(name)
    if not head.isdisjoint(missing) or tokenizer.mask_token_id is None:
        return None
    check_device(device)
    return Encoder(display_name(name), model.eval().to(device), tokenizer)


def masked(layout: Layout, encoder: Encoder, probability: float | int, seed: int) -> Masked:
    """A sequence with some masked tokens, and the labels: the id of a masked token, -100 elsewhere.

    A proportion `probability` of the word pieces is drawn, at least one and never a special token. Of these, 80 %
    become [MASK], 10 % a random token, and 10 % do not change (BERT). With probability 0, nothing is masked and every
    word piece has its label. The draw depends only on the seed and the sequence's id.
    """
    candidates = np.flatnonzero(layout.text >= 0)
    labels = np.full(len(layout), UNLABELLED)
    if probability == 0:
        labels[candidates] = layout.input_ids[candidates]
        return layout, labels
    generator = np.random.default_rng(Random(f"{layout.id} {seed}").getrandbits(64))
    count = max(1, round(probability * len(candidates)))
    positions = generator.choice(candidates, count, replace=False)
    labels[positions] = layout.input_ids[positions]
    draw = generator.random(count)
    ids = layout.input_ids.copy()
    ids[positions[draw < AS_MASK]] = encoder.tokenizer.mask_token_id
    random_positions = positions[(draw >= AS_MASK) & (draw < AS_MASK + AS_RANDOM)]
    ids[random_positions] = generator.integers(len(encoder.tokenizer), size=len(random_positions))
    tokens = tuple(encoder.tokenizer.convert_ids_to_tokens(ids.tolist()))
    return replace(layout, input_ids=ids, tokens=tokens), labels


def gradient_importance(
    encoder: Encoder,
    examples: Sequence[Example],
    mask_probability: float | int = 0.15,
    max_tokens: int = 128,
    segment_ids: str = "zeros",
    seed: int = 0,
) -> xr.DataArray:
    """|dL/d attention| of every sequence, group of attended tokens (see GROUPS), layer and head (Clark 2019, figure 3).

    `encoder` is that of `load_language_model`. L is the mean cross-entropy (nats) of the masked tokens of one sequence;
    the value is the mean over rows and over the columns of a group, NaN if it is absent. Coordinates: `loss` and
    `accuracy`. The paper says only "magnitude"; this study takes absolute values and means, and keeps [CLS] apart.
    Raises InputError for a probability out of range; 0 masks nothing and takes the loss at every word piece.
    """
    if not 0 <= mask_probability < 1:
        raise InputError(f"mask_probability is {mask_probability}: give a proportion from 0 to below 1")
    sequences = layouts(encoder.tokenizer, examples, max_tokens, segment_ids)
    masked_sequences = [masked(layout, encoder, mask_probability, seed) for layout in sequences]
    fits = np.zeros((len(sequences), 2), np.float32)

    def gradients(indices: Sequence[int]) -> list[Float[Tensor, "batch head token token"]]:
        by_layer, fits[indices] = _attention_gradients(
            encoder, [masked_sequences[index] for index in indices]
        )
        return by_layer

    importance = _importance(encoder, [layout for layout, _ in masked_sequences], gradients)
    return importance.assign_coords(loss=("sequence", fits[:, 0]), accuracy=("sequence", fits[:, 1]))


def classifier_importance(
    encoder: Encoder, examples: Sequence[Example], max_tokens: int = 128
) -> xr.DataArray:
    """`gradient_importance` for another loss: the cross entropy (nats) of a fine-tuned classifier's answer."""
    sequences = layouts(encoder.tokenizer, examples, max_tokens)
    labels = {example.id: example.label for example in examples}

    def gradients(indices: Sequence[int]) -> list[Float[Tensor, "batch head token token"]]:
        batch, maps = [sequences[index] for index in indices], []
        targets = torch.tensor([labels[layout.id] for layout in batch], device=encoder.device)
        with tap(encoder.model, lambda _, attention: maps.append(attention)), torch.enable_grad():
            logits = encoder.model(**encoder.inputs(batch)).logits
            loss = cross_entropy(logits, targets, reduction="sum")
        return [gradient.abs() for gradient in torch.autograd.grad(loss, maps)]

    return _importance(encoder, sequences, gradients)


def _importance(
    encoder: Encoder,
    sequences: Sequence[Layout],
    gradients: Callable[[Sequence[int]], Sequence[Float[Tensor, "batch head token token"]]],
) -> xr.DataArray:
    """Means over the groups (sequence, group, layer, head) of the absolute gradients of batches of sequences."""
    values = np.full((len(sequences), len(GROUPS), encoder.layers, encoder.heads), np.nan, np.float32)
    for indices in tqdm([*batches(sequences, BUDGET)], desc="gradients", unit="batch"):
        values[indices] = _group_means(gradients(indices), [sequences[index] for index in indices])
    axes = {"sequence": [layout.id for layout in sequences], "group": [*GROUPS]}
    axes |= {"layer": range(encoder.layers), "head": range(encoder.heads)}
    return xr.DataArray(values, axes, [*axes], "importance")


def gradient_tables(importance: xr.DataArray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `clark_gradients_heads` and `clark_gradients` (docs/tables.yaml)."""
    by_head = importance.mean("sequence").transpose("layer", "head", "group").to_series().reset_index()
    return by_head, by_head.groupby(["layer", "group"], sort=False)["importance"].mean().reset_index()


def gradient_blocks(importance: xr.DataArray) -> pd.DataFrame:
    """The table `clark_gradient_blocks` (docs/tables.yaml) of passages."""
    blocks = passage_blocks(importance["sequence"].values.tolist())
    by_block = importance.assign_coords(block=("sequence", blocks)).groupby("block").mean().mean("head")
    return by_block.to_series().reset_index()[["block", "layer", "group", "importance"]]


def _attention_gradients(
    encoder: Encoder, batch: Sequence[Masked]
) -> tuple[list[Float[Tensor, "batch head token token"]], Float[np.ndarray, "batch 2"]]:
    """Absolute gradients of every layer, and each sequence's mean loss and accuracy."""
    sequences, labels = zip(*batch, strict=True)
    padded = pad_sequence([torch.from_numpy(row) for row in labels], True, UNLABELLED)
    inputs, labels = encoder.inputs(sequences), padded.to(encoder.device)
    labelled = labels != UNLABELLED
    targets, maps = labels[labelled], []
    with tap(encoder.model, lambda _, attention: maps.append(attention)), torch.enable_grad():
        logits = encoder.model(**inputs).logits[labelled]
        entropies = cross_entropy(logits, targets, reduction="none")
    sequence, counts = labelled.nonzero()[:, 0], labelled.sum(1)
    weights = 1 / counts[sequence]
    # Take the sum over sequences: a mean would divide each sequence's gradient by the size of its batch.
    gradients = torch.autograd.grad((entropies * weights).sum(), maps)
    is_right = (logits.argmax(1) == targets).float()
    sums = torch.zeros(len(batch), 2, device=logits.device)
    sums.index_add_(0, sequence, torch.stack([entropies.detach(), is_right], dim=1))
    return [gradient.abs() for gradient in gradients], (sums / counts[:, None]).cpu().numpy()


def _group_means(
    gradients: Sequence[Float[Tensor, "batch head token token"]], batch: Sequence[Layout]
) -> Float[np.ndarray, "batch group layer head"]:
    """Mean over the token pairs of each group's sieve, which never include padding; NaN if a group is absent."""
    sieves = {group: SIEVES[sieve] for group, sieve in GROUPS.items()}
    contract, units = stack([Scored(layout, {}) for layout in batch], sieves, gradients[0].device)
    means = torch.stack([contract(layer) for layer in gradients], dim=2).cpu().numpy()
    return np.where(units[:, :, None, None] > 0, means, np.nan)
