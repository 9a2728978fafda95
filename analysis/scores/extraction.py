"""One streaming pass: sieve bias scores of every head, layer by layer; attention itself is never stored."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from analysis.encoders.layout import Layout, WordPairs, batches, layouts, same_tokenizers, token_pairs
from analysis.encoders.models import Encoder, kept_casts
from analysis.encoders.tap import read_layers
from analysis.errors import InputError
from analysis.scores.contraction import Contraction
from analysis.scores.forms import Form, Full
from analysis.scores.maps import ReadMaps, Source, find_source
from analysis.scores.sieves import Sieve, by_label, resolve
from analysis.texts.examples import Example, as_sequences, clusters
from analysis.texts.syntax import Relations

State = TypeVar("State", bound=Hashable)
Statistic = Callable[[Tensor, Sequence[Layout]], Tensor]  # one number for every sequence and head
ABSENT = Sieve(lambda layout, pairs: None)


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
    maps: str | ReadMaps = "attention",
    statistics: Mapping[str, Statistic] | None = None,
    segment_ids: str = "pair",
) -> xr.DataArray:
    """Sieve bias scores of every sequence, role, layer and head (Pande 2021); NaN where a role is absent.

    A head that attends uniformly scores 1, block (its rows are weighed by their entropy in nats) about ln T.
    `relations` maps Example.id to its grammatical relations (see `parse`); `roles` names registered sieves or
    relations, by default the whole bank of elementary sieves; `arithmetic="published"` takes the local band
    as the released code divides it. Coordinates `tokens` (T), `separators` (number of [SEP]), `cluster` (equal for
    sequences that share a text) and `units` (tokens or word pairs a role averages over) go with the scores.
    `budget` is the padded tokens of one batch and does not change the result (1e-5). `maps` names a registered
    source of the maps that are scored, or is one (see `maps`); roles that weigh rows by their entropy are absent
    where the rows are no distributions. `statistics` are measured of the same maps and stand after the sieves, under
    their names, with the tokens as units (see `all_rows`). `segment_ids` are those of `layouts`. Raises InputError
    for unknown roles or maps, relations that are named but not given, and examples without relations.
    """
    options = (arithmetic, max_tokens, budget, progress, maps, statistics, segment_ids)
    return extract_states({"": encoder}, examples, relations, roles, *options)[""]


def extract_states(
    encoders: Mapping[State, Encoder],
    examples: Sequence[Example],
    relations: Relations | None = None,
    roles: Sequence[str] | None = None,
    arithmetic: str = "corrected",
    max_tokens: int = 128,
    budget: int = 2048,
    progress: bool = True,
    maps: str | ReadMaps = "attention",
    statistics: Mapping[str, Statistic] | None = None,
    segment_ids: str = "pair",
) -> dict[State, xr.DataArray]:
    """Scores of several states of one model on the same sequences, each under its name as `extract` gives them.

    Sequences are tokenised, sieves built and batches made once for all of them. Raises InputError as `extract`
    does, and for encoders that do not share a tokenizer.
    """
    examples = as_sequences(examples)
    models = [*encoders.values()]
    if not same_tokenizers([model.tokenizer for model in models]):
        raise InputError(
            f"{', '.join(model.name for model in models)} have different tokenizers: extract each alone"
        )
    source, statistics = find_source(maps), statistics or {}
    sequences = _prepare(models, examples, relations, max_tokens, segment_ids)
    sieves = _sieves(sequences, roles, arithmetic, source, relations is not None)
    names = [*sieves, *statistics]
    shape = len(sequences), len(names)
    scores = [np.full((*shape, model.layers, model.heads), np.nan, np.float32) for model in models]
    units = np.repeat([[len(sequence.layout)] for sequence in sequences], len(names), axis=1).astype(np.int32)
    found = [sequence.layout for sequence in sequences]
    plan = list(batches(found, budget))
    sources = [source.prepared(model, found, budget, progress) for model in models]
    total = len(sequences) * len(models)
    with (
        kept_casts(*models),
        tqdm(total=total, desc="attention", unit="sequence", disable=not progress) as bar,
    ):
        for number, indices in enumerate(plan):
            batch = [sequences[index] for index in indices]
            contraction, units[indices, : len(sieves)] = stack(batch, sieves, models[0].device)
            check = number in (0, len(plan) - 1)  # the shortest sequences may need no padding
            for model, read, own in zip(models, sources, scores, strict=True):
                biases = score_batch(
                    model, [s.layout for s in batch], contraction, check, read, [*statistics.values()]
                )
                own[indices] = np.where(units[indices][:, :, None, None] > 0, biases, np.nan)
                bar.update(len(indices))
    about = {"arithmetic": arithmetic, "maps": source.name, "max_tokens": max_tokens}
    cluster = ("sequence", clusters(examples))
    return {
        state: _labelled(model, sequences, names, own, units, about).assign_coords(cluster=cluster)
        for (state, model), own in zip(encoders.items(), scores, strict=True)
    }


def _sieves(
    sequences: Sequence[Scored], roles: Sequence[str] | None, arithmetic: str, source: Source, related: bool
) -> dict[str, Sieve]:
    """The sieves of the roles; `related` says whether relations were given."""
    sieves = resolve(roles, {label for sequence in sequences for label in sequence.pairs}, arithmetic)
    for role, entry in sieves.items():
        if entry.pooled and not related:
            raise InputError(f"role {role!r} needs relations: give relations=parse(examples)")
        if entry.entropy and not source.distributions:  # a logarithm of such rows means nothing
            sieves[role] = ABSENT
    return sieves


def _prepare(
    encoders: Sequence[Encoder],
    examples: Sequence[Example],
    relations: Relations | None,
    max_tokens: int,
    segment_ids: str = "pair",
) -> list[Scored]:
    for encoder in encoders:
        if max_tokens > encoder.positions:
            raise InputError(f"max_tokens is {max_tokens}: {encoder.name} has {encoder.positions} positions")
    missing = [example.id for example in examples if relations is not None and example.id not in relations]
    if missing:
        raise InputError(f"{missing[0]} has no relations: parse the same examples that are extracted")
    return [
        Scored(layout, token_pairs(layout, relations[layout.id] if relations is not None else ()))
        for layout in layouts(encoders[0].tokenizer, examples, max_tokens, segment_ids)
    ]


def read_attention(
    encoder: Encoder,
    example: Example,
    max_tokens: int = 128,
    segment_ids: str = "pair",
    maps: str | ReadMaps = "attention",
) -> tuple[Layout, Float[np.ndarray, "layer head token token"]]:
    """One sequence's layout and the map of every head, for figures; rows are query tokens, `maps` as in `extract`."""
    [layout] = layouts(encoder.tokenizer, [example], max_tokens, segment_ids)
    read = find_source(maps).prepared(encoder, [layout], len(layout), progress=False)
    found: list[np.ndarray] = []
    read(encoder, [layout], lambda _, attention, *__: found.append(attention[0].cpu().numpy()))
    return layout, np.stack(found)


