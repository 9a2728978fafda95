"""One streaming pass: sieve bias scores of every head, layer by layer; attention itself is never stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from .contraction import Contraction
from .errors import InputError
from .examples import Example, clusters
from .forms import Form, Full
from .layout import Layout, batches, layouts
from .models import Encoder
from .sieves import Sieve, resolve
from .syntax import Relations, WordPairs, token_pairs
from .tap import tap

Change = Callable[[Tensor, Sequence[Layout]], Tensor]
Statistic = Callable[[Tensor, Sequence[Layout]], Tensor]  # one number for every sequence and head


@dataclass(frozen=True)
class Scored:
    """What is scored of one sequence: its layout and its word pairs."""

    layout: Layout
    pairs: WordPairs


def extract(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations | None = None,
    roles: Sequence[str] | None = None,
    arithmetic: str = "corrected",
    max_tokens: int = 128,
    budget: int = 2048,
    progress: bool = True,
    change: Change | None = None,
    statistics: Mapping[str, Statistic] | None = None,
    segment_ids: str = "pair",
) -> xr.DataArray:
    """Sieve bias scores of every sequence, role, layer and head (Pande 2021); NaN where a role is absent.

    A head that attends uniformly scores 1, block (its rows are weighed by their entropy in nats) about ln T.
    `relations` maps Example.id to its grammatical relations (see `parse`); `roles` names registered sieves or
    relations, by default the whole bank of elementary sieves; `arithmetic="published"` takes the local band
    as the released code divides it. Coordinates `tokens` (T), `separators` (number of [SEP]), `cluster` (equal for
    sequences that share a text) and `units` (tokens or word pairs a role averages over) go with the scores.
    `budget` is the padded tokens of one batch and does not change the result (1e-5). `change` makes other
    attention out of that of a batch and layer before it is scored (see `controls`). `statistics` are measured
    of the same attention and stand after the sieves, under their names, with the tokens as units (see `entropies`).
    `segment_ids` are those of `layouts`. Raises InputError for unknown roles or examples without relations.
    """
    sequences = _prepare(encoder, examples, relations, max_tokens, segment_ids)
    statistics = statistics or {}
    labels = {label for sequence in sequences for label in sequence.pairs}
    sieves = resolve(roles, labels, arithmetic)
    roles = [*sieves, *statistics]
    scores = np.full((len(sequences), len(roles), encoder.layers, encoder.heads), np.nan, np.float32)
    units = np.repeat([[len(sequence.layout)] for sequence in sequences], len(roles), axis=1).astype(np.int32)
    plan = list(batches([sequence.layout for sequence in sequences], budget))
    with tqdm(total=len(sequences), desc="attention", unit="sequence", disable=not progress) as bar:
        for number, indices in enumerate(plan):
            batch = [sequences[index] for index in indices]
            contraction, units[indices, : len(sieves)] = stack(batch, sieves, encoder.device)
            check = number in (0, len(plan) - 1)  # the shortest sequences may need no padding
            found = score_batch(
                encoder, [s.layout for s in batch], contraction, check, change, [*statistics.values()]
            )
            scores[indices] = np.where(units[indices][:, :, None, None] > 0, found, np.nan)
            bar.update(len(indices))
    scored = _labelled(encoder, sequences, roles, scores, units, arithmetic, max_tokens)
    return scored.assign_coords(cluster=("sequence", clusters(examples)))


def _prepare(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations | None,
    max_tokens: int,
    segment_ids: str = "pair",
) -> list[Scored]:
    if max_tokens > encoder.positions:
        raise InputError(f"max_tokens is {max_tokens}: {encoder.name} has {encoder.positions} positions")
    missing = [example.id for example in examples if relations is not None and example.id not in relations]
    if missing:
        raise InputError(f"{missing[0]} has no relations: parse the same examples that are extracted")
    return [
        Scored(layout, token_pairs(layout, relations[layout.id] if relations is not None else ()))
        for layout in layouts(encoder.tokenizer, examples, max_tokens, segment_ids)
    ]


def read_attention(
    encoder: Encoder, example: Example, max_tokens: int = 128, segment_ids: str = "pair"
) -> tuple[Layout, Float[np.ndarray, "layer head token token"]]:
    """One sequence's layout and the attention of every head, for figures; rows are query tokens."""
    [layout] = layouts(encoder.tokenizer, [example], max_tokens, segment_ids)
    maps: list[np.ndarray] = []
    with (
        tap(encoder.model, lambda _, attention: maps.append(attention[0].cpu().numpy())),
        torch.inference_mode(),
    ):
        encoder.model(**encoder.inputs([layout]))
    return layout, np.stack(maps)


def read_sieves(
    encoder: Encoder, example: Example, relations: Relations, roles: Sequence[str], max_tokens: int = 128
) -> dict[str, Float[np.ndarray, "token token"]]:
    """One sequence's sieves for figures: a matrix for every named role that the sequence has."""
    [sequence] = _prepare(encoder, [example], relations, max_tokens)
    entries = resolve(roles, set(sequence.pairs), "corrected")
    matrices = {role: entry.matrix(sequence.layout, sequence.pairs) for role, entry in entries.items()}
    return {role: matrix for role, matrix in matrices.items() if matrix is not None}


