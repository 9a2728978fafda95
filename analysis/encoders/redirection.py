"""Edits of the attention of named heads: it moves elsewhere. `encoders/values.py` edits the vectors that they read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool
from torch import Tensor

from analysis.encoders.interventions import predict, sets
from analysis.encoders.layout import Layout, across, same_pieces
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import Edit, Operator, Prefix, Share, for_queries
from analysis.encoders.tap import Rows, tap
from analysis.errors import InputError
from analysis.roles import Head
from analysis.texts.examples import Example

Pairs = Bool[np.ndarray, "token token"]  # query, key


def matching_pairs(layout: Layout) -> Pairs:
    """Pairs of equal word pieces in different texts."""
    return same_pieces(layout) & across(layout)


def other_text(layout: Layout) -> Pairs:
    """Pieces of the other text that differ from the query's; no special tokens, no punctuation."""
    return across(layout) & ~same_pieces(layout) & ~layout.punctuation


def unmatched_other_text(layout: Layout) -> Pairs:
    """Of `other_text`, the pieces that have no counterpart themselves."""
    return other_text(layout) & ~matching_pairs(layout).any(axis=0)


def one_other_word(layout: Layout) -> Pairs:
    """For every query, one piece of `other_text` drawn at random; the same one in every run."""
    rng = np.random.default_rng(layout.input_ids)
    order = np.where(other_text(layout), rng.random((len(layout), len(layout))), 0)
    return (order == order.max(axis=1, keepdims=True)) & (order > 0)


def own_text(layout: Layout) -> Pairs:
    """Other pieces of the same text; no punctuation."""
    words = (layout.text >= 0) & ~layout.punctuation
    return (layout.text == layout.text[:, None]) & words & words[:, None] & ~np.eye(len(layout), dtype=bool)


NOWHERE = "nowhere"  # the attention is removed, and the rest of the row divided by its sum
TARGETS: dict[str, Callable[[Layout], Pairs]] = {
    "other text": other_text,
    "unmatched other text": unmatched_other_text,
    "one other word": one_other_word,
    "own text": own_text,
    "cls": lambda layout: np.broadcast_to(layout.cls, (len(layout), len(layout))),
    "sep": lambda layout: np.broadcast_to(layout.sep, (len(layout), len(layout))),
}
ROWS: dict[str, Callable[[Layout], Bool[np.ndarray, " token"]]] = {
    "matched": lambda layout: matching_pairs(layout).any(axis=1),
    "unmatched": lambda layout: (
        (layout.text >= 0) & ~layout.punctuation & ~matching_pairs(layout).any(axis=1)
    ),
    "all": lambda layout: layout.text >= 0,
}
MOVED: dict[str, Callable[[Layout], Pairs]] = {
    "all attention": lambda layout: np.ones((len(layout), len(layout)), bool),
    "matching pieces": matching_pairs,
    "other text": across,
}


@dataclass(frozen=True)
class Redirection(Operator):
    """An operator of interventions: in `rows`, the attention on `moved` goes to `to`, evenly over the pieces there.

    `rows`, `moved` and `to` are names in ROWS, MOVED and TARGETS; `to` may be "nowhere". A row is "matched" if an equal
    piece stands in the other text. `text` 0 or 1 leaves out the rows of the other text. Rows still sum to 1; a row
    whose target is empty keeps its attention.
    """

    rows: str = "unmatched"
    to: str = "other text"
    moved: str = "all attention"
    text: int | None = None

    def __post_init__(self) -> None:
        choices = {"rows": ROWS, "to": [*TARGETS, NOWHERE], "moved": MOVED, "text": [None, 0, 1]}
        for name, names in choices.items():
            if (value := getattr(self, name)) not in names:
                raise InputError(f"{name} is {value!r}: choose from {', '.join(map(str, names))}")

    def sources(self, layout: Layout) -> Pairs:
        """The pairs whose attention moves."""
        rows = ROWS[self.rows](layout)
        if self.text is not None:
            rows = rows & (layout.text == self.text)
        return rows[:, None] & MOVED[self.moved](layout)

    def edit(self, prefix: Prefix) -> Edit:
        """The edit of one batch (see `Operator`)."""
        sources, targets = self.pairs(prefix.batch, prefix.encoder.device)

        def moved(_: int, share: Share, weights: Rows, *__: Tensor) -> Rows:
            removed = share * weights * for_queries(sources, weights)
            rest, mass = weights - removed, removed.sum(-1, keepdim=True)
            if targets is not None:
                return rest + mass * for_queries(targets, weights)
            total = rest.sum(-1, keepdim=True)
            return torch.where((mass > 0) & (total > 1e-6), rest / total.clamp_min(1e-6), weights)

        return moved

    def pairs(
        self, batch: Sequence[Layout], device: torch.device
    ) -> tuple[Bool[Tensor, "batch 1 token token"], Tensor | None]:
        """The pairs whose attention moves, and the share of each target in its row; None if it goes nowhere."""
        sources = padded([self.sources(layout) for layout in batch]).to(device)
        if self.to == NOWHERE:
            return sources, None
        targets = padded([TARGETS[self.to](layout) for layout in batch]).to(device)
        counts = targets.sum(-1, keepdim=True)
        return sources & (counts > 0), targets / counts.clamp_min(1)