def read_sieves(
    encoder: Encoder, example: Example, relations: Relations, roles: Sequence[str], max_tokens: int = 128
) -> dict[str, Float[np.ndarray, "token token"]]:
    """One sequence's sieves for figures: a matrix for every named role that the sequence has."""
    [sequence] = _prepare([encoder], [example], relations, max_tokens)
    entries = resolve(roles, set(sequence.pairs), "corrected")
    matrices = {role: entry.matrix(sequence.layout, sequence.pairs) for role, entry in entries.items()}
    return {role: matrix for role, matrix in matrices.items() if matrix is not None}


def stack(
    batch: Sequence[Scored], sieves: Mapping[str, Sieve], device: torch.device | str = "cpu"
) -> tuple[Contraction, np.ndarray]:
    """The batch's sieves, and over how many tokens or word pairs each is a mean (sequence, role), 0 where absent."""
    entries = list(sieves.values())
    pairs = by_label([sequence.pairs for sequence in batch])
    ranges = {j: entry.pooled(pairs) for j, entry in enumerate(entries) if entry.pooled and not entry.entropy}
    alone = [(j, role, entry) for j, (role, entry) in enumerate(sieves.items()) if j not in ranges]
    general, own = ([entry for entry in alone if entry[-1].by_length == kind] for kind in (True, False))
    by_length: dict[int, dict[int, Form]] = {}
    forms = []
    for sequence in batch:
        length = len(sequence.layout)
        if length not in by_length:
            by_length[length] = _forms(sequence, general)
        forms.append(by_length[length] | _forms(sequence, own))
    units = np.zeros((len(batch), len(entries)), np.int32)
    for i, row in enumerate(forms):
        units[i, list(row)] = [form.tokens for form in row.values()]
    for j, (sequences, _) in ranges.items():
        units[:, j] = np.bincount(sequences, minlength=len(batch))
    longest = max(len(sequence.layout) for sequence in batch)
    return Contraction(forms, [entry.entropy for entry in entries], longest, device, ranges), units


