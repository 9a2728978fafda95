"""Gradients of the masked-language loss with respect to attention (Clark 2019, figure 3).

The authors released no code for this; `gradient_importance` says how this study settles what the paper leaves open.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, linear
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from analysis.encoders.layout import Layout, batches, layouts
from analysis.encoders.models import Encoder, fit, load_encoder, load_language_model
from analysis.encoders.tap import tap
from analysis.errors import InputError
from analysis.scores.extraction import Scored, stack
from analysis.scores.sieves import SIEVES
from analysis.texts.examples import Example

# The groups of attended tokens, and their sieves: punct is full stops and commas, other the rest.
GROUPS = {"cls": "cls", "sep": "sep", "punct": "stops", "other": "content"}
AS_MASK, AS_RANDOM = 0.8, 0.1  # shares of the masked tokens; the rest do not change (BERT)
UNLABELLED = -100
TRAINING_SHARE = 0.15  # of the word pieces that are masked for training a head (BERT)
LEARNING_RATE, BATCH_SIZE = 3e-3, 128  # for training a head; a batch counts masked tokens
BUDGET = 1024  # padded tokens of a batch of gradients


class LanguageHead(torch.nn.Module):
    """A masked-language head like BERT's: a transform, then the frozen embeddings of the word pieces in its text.

    `vocabulary` holds the ids of these pieces. The bias starts as the logarithm of their relative frequencies.
    """

    def __init__(
        self,
        hidden_size: int,
        embeddings: Float[Tensor, "token embedding"],
        vocabulary: Int[Tensor, " piece"],
        frequencies: Int[Tensor, " piece"],
    ):
        super().__init__()
        width = embeddings.shape[1]
        self.transform = torch.nn.Sequential(
            torch.nn.Linear(hidden_size, width), torch.nn.GELU(), torch.nn.LayerNorm(width)
        )
        self.bias = torch.nn.Parameter((frequencies / frequencies.sum()).log())
        self.register_buffer("decoder", embeddings.detach()[vocabulary], persistent=False)
        self.register_buffer("vocabulary", vocabulary, persistent=False)

    def forward(self, hidden: Float[Tensor, "position hidden"]) -> Float[Tensor, "position piece"]:
        """Logits over the vocabulary."""
        return linear(self.transform(hidden), self.decoder, self.bias)

    def targets(self, ids: Int[Tensor, " position"]) -> Int[Tensor, " position"]:
        """Positions of token ids in the vocabulary."""
        if not torch.isin(ids, self.vocabulary).all():
            raise InputError("the text has word pieces that the head has not seen: train it on the same text")
        return torch.searchsorted(self.vocabulary, ids)


Masked = tuple[Layout, Int[np.ndarray, " token"]]  # a sequence with masked tokens, and its labels


@dataclass(frozen=True)
class LanguageModel:
    """An encoder with a masked-language head: that of its checkpoint (`head` is None), or one trained here."""

    encoder: Encoder
    head: LanguageHead | None = None

    def predict(
        self, inputs: dict[str, Tensor], labels: Int[Tensor, "batch token"]
    ) -> tuple[Float[Tensor, "position piece"], Int[Tensor, " position"]]:
        """Logits at the labelled positions, and the index of the right piece."""
        labelled = labels != UNLABELLED
        output = self.encoder.model(**inputs)
        if self.head is None:
            return output.logits[labelled], labels[labelled]
        return self.head(output.last_hidden_state[labelled]), self.head.targets(labels[labelled])


def language_model(
    name: str,
    examples: Sequence[Example],
    epochs: int = 5,
    max_tokens: int = 128,
    segment_ids: str = "zeros",
    seed: int = 0,
    device: str = "cpu",
) -> LanguageModel:
    """An encoder with the masked-language head of its checkpoint; if it has none, a head is trained here.

    Training masks 15 % of the tokens of the examples. The encoder and its word embeddings, which serve as decoder, are
    frozen; the head knows only the word pieces of the examples. Raises InputError for an encoder without a mask token.
    """
    checkpoint = load_language_model(name, device)
    encoder = checkpoint or load_encoder(name, device)
    if encoder.tokenizer.mask_token_id is None:
        raise InputError(f"{encoder.name} has no mask token: choose an encoder that was trained with one")
    if checkpoint:
        return LanguageModel(checkpoint)
    sequences = layouts(encoder.tokenizer, examples, max_tokens, segment_ids)
    return LanguageModel(encoder, trained_head(encoder, sequences, epochs, seed))


def trained_head(encoder: Encoder, sequences: Sequence[Layout], epochs: int, seed: int) -> LanguageHead:
    """A masked-language head for a frozen encoder; the same seed gives the same head (AdamW, falling learning rate)."""
    # The seed differs from that of the analysis, and so do the masks.
    training = [masked(layout, encoder, TRAINING_SHARE, seed - 1) for layout in sequences]
    pieces = np.concatenate([layout.input_ids[layout.text >= 0] for layout in sequences])
    parts = []
    for indices in tqdm([*batches(sequences)], desc="hidden states", unit="batch"):
        inputs, labels = _inputs(encoder, [training[index] for index in indices])
        labelled = labels != UNLABELLED
        with torch.no_grad():
            parts.append((encoder.model(**inputs).last_hidden_state[labelled], labels[labelled]))
    states, labels = map(torch.cat, zip(*parts, strict=True))
    embeddings = encoder.model.get_input_embeddings().weight.detach()
    vocabulary = torch.from_numpy(pieces).unique(return_counts=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = LanguageHead(states.shape[1], embeddings.cpu(), *vocabulary).to(encoder.device)
        steps = [batch for _ in range(epochs) for batch in torch.randperm(len(states)).split(BATCH_SIZE)]
    optimiser = torch.optim.AdamW(head.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, len(steps))
    targets = head.targets(labels)
    bar = tqdm(steps, desc="training the head", unit="step")
    fit(bar, lambda batch: cross_entropy(head(states[batch]), targets[batch]), optimiser, schedule)
    return head


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


def _inputs(
    encoder: Encoder, batch: Sequence[Masked]
) -> tuple[dict[str, Tensor], Int[Tensor, "batch token"]]:
    """One padded batch: the model's arguments, and the labels."""
    sequences, labels = zip(*batch, strict=True)
    padded = pad_sequence([torch.from_numpy(row) for row in labels], True, UNLABELLED)
    return encoder.inputs(sequences), padded.to(encoder.device)