# Regions of keys, for `Unread`.
REGIONS: dict[str, Callable[[Layout], Pairs]] = {
    "[CLS]": TARGETS["cls"],
    "[SEP]": TARGETS["sep"],
    "punctuation": lambda layout: np.broadcast_to(layout.punctuation, (len(layout), len(layout))),
    "own text": lambda layout: own_text(layout) | np.diag((layout.text >= 0) & ~layout.punctuation),
    "other text": lambda layout: across(layout) & ~layout.punctuation,
    "copies alone": matching_pairs,
}


@dataclass(frozen=True)
class Unread(Operator):
    """An operator of interventions: attention stays, and what heads read in one region of keys is left out.

    The weights on `region`, a name in REGIONS, become 0 and the others stay, so that rows no longer sum to 1.
    """

    region: str

    def edit(self, prefix: Prefix) -> Edit:
        """The edit of one batch (see `Operator`)."""
        keys = padded([REGIONS[self.region](layout) for layout in prefix.batch]).to(prefix.encoder.device)
        return lambda _, share, weights, *__: weights - share * weights * for_queries(keys, weights)


def redirect(
    encoder: Encoder,
    examples: Sequence[Example],
    heads: Mapping[str, Sequence[Head]],
    rows: str = "unmatched",
    to: str = "other text",
    dose: float | int = 0.5,
    only_matching: bool = False,
    max_tokens: int = 128,
    progress: bool = True,
    text: int | None = None,
    cache: Path | None = None,
) -> xr.DataArray:
    """Logits (heads, sequence, class) when each named set of heads has its attention redirected.

    `dose` is the share of the attention that moves, `only_matching` moves that on matching pieces alone, and the other
    choices are those of `Redirection`. The first entry, "none", is the unchanged encoder; `cache` as in `predict`.
    Source: this study.
    """
    operator = Redirection(rows, to, "matching pieces" if only_matching else "all attention", text)
    for name, members in heads.items():
        if not len(members):
            raise InputError(f"the set {name!r} names no head: name one or more as (layer, head)")
    edits = sets(encoder, heads, operator, dose)
    logits = predict(encoder, examples, edits, max_tokens=max_tokens, cache=cache, progress=progress)
    return logits.rename(intervention="heads")


@contextmanager
def blocked_across(encoder: Encoder, heads: Sequence[Head]) -> Iterator[None]:
    """Within the context, also in training, these heads attend to no piece of the other text; rows sum to 1.

    The first separator ends the first text.
    """
    model, tokenizer = encoder.model, encoder.tokenizer
    [intervention] = sets(encoder, {"blocked": heads})
    edited = torch.from_numpy(intervention.gate == 0)
    special = torch.tensor([tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id])
    other: list[Tensor] = []

    def read(_, arguments: tuple, inputs: dict[str, Tensor]) -> None:
        ids = inputs["input_ids"]
        second = ((ids == tokenizer.sep_token_id).cumsum(1) > 0).long()
        text = second.masked_fill(torch.isin(ids, special.to(model.device)), -2)
        other[:] = [(text[:, None, :, None] == 1 - text[:, None, None, :])]

    def replace(layer: int, weights: Rows, _: Bool[Tensor, "batch token"]) -> Rows:
        if not edited[layer].any():
            return weights
        rest = weights * ~(other[0] & edited[layer][:, None, None].to(weights.device))
        return rest / rest.sum(-1, keepdim=True)

    with model.register_forward_pre_hook(read, with_kwargs=True), tap(model, replace=replace):
        yield


def padded(pairs: Sequence[np.ndarray]) -> Bool[Tensor, "batch 1 token token"]:
    """The pairs of every sequence in one tensor, padded with False."""
    longest = max(map(len, pairs))
    tensor = torch.zeros(len(pairs), 1, longest, longest, dtype=torch.bool)
    for row, matrix in zip(tensor, pairs, strict=True):
        row[0, : len(matrix), : len(matrix)] = torch.from_numpy(np.ascontiguousarray(matrix))
    return tensor
