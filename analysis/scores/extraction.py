"""One streaming pass: sieve bias scores of every head, layer by layer; attention itself is never stored."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float32, Int
from torch import Tensor

from analysis.encoders.layout import Layout, WordPairs, layouts, stream, token_pairs
from analysis.encoders.models import Encoder, cached_casts
from analysis.encoders.tap import Attention
from analysis.errors import InputError
from analysis.roles import DIMENSIONS, ROLES, UNIFORM, control_sources
from analysis.scores.maps import BUDGET, CONTROLS, ReadMaps, Source, find_source, row_entropies
from analysis.scores.sieves import SIEVES, Sieve, relation_cells, resolve
from analysis.texts.examples import Example, Relations, as_sequences, clusters

Contract = Callable[..., Float[Tensor, "batch role head"]]
Statistic = Callable[[Attention, Sequence[Layout]], Tensor]  # one number for every sequence and head
WEIGHTS = 2**26  # that the matrices of a batch may have: 256 MB


class Scored(NamedTuple):
    """The layout and the word pairs of one sequence."""

    layout: Layout
    pairs: WordPairs


def extract(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations | None = None,
    roles: Sequence[str] | None = None,
    *,
    arithmetic: str = "corrected",
    max_tokens: int = 128,
    budget: int = BUDGET,
    progress: bool = True,
    maps: str | Source = "attention",
    statistics: Mapping[str, Statistic] | None = None,
    segment_ids: str = "pair",
) -> xr.DataArray:
    """Sieve bias scores of every sequence, role, layer and head (Pande 2021); NaN if a role is absent.

    A head with uniform attention scores 1, or about ln T for block, whose rows are weighted by their entropy (nats).
    `relations` maps Example.id to its grammatical relations (see `parse`). `roles` names registered sieves or
    relations, by default the whole bank of elementary sieves. `maps` is a source of maps or its name ("attention",
    "uniform", "shuffled", "twin", "spread", or one of `papers.pascual2021.attribution` once imported). `max_tokens`
    cuts a sequence; `budget` limits the padded tokens of a batch and does not change the result (1e-5); very many roles
    make batches smaller. `arithmetic` "published" divides the local band as the authors' code does. `statistics` are
    further numbers for every sequence and head, by name; their units are tokens. `segment_ids` as in `layouts`. If the
    rows of the maps do not sum to 1, roles that weight rows by their entropies are absent; the attribute `undefined`
    names them.

    The scores have the coordinates `tokens` (T), `separators` (number of [SEP]), `cluster` (equal for sequences that
    share a text) and `units` (the tokens or word pairs over which a role is a mean).
    """
    examples, source = as_sequences(examples), find_source(maps)
    sequences = _prepare(encoder, examples, relations, max_tokens, segment_ids)
    sieves = resolve(roles, {label for sequence in sequences for label in sequence.pairs}, arithmetic)
    for role, entry in sieves.items():
        if entry.labels and relations is None:
            raise InputError(f"role {role!r} needs relations: give relations=parse(examples)")
    statistics = statistics or {}
    scores, units = _scored(encoder, sequences, sieves, statistics, source, budget, progress)
    undefined = [role for role, entry in sieves.items() if entry.entropy and not source.distributions]
    units[:, [name in undefined for name in (*sieves, *statistics)]] = 0
    tokenised = [sequence.layout for sequence in sequences]
    attributes = {
        "arithmetic": arithmetic,
        "maps": source.name,
        "max_tokens": max_tokens,
        **({"undefined": ", ".join(undefined)} if undefined else {}),
        "sequences_truncated": sum(layout.cut > 0 for layout in tokenised),
        "tokens_truncated": sum(layout.cut for layout in tokenised),
    }
    coordinates = {
        "sequence": [layout.id for layout in tokenised],
        "role": [*sieves, *statistics],
        "layer": range(encoder.layers),
        "head": range(encoder.heads),
        "tokens": ("sequence", [len(layout) for layout in tokenised]),
        "separators": ("sequence", [int(layout.sep.sum()) for layout in tokenised]),
        "units": (("sequence", "role"), units),
        "cluster": ("sequence", clusters(examples)),
    }
    present = np.where(units[:, :, None, None] > 0, scores, np.float32(np.nan))
    return xr.DataArray(present, coordinates, DIMENSIONS, attrs=encoder.provenance | attributes)


def extract_controls(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations,
    of: str | Source = "attention",
    max_tokens: int = 128,
) -> dict[str, xr.DataArray]:
    """Scores of the whole bank of sieves on every source of maps that is the control of a role, by source.

    `of` names the maps from which the controls are made, or is their source.
    """
    for role in ROLES.values():
        if role.control not in (UNIFORM, *SIEVES, *CONTROLS):
            raise InputError(
                f"role {role.name!r}: the control {role.control!r} is no sieve of the bank and no source of maps: "
                "register it with @sieve(..., bank=True), or take shuffled, twin, spread or uniform"
            )
    return {
        source: extract(encoder, examples, relations, max_tokens=max_tokens, maps=CONTROLS[source](of))
        for source in control_sources(SIEVES)
    }


def _scored(
    encoder: Encoder,
    sequences: Sequence[Scored],
    sieves: Mapping[str, Sieve],
    statistics: Mapping[str, Statistic],
    source: Source,
    budget: int,
    progress: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """The scores (sequence, role, layer, head), and the units of the roles (sequence, role)."""
    tokenised, count = [sequence.layout for sequence in sequences], len(sieves) + len(statistics)
    scores = np.empty((len(tokenised), count, encoder.layers, encoder.heads), np.float32)
    units = np.repeat([[len(layout)] for layout in tokenised], count, axis=1).astype(np.int32)
    read_maps = source.prepare(encoder, tokenised)
    matrices = sum(not entry.labels for entry in sieves.values())
    budget = min(budget, WEIGHTS // max(1, matrices * max(map(len, tokenised))))
    with cached_casts(encoder):
        for indices, batch, check in stream(tokenised, budget, source.name, progress):
            scored = [sequences[index] for index in indices]
            contract, units[indices, : len(sieves)] = stack(scored, sieves, encoder.device)
            scores[indices] = score_batch(encoder, read_maps, batch, contract, check, [*statistics.values()])
    return scores, units


def _prepare(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations | None,
    max_tokens: int,
    segment_ids: str = "pair",
) -> list[Scored]:
    encoder.check_length(max_tokens)
    missing = [example.id for example in examples if relations is not None and example.id not in relations]
    if missing:
        raise InputError(f"{missing[0]} has no relations: parse the same examples that are extracted")
    return [
        Scored(layout, token_pairs(layout, relations[layout.id] if relations is not None else ()))
        for layout in layouts(encoder.tokenizer, examples, max_tokens, segment_ids)
    ]


def read_attention(
    encoder: Encoder,
    example: Example,
    max_tokens: int = 128,
    segment_ids: str = "pair",
    maps: str | Source = "attention",
) -> tuple[Layout, Float[np.ndarray, "layer head token token"]]:
    """The layout of one sequence and the map of every head; rows are query tokens (`maps` as in `extract`)."""
    [layout] = layouts(encoder.tokenizer, [example], max_tokens, segment_ids)
    read_maps = find_source(maps).prepare(encoder, [layout])
    maps_of_layers: list[np.ndarray] = []
    read_maps([layout], lambda _, attention, *__: maps_of_layers.append(attention[0].cpu().numpy()))
    return layout, np.stack(maps_of_layers)


def read_sieves(
    encoder: Encoder, example: Example, relations: Relations, roles: Sequence[str], max_tokens: int = 128
) -> dict[str, Float[np.ndarray, "token token"]]:
    """The sieves of one sequence: a matrix for every role that the sequence has."""
    [sequence] = _prepare(encoder, [example], relations, max_tokens)
    entries = resolve(roles, set(sequence.pairs), "corrected")
    matrices = {role: entry.function(sequence.layout, sequence.pairs) for role, entry in entries.items()}
    return {role: matrix for role, matrix in matrices.items() if matrix is not None}


def stack(
    batch: Sequence[Scored], sieves: Mapping[str, Sieve], device: torch.device | str = "cpu"
) -> tuple[Contract, Int[np.ndarray, "sequence role"]]:
    """The function from the maps of a layer to sum(sieve * map), and the units of every sequence and role.

    Units are tokens or word pairs. They and the sum are 0 if the role is absent. The function takes entropies of rows
    (batch, head, row; nats) that replace those of the maps.
    """
    cells, units = relation_cells([sequence.pairs for sequence in batch], [*sieves.values()])
    sequence, role, row, column, weight = (torch.from_numpy(part).to(device) for part in cells)
    numbers = [j for j, entry in enumerate(sieves.values()) if not entry.labels]
    matrices = {name: entry for name, entry in sieves.items() if not entry.labels}
    weights, units[:, numbers] = _stacked(batch, matrices)
    stacked = torch.from_numpy(weights).to(device)
    weighed = [place for place, entry in enumerate(matrices.values()) if entry.entropy]

    def contract(maps: Attention, entropies: Tensor | None = None) -> Float[Tensor, "batch role head"]:
        # Row by row, then over rows: one sum over a whole map would have ten times the rounding error.
        rows = maps.transpose(1, 2) @ stacked.to(maps.dtype).mT  # sequence, row, head, role
        if weighed:
            entropies = row_entropies(maps) if entropies is None else entropies
            rows[..., weighed] *= entropies.mT[..., None]
        result = maps.new_zeros(*units.shape, maps.shape[1])
        result[:, numbers] = rows.sum(1).mT
        values = maps[sequence, :, row, column] * weight[:, None].to(maps.dtype)
        result.flatten(0, 1).index_add_(0, sequence * len(sieves) + role, values)
        return result

    return contract, units


def _stacked(
    batch: Sequence[Scored], sieves: Mapping[str, Sieve]
) -> tuple[Float32[np.ndarray, "sequence row role column"], Int[np.ndarray, "sequence role"]]:
    """The matrices of a batch, 0 where a role is absent, and how many rows of each have weights."""
    longest = max(len(sequence.layout) for sequence in batch)
    weights = np.zeros((len(batch), longest, len(sieves), longest), np.float32)
    for (layout, pairs), padded in zip(batch, weights, strict=True):
        for j, (role, entry) in enumerate(sieves.items()):
            matrix = entry.function(layout, pairs)
            if matrix is not None:
                _check_sieve(role, matrix, len(layout))
                padded[: len(layout), j, : len(layout)] = matrix
    return weights, weights.any(axis=3).sum(axis=1)


def _check_sieve(role: str, matrix: np.ndarray, length: int) -> None:
    """Refuses a matrix that is no sieve: T x T weights whose sum is at most 1."""
    if matrix.shape != (length, length):
        raise InputError(f"sieve {role!r} has shape {matrix.shape}: it must be {(length, length)}")
    total = float(matrix.sum())
    if matrix.dtype == bool or not total <= 1 + 1e-4:
        raise InputError(
            f"sieve {role!r} sums to {total:g}: make the mask a sieve with analysis.scores.sieves.rows"
        )


def score_batch(
    encoder: Encoder,
    read_maps: ReadMaps,
    batch: Sequence[Layout],
    contract: Contract,
    check: bool = False,
    statistics: Sequence[Statistic] = (),
) -> Float[np.ndarray, "sequence role layer head"]:
    """Scores of one padded batch, of the sieves and then of the statistics.

    `read_maps` reads the maps layer by layer; with `check` it guards them (see `maps.Source`).
    """
    lengths = torch.tensor([len(layout) for layout in batch], device=encoder.device)
    collected: list[Tensor] = []

    def read(layer: int, attention: Attention, entropies: Tensor | None = None) -> None:
        biases = contract(attention, entropies) * lengths[:, None, None]
        measured = [statistic(attention, batch)[:, None] for statistic in statistics]
        collected.append(torch.cat([biases, *measured], dim=1) if measured else biases)

    read_maps(batch, read, check)
    scores = torch.stack(collected, dim=2).cpu().numpy()
    if not np.isfinite(scores).all():  # NaN would look like an absent role
        raise InputError(
            f"{encoder.name}: attention has NaN or infinity, the weights are damaged: give others"
        )
    return scores