def _forms(sequence: Scored, entries: Sequence[tuple[int, str, Sieve]]) -> dict[int, Form]:
    """The forms of the roles that a sequence has, by number; roles that share a function share its form."""
    known: dict[Callable, Form | None] = {}
    found = {}
    for number, role, entry in entries:
        if entry.function not in known:
            form = known[entry.function] = entry.form(sequence.layout, sequence.pairs)
            if isinstance(form, Full):
                check_sieve(role, form.weights, len(sequence.layout))
        if known[entry.function] is not None:
            found[number] = known[entry.function]
    return found


def check_sieve(role: str, matrix: np.ndarray, length: int) -> None:
    """Stops a registered function whose matrix is no sieve: T x T weights from 0 up that sum to 1 at most."""
    if matrix.shape != (length, length):
        raise InputError(f"sieve {role!r} has shape {matrix.shape}: it must be {(length, length)}")
    total = float(matrix.sum())
    if matrix.dtype == bool or not total <= 1 + 1e-4:
        raise InputError(f"sieve {role!r} sums to {total:g}: make the mask a sieve with analysis.scores.rows")


def score_batch(
    encoder: Encoder,
    batch: Sequence[Layout],
    contraction: Contraction,
    check: bool = False,
    source: ReadMaps = read_layers,
    statistics: Sequence[Statistic] = (),
) -> Float[np.ndarray, "sequence role layer head"]:
    """Scores of one padded batch, layer by layer as `source` gives its maps; `check` guards the attention read.

    The statistics stand after the sieves.
    """
    lengths = torch.tensor([len(layout) for layout in batch], device=encoder.device)
    collected: list[Tensor] = []

    def read(
        layer: int,
        attention: Float[Tensor, "batch head token token"],
        entropies: Float[Tensor, "batch head token"] | None = None,
    ) -> None:
        biases = contraction(attention, entropies) * lengths[:, None, None]
        measured = [statistic(attention, batch)[:, None] for statistic in statistics]
        collected.append(torch.cat([biases, *measured], dim=1) if measured else biases)

    source(encoder, batch, read, check)
    scores = torch.stack(collected, dim=2).cpu().numpy()
    if not np.isfinite(scores).all():  # NaN would pass for a role that is absent
        raise InputError(f"{encoder.name} attends with NaN or infinity: its weights are damaged, give others")
    return scores


def _labelled(
    encoder: Encoder,
    sequences: Sequence[Scored],
    roles: Sequence[str],
    scores: Float[np.ndarray, "sequence role layer head"],
    units: np.ndarray,
    about: Mapping[str, str | int],
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
            **about,
            "sequences_truncated": sum(layout.cut > 0 for layout in found),
            "tokens_truncated": sum(layout.cut for layout in found),
        },
    )
