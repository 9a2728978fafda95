"""Attention to the same word piece in the other text is removed, kept alone, or as much of it taken elsewhere."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from torch import Tensor
from tqdm import tqdm

from analysis.encoders.classifiers import check_examples
from analysis.encoders.layout import Layout, batches, layouts
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Replace, Rows, tap
from analysis.scores.sieves import across, same_pieces
from analysis.synthesis.matching import EDITS, Head
from analysis.texts.examples import Example


def edges_off(weights: Rows, edges: Bool[Tensor, "batch 1 token token"], *_: Tensor) -> Rows:
    """Attention without matching pieces, each row divided by its rest."""
    return _normalised(weights * ~edges, weights)


def edges_only(
    weights: Rows,
    edges: Bool[Tensor, "batch 1 token token"],
    real: Bool[Tensor, "batch 1 1 token"],
    *_: Tensor,
) -> Rows:
    """Attention to matching pieces as it is; the rest of each row is spread over all other tokens alike."""
    own, others = weights * edges, (real & ~edges).to(weights.dtype)
    rest = 1 - own.sum(-1, keepdim=True)
    return own + rest * others / others.sum(-1, keepdim=True).clamp_min(1)


def as_much_elsewhere(
    weights: Rows,
    edges: Bool[Tensor, "batch 1 token token"],
    real: Bool[Tensor, "batch 1 1 token"],
    turn: Int[Tensor, "batch 1 token token"],
) -> Rows:
    """As much attention as falls on matching pieces is taken from other tokens of the row, in the order of `turn`.

    Other pieces of the other text come first; where they do not have enough, further tokens follow (see `in_turn`).
    """
    mass = (weights * edges).sum(-1, keepdim=True)
    place = turn.expand_as(weights)
    sorted_ = (weights * ~edges).gather(-1, place)
    before = sorted_.cumsum(-1) - sorted_
    taken = torch.minimum((mass - before).clamp_min(0), sorted_)
    return _normalised(weights - torch.zeros_like(weights).scatter(-1, place, taken), weights)


def in_turn(
    edges: Bool[Tensor, "batch 1 token token"],
    real: Bool[Tensor, "batch 1 1 token"],
    order: Float[Tensor, "batch 1 token token"],
) -> Int[Tensor, "batch 1 token token"]:
    """The tokens of each row by their `order`, matching pieces and padding last."""
    return torch.where(real & ~edges, order, torch.inf).argsort(-1)


EDITORS: dict[str, Callable[..., Rows]] = dict(
    zip(EDITS, (edges_off, edges_only, as_much_elsewhere), strict=True)
)


def _normalised(changed: Rows, weights: Rows) -> Rows:
    """Rows divided by their sums; a row that has lost everything keeps its attention."""
    left = changed.sum(-1, keepdim=True)
    return torch.where(left > 1e-6, changed / left.clamp_min(1e-6), weights)


def editing(edit: Callable[..., Rows], chosen: Bool[Tensor, "layer head"], *pairs: Tensor) -> Replace:
    """A `replace` for `tap`: the chosen heads attend as `edit` says; `pairs` are its further arguments."""

    def replace(layer: int, weights: Rows, _: Bool[Tensor, "batch token"]) -> Rows:
        if not chosen[layer].any():
            return weights
        return torch.where(chosen[layer][:, None, None], edit(weights, *pairs), weights)

    return replace


def edited_logits(
    encoder: Encoder,
    examples: Sequence[Example],
    heads: Mapping[str, Sequence[Head]],
    max_tokens: int = 128,
    seed: int = 0,
    budget: int = 2048,
    progress: bool = True,
) -> xr.DataArray:
    """Logits (intervention, sequence, class): "none", then each of EDITS on each named set of heads, "edit, name".

    The attention of the set's heads is edited in every sequence (see EDITORS) through `tap(replace=)`. Raises
    InputError for a checkpoint without a classification head and for examples that do not fit it.
    """
    check_examples(encoder, examples, max_tokens)
    found = layouts(encoder.tokenizer, examples, max_tokens)
    variants = [(edit, name) for edit in EDITS for name in heads]
    logits = np.empty((1 + len(variants), len(found), encoder.model.config.num_labels), np.float32)
    bar = tqdm(total=len(found) * (1 + len(variants)), desc="edges", unit="sequence", disable=not progress)
    with bar, torch.no_grad(), encoder.autocast():
        for indices in batches(found, budget):
            batch = [found[index] for index in indices]
            inputs = encoder.inputs(batch)
            logits[0, indices] = encoder.model(**inputs).logits.float().cpu().numpy()
            edges, real, turn = (each.to(encoder.device) for each in _pairs(batch, seed))
            for row, (edit, name) in enumerate(variants, 1):
                chosen = torch.zeros(encoder.layers, encoder.heads, dtype=torch.bool, device=encoder.device)
                chosen[tuple(zip(*heads[name], strict=True))] = True
                with tap(encoder.model, replace=editing(EDITORS[edit], chosen, edges, real, turn)):
                    logits[row, indices] = encoder.model(**inputs).logits.float().cpu().numpy()
            bar.update(len(indices) * (1 + len(variants)))
    names = ["none", *(f"{edit}, {name}" for edit, name in variants)]
    coordinates = {"intervention": names, "sequence": [layout.id for layout in found]}
    return xr.DataArray(logits, coordinates, ("intervention", "sequence", "class"))


def _pairs(batch: Sequence[Layout], seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """For a padded batch: matching pairs, real tokens, and the random turn in which other tokens lose attention."""
    longest = max(map(len, batch))
    edges = np.zeros((len(batch), 1, longest, longest), bool)
    real = np.zeros((len(batch), 1, 1, longest), bool)
    order = np.full(edges.shape, np.inf, np.float32)
    for number, layout in enumerate(batch):
        size = len(layout)
        other = across(layout)
        edges[number, 0, :size, :size] = same_pieces(layout) & other
        real[number, :, :, :size] = True
        rng = np.random.default_rng([seed, *layout.input_ids.tolist()])
        order[number, 0, :size, :size] = rng.random((size, size)) + ~other
    edges, real, order = map(torch.from_numpy, (edges, real, order))
    return edges, real, in_turn(edges, real, order)


def overlap(layouts: Sequence[Layout]) -> Float[np.ndarray, "sequence text"]:
    """The share of the word pieces of each text of a pair that stand in the other text too; NaN for a single text."""
    shares = np.full((len(layouts), 2), np.nan)
    for number, layout in enumerate(layouts):
        shared = (same_pieces(layout) & across(layout)).any(axis=1)
        for text in (0, 1):
            words = (layout.text == text) & ~layout.punctuation
            if layout.text.max() == 1 and words.any():
                shares[number, text] = shared[words].mean()
    return shares