def gradient_importance(
    model: LanguageModel,
    examples: Sequence[Example],
    mask_probability: float | int = 0.15,
    max_tokens: int = 128,
    segment_ids: str = "zeros",
    seed: int = 0,
) -> xr.DataArray:
    """|dL/d attention| of every sequence, group of attended tokens (see GROUPS), layer and head (Clark 2019, figure 3).

    L is the mean cross-entropy (nats) of the masked tokens of one sequence. The value is the mean over rows (all
    tokens) and over the columns of a group as the model sees them, with masked tokens as [MASK]; NaN if a group is
    absent. `mask_probability=0` masks nothing and takes the loss at every word piece. Coordinates: `loss` (nats, mean
    of the sequence) and `accuracy` (proportion of the masked tokens that the model predicts). The paper says only
    "magnitude"; this study takes the absolute value and the groups' means, and keeps [CLS] apart from the other tokens.
    Raises InputError for a probability out of range.
    """
    if not 0 <= mask_probability < 1:
        raise InputError(f"mask_probability is {mask_probability}: give a proportion from 0 to below 1")
    encoder = model.encoder
    sequences = layouts(encoder.tokenizer, examples, max_tokens, segment_ids)
    masked_sequences = [masked(layout, encoder, mask_probability, seed) for layout in sequences]
    values = np.full((len(sequences), len(GROUPS), encoder.layers, encoder.heads), np.nan, np.float32)
    fits = np.zeros((len(sequences), 2), np.float32)
    for indices in tqdm([*batches(sequences, BUDGET)], desc="gradients", unit="batch"):
        batch = [masked_sequences[index] for index in indices]
        gradients, fits[indices] = _attention_gradients(model, batch)
        values[indices] = _group_means(gradients, [layout for layout, _ in batch])
    axes = {"sequence": [layout.id for layout in sequences], "group": [*GROUPS]}
    axes |= {"layer": range(encoder.layers), "head": range(encoder.heads)}
    importance = xr.DataArray(values, axes, [*axes], "importance")
    return importance.assign_coords(loss=("sequence", fits[:, 0]), accuracy=("sequence", fits[:, 1]))


def block_means(importance: xr.DataArray, blocks: Int[np.ndarray, " sequence"]) -> pd.DataFrame:
    """Means of `gradient_importance` over the sequences of a block and the heads of a layer."""
    means = importance.assign_coords(block=("sequence", blocks)).groupby("block").mean().mean("head")
    return means.to_series().reset_index()[["block", "layer", "group", "importance"]]


def _attention_gradients(
    model: LanguageModel, batch: Sequence[Masked]
) -> tuple[list[Float[Tensor, "batch head token token"]], Float[np.ndarray, "batch 2"]]:
    """Absolute gradients of every layer, and each sequence's mean loss and accuracy."""
    inputs, labels = _inputs(model.encoder, batch)
    maps: list[Tensor] = []
    with tap(model.encoder.model, lambda _, attention: maps.append(attention)), torch.enable_grad():
        logits, targets = model.predict(inputs, labels)
        entropies = cross_entropy(logits, targets, reduction="none")
    labelled = labels != UNLABELLED
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
    contraction, units = stack([Scored(layout, {}) for layout in batch], sieves, gradients[0].device)
    means = torch.stack([contraction(layer) for layer in gradients], dim=2).cpu().numpy()
    return np.where(units[:, :, None, None] > 0, means, np.nan)