def stack(
    batch: Sequence[Scored], sieves: dict[str, Sieve], device: torch.device | str = "cpu"
) -> tuple[Contraction, np.ndarray]:
    """The batch's sieves, and over how many tokens or word pairs each is a mean (sequence, role), 0 where absent."""
    forms: list[list[Form | None]] = [[] for _ in batch]
    units = np.zeros((len(batch), len(sieves)), np.int32)
    for i, sequence in enumerate(batch):
        for j, (role, entry) in enumerate(sieves.items()):
            form = entry.form(sequence.layout, sequence.pairs)
            forms[i].append(form)
            if form is None:
                continue
            if isinstance(form, Full):
                check_sieve(role, form.weights, len(sequence.layout))
            units[i, j] = entry.units(form, sequence.pairs)
    longest = max(len(sequence.layout) for sequence in batch)
    return Contraction(forms, [entry.entropy for entry in sieves.values()], longest, device), units


def check_sieve(role: str, matrix: np.ndarray, length: int) -> None:
    """Stops a registered function whose matrix is no sieve: T x T weights from 0 up that sum to 1 at most."""
    if matrix.shape != (length, length):
        raise InputError(f"sieve {role!r} has shape {matrix.shape}: it must be {(length, length)}")
    total = float(matrix.sum())
    if matrix.dtype == bool or not total <= 1 + 1e-4:
        raise InputError(f"sieve {role!r} sums to {total:g}: make the mask a sieve with analysis.sieves.rows")


def score_batch(
    encoder: Encoder,
    batch: Sequence[Layout],
    contraction: Contraction,
    check: bool = False,
    change: Change | None = None,
    statistics: Sequence[Statistic] = (),
) -> Float[np.ndarray, "sequence role layer head"]:
    """Scores of one padded batch, layer by layer as the model runs; `check` guards the attention read.

    The statistics stand after the sieves.
    """
    lengths = torch.tensor([len(layout) for layout in batch], device=encoder.device)
    inputs = encoder.inputs(batch)
    collected: list[Tensor] = []

    def read(layer: int, attention: Float[Tensor, "batch head token token"]) -> None:
        if check:
            guard(attention, encoder, inputs["attention_mask"])
        if change is not None:
            attention = change(attention, batch)
        with torch.autocast(attention.device.type, enabled=False):  # scores are float32 at every precision
            biases = contraction(attention) * lengths[:, None, None]
            measured = [statistic(attention, batch)[:, None] for statistic in statistics]
            collected.append(torch.cat([biases, *measured], dim=1) if measured else biases)

    with tap(encoder.model, read=read), torch.inference_mode(), encoder.autocast():
        encoder.model(**inputs)
    if len(collected) != encoder.layers:
        raise RuntimeError(f"read the attention of {len(collected)} layers, expected {encoder.layers}")
    scores = torch.stack(collected, dim=2).cpu().numpy()
    if not np.isfinite(scores).all():  # NaN would pass for a role that is absent
        raise InputError(f"{encoder.name} attends with NaN or infinity: its weights are damaged, give others")
    return scores


def guard(attention: Float[Tensor, "batch head token token"], encoder: Encoder, mask: Tensor) -> None:
    """Stops a run whose attention is silently missing, unnormalised or spilt on padding."""
    batch, length = mask.shape
    expected = (batch, encoder.heads, length, length)
    if tuple(attention.shape) != expected:
        raise RuntimeError(f"attention has shape {tuple(attention.shape)}, expected {expected}")
    if not ((attention.sum(-1) - 1).abs() <= 1e-4).all():  # also where they are NaN
        raise RuntimeError("attention rows do not sum to 1: the weights read are not those after softmax")
    if attention.masked_select(mask[:, None, None, :] == 0).sum() > 0:
        raise RuntimeError("attention falls on padding: the attention function received no mask")


def _labelled(
    encoder: Encoder,
    sequences: Sequence[Scored],
    roles: Sequence[str],
    scores: Float[np.ndarray, "sequence role layer head"],
    units: np.ndarray,
    arithmetic: str,
    max_tokens: int,
) -> xr.DataArray:
    found = [sequence.layout for sequence in sequences]
    return xr.DataArray(
        scores,
        dims=("sequence", "role", "layer", "head"),
        coords={
            "sequence": [layout.id for layout in found],
            "role": list(roles),
            "layer": range(encoder.layers),
            "head": range(encoder.heads),
            "tokens": ("sequence", [len(layout) for layout in found]),
            "separators": ("sequence", [int(layout.sep.sum()) for layout in found]),
            "units": (("sequence", "role"), units),
        },
        attrs={
            **encoder.provenance,
            "arithmetic": arithmetic,
            "max_tokens": max_tokens,
            "sequences_truncated": sum(layout.cut > 0 for layout in found),
            "tokens_truncated": sum(layout.cut for layout in found),
        },
    )
