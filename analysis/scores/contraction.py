"""Sums of sieve times attention for a whole batch: every role and head of one layer at once, on the device."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numba
import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analysis.scores import kernel
from analysis.scores.forms import Band, Columns, Form, Full, Ranges, Rectangles, cells

Attention = Float[Tensor, "batch head token token"]
Scores = Float[Tensor, "batch role head"]
Forms = Sequence[Mapping[int, Form]]
Placed = Sequence[tuple[int, int, Form]]  # sequence, role, and the form that belongs to them
NO_ENTROPIES = np.zeros((0, 0, 0), np.float32)


class Packed(NamedTuple):
    """The sieves of a padded batch as arrays, one block of fields per form; the axis `role` holds the roles of a form.

    Columns: a group adds up some `rows` of the attention (all, or those of one text); `weighed` groups first multiply
    rows by their entropy; a role then adds up its `columns`. Bands: the diagonals `steps` positions after the main one;
    sequences of one length share their weights. Rectangles: single cells (row, column) of word pairs; those of sequence
    b start at `starts[b]`. Full: any weights.
    """

    entropy: bool  # whether any form needs the entropies of rows
    rows: Float[np.ndarray, "batch group token"]
    weighed: Bool[np.ndarray, " group"]
    columns: Float[np.ndarray, "batch role group token"]
    column_roles: Int[np.ndarray, " role"]
    steps: Int[np.ndarray, " diagonal"]
    bands: Float[np.ndarray, "kind role diagonal token"]
    band_kinds: Int[np.ndarray, " batch"]
    band_roles: Int[np.ndarray, " role"]
    starts: Int[np.ndarray, " batch+1"]
    cells: Int[np.ndarray, "cell 2"]
    shares: Float[np.ndarray, " cell"]
    cell_roles: Int[np.ndarray, " cell"]
    full: Float[np.ndarray, "batch role token token"]
    full_weighed: Bool[np.ndarray, " role"]
    full_roles: Int[np.ndarray, " role"]


class Contraction:
    """The sieves of one padded batch; called with the attention of a layer, it gives sum(sieve * map).

    The result has every sequence, role and head; padding and absent roles give 0. `forms[i][j]` is the sieve of
    sequence i and role j, if the role is present; `ranges[j]` are the word pairs of a role in all sequences. For roles
    marked in `entropy`, every row of a map is multiplied by its entropy (nats), or by `entropies` if they are given.
    `kernel` computes the sums of float32 attention on a CPU.
    """

    def __init__(
        self,
        forms: Forms,
        entropy: Sequence[bool],
        length: int,
        device: torch.device | str = "cpu",
        ranges: Mapping[int, Ranges] = MappingProxyType({}),
    ):
        self.shape = (len(forms), len(entropy))
        placed: dict[type, list[tuple[int, int, Form]]] = {
            kind: [] for kind in (Columns, Band, Rectangles, Full)
        }
        for sequence, row in enumerate(forms):
            for role, form in row.items():
                form = _compatible(form, entropy[role])
                placed[type(form)].append((sequence, role, form))
        kinds = placed.values()
        self.packed = Packed(
            any(entropy[role] for kind in kinds for _, role, _ in kind),
            *_columns(placed[Columns], len(forms), length, entropy),
            *_bands(placed[Band], len(forms), length),
            *_cells(placed[Rectangles], ranges, *self.shape),
            *_full(placed[Full], len(forms), length, entropy),
        )
        self.device = torch.device(device)

    def __call__(
        self, attention: Attention, entropies: Float[Tensor, "batch head row"] | None = None
    ) -> Scores:
        result = attention.new_zeros(*self.shape, attention.shape[1])
        if attention.device.type == "cpu" and attention.dtype == torch.float32:
            _share_threads()
            given = NO_ENTROPIES if entropies is None else entropies.detach().contiguous().numpy()
            kernel.contract(attention.detach().contiguous().numpy(), self.packed, result.numpy(), given)
        else:
            contract(attention, self.tensors, result, entropies)
        return result

    @cached_property
    def tensors(self) -> Packed:
        """The arrays on the device."""
        return Packed(
            *(
                torch.from_numpy(value).to(self.device) if isinstance(value, np.ndarray) else value
                for value in self.packed
            )
        )


def _share_threads() -> None:
    """Lets compiled code use as many threads as torch."""
    threads = torch.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    if torch.get_num_threads() != threads:  # numba's start sets the threads of a shared OpenMP
        torch.set_num_threads(threads)


def row_entropies(
    attention: Float[Tensor, "batch head row token"],
) -> Float[Tensor, "batch head row"]:
    """The entropy of every row of attention (nats)."""
    # torch.special.entr gives the same in twice the time: its logarithm is not vectorised.
    logarithms = attention.clamp_min(torch.finfo(attention.dtype).tiny).log_()
    return -logarithms.mul_(attention).sum(-1)


def contract(
    attention: Attention,
    sieves: Packed,
    result: Scores,
    entropies: Float[Tensor, "batch head row"] | None = None,
) -> None:
    """Adds sum(sieve * map) of every sequence, role and head to `result`, as `kernel` does, on any device."""
    batch, _, tokens, _ = attention.shape
    if entropies is None:
        entropies = row_entropies(attention) if sieves.entropy else attention.new_ones(1)
    if len(sieves.weighed):
        rows = sieves.rows.to(attention.dtype)[:, None]
        rows = torch.where(sieves.weighed[:, None], rows * entropies[..., None, :], rows)
        received = torch.matmul(rows, attention).flatten(2)
        _add(result, sieves.column_roles, sieves.columns, received)
    if len(sieves.steps):
        positions = torch.arange(tokens, device=attention.device)
        columns = (positions + sieves.steps[:, None]).clamp(0, tokens - 1)  # the weights outside are 0
        places = (positions * tokens + columns).flatten().expand(*attention.shape[:2], -1)
        neighbours = attention.flatten(2).gather(2, places)
        _add(result, sieves.band_roles, sieves.bands[sieves.band_kinds], neighbours)
    if len(sieves.cells):
        sequences = torch.repeat_interleave(sieves.starts.diff(), output_size=len(sieves.cells))
        row, column = sieves.cells.T
        found = attention.permute(0, 2, 3, 1)[sequences, row, column] * sieves.shares[:, None]
        targets = sequences * result.shape[1] + sieves.cell_roles
        result.flatten(0, 1).index_add_(0, targets, found.to(result.dtype))
    if len(sieves.full_roles):
        sums = torch.einsum("brij,bhij->brhi", sieves.full.to(attention.dtype), attention)
        sums = torch.where(sieves.full_weighed[:, None, None], sums * entropies[:, None], sums)
        result.index_add_(1, sieves.full_roles, sums.sum(-1))


def _add(result: Scores, roles: Tensor, weights: Tensor, found: Float[Tensor, "batch head place"]) -> None:
    result.index_add_(1, roles, torch.bmm(weights.flatten(2).to(found.dtype), found.transpose(1, 2)))


def _compatible(form: Form, entropy: bool) -> Form:
    """The form itself; a full matrix for other forms than columns if rows are multiplied by their entropy."""
    return Full(form.matrix()) if entropy and isinstance(form, Band | Rectangles) else form


def _places(placed: Placed) -> tuple[Int[np.ndarray, " role"], dict[int, int]]:
    """The roles among the placed forms, and the position of each."""
    roles = sorted({role for _, role, _ in placed})
    return np.array(roles, int), {role: place for place, role in enumerate(roles)}


def _columns(placed: Placed, batch: int, length: int, entropy: Sequence[bool]) -> tuple[np.ndarray, ...]:
    roles, places = _places(placed)
    # Most roles of a sequence share their rows. Rows with entropies are counted apart.
    known: dict[tuple[int, bool, bytes], int] = {}
    counts = [[0, 0] for _ in range(batch)]
    entries = []
    for sequence, role, form in placed:
        weigh = entropy[role]
        key = sequence, weigh, form.rows.tobytes()
        if key not in known:
            known[key] = counts[sequence][weigh]
            counts[sequence][weigh] += len(form.rows)
        entries.append((sequence, weigh, known[key], role, form))
    plain, weighed = np.max(counts, axis=0)
    rows = np.zeros((batch, plain + weighed, length), np.float32)
    columns = np.zeros((batch, len(roles), plain + weighed, length), np.float32)
    for sequence, weigh, number, role, form in entries:
        first = number + plain * weigh
        groups, tokens = form.rows.shape
        rows[sequence, first : first + groups, :tokens] = form.rows
        columns[sequence, places[role], first : first + groups, :tokens] = form.columns
    return rows, np.arange(plain + weighed) >= plain, columns, roles


def _bands(placed: Placed, batch: int, length: int) -> tuple[np.ndarray, ...]:
    roles, places = _places(placed)
    own: list[list[tuple[int, Band]]] = [[] for _ in range(batch)]
    for sequence, role, form in placed:
        own[sequence].append((places[role], form))
    # Sequences of the same length share their bands.
    kinds: dict[tuple[tuple[int, int], ...], int] = {}
    kind_of = [
        kinds.setdefault(tuple((place, id(form)) for place, form in bands), len(kinds)) for bands in own
    ]
    steps = sorted({step for form_steps in {form.steps for *_, form in placed} for step in form_steps})
    diagonal = {step: number for number, step in enumerate(steps)}
    weights = np.zeros((len(kinds), len(roles), len(steps), length), np.float32)
    for kind in kinds.values():
        for place, form in own[kind_of.index(kind)]:
            used = [diagonal[step] for step in form.steps]
            weights[kind, place, used, : len(form.weights)] = form.weights.T
    return np.array(steps, int), weights, np.array(kind_of), roles


def _cells(placed: Placed, ranges: Mapping[int, Ranges], batch: int, roles: int) -> tuple[np.ndarray, ...]:
    parts = [(np.full(len(form.ranges), sequence), role, form.ranges) for sequence, role, form in placed]
    parts += [(sequences, role, own) for role, (sequences, own) in ranges.items()]
    sequence = np.concatenate([np.zeros(0, int), *(sequences for sequences, *_ in parts)])
    role = np.repeat(np.array([role for _, role, _ in parts], int), [len(own) for *_, own in parts])
    corners = np.concatenate([np.zeros((0, 4), int), *(own for *_, own in parts)])
    place = sequence * roles + role
    weights = 1 / np.bincount(place)[place]  # equal for the rectangles of a role in a sequence
    order = np.argsort(sequence, kind="stable")
    rectangle, rows, columns, shares = cells(corners[order])
    of_cells = order[rectangle]
    starts = np.searchsorted(sequence[of_cells], np.arange(batch + 1))
    shares = (shares * weights[of_cells]).astype(np.float32)
    return starts, np.stack([rows, columns], axis=1), shares, role[of_cells]


def _full(placed: Placed, batch: int, length: int, entropy: Sequence[bool]) -> tuple[np.ndarray, ...]:
    roles, places = _places(placed)
    weights = np.zeros((batch, len(roles), length, length), np.float32)
    for sequence, role, form in placed:
        tokens = len(form.weights)
        weights[sequence, places[role], :tokens, :tokens] = form.weights
    return weights, np.array([entropy[role] for role in roles], bool), roles
