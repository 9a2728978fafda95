"""Sums of sieve times attention for a whole batch: every role and head of one layer at once, on the device."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from .forms import REACH, Band, Columns, Form, Full, Rectangles, cells

Attention = Float[Tensor, "batch head token token"]
Scores = Float[Tensor, "batch role head"]
Forms = Sequence[Sequence[Form | None]]
Placed = tuple[int, int, Form]  # sequence and role that a form belongs to
Shape = tuple[int, int]  # sequences and roles


class Contraction:
    """The sieves of one padded batch, ready to be summed against any layer's attention.

    `forms[i][j]` is the sieve of sequence i and role j, None where absent; roles marked in `entropy` see every
    row of a map multiplied by the row's entropy (nats). Called with attention, it gives sum(sieve * map) for
    every sequence, role and head; padding and absent roles give 0.
    """

    def __init__(
        self, forms: Forms, entropy: Sequence[bool], length: int, device: torch.device | str = "cpu"
    ):
        self.shape = (len(forms), len(entropy))
        self.entropy = any(entropy)
        packers = {Columns: _columns, Band: _band, Rectangles: _rectangles, Full: _full}
        placed: dict[type, list[Placed]] = {kind: [] for kind in packers}
        for sequence, row in enumerate(forms):
            for role, form in enumerate(row):
                if form is not None:
                    form = _compatible(form, entropy[role])
                    placed[type(form)].append((sequence, role, form))
        self.parts = [
            pack(placed[kind], self.shape, entropy, length, device)
            for kind, pack in packers.items()
            if placed[kind]
        ]

    def __call__(self, attention: Attention) -> Scores:
        heads = attention.shape[1]
        result = attention.new_zeros(*self.shape, heads)
        weights = row_entropies(attention) if self.entropy else None
        for part in self.parts:
            part(attention, weights, result)
        return result


def row_entropies(
    attention: Float[Tensor, "batch head row token"],
) -> Float[Tensor, "batch head row"]:
    """The entropy of every row of attention (nats)."""
    # torch.special.entr gives the same in twice the time: its logarithm is not vectorised.
    logarithms = attention.clamp_min(torch.finfo(attention.dtype).tiny).log_()
    return -logarithms.mul_(attention).sum(-1)


Part = Callable[[Attention, Tensor | None, Scores], None]


def _compatible(form: Form | None, entropy: bool) -> Form | None:
    """Rows weighed by their entropy are worked out for columns and full matrices only."""
    return Full(form.matrix()) if entropy and isinstance(form, Band | Rectangles) else form


def _columns(
    placed: Sequence[Placed], shape: Shape, entropy: Sequence[bool], length: int, device: torch.device | str
) -> Part:
    groups: dict[int, int] = {}
    for _, role, form in placed:
        groups[role] = max(groups.get(role, 0), len(form.rows))
    role_of = [role for role, count in groups.items() for _ in range(count)]
    first = {role: role_of.index(role) for role in groups}
    rows, columns = np.zeros((2, shape[0], len(role_of), length), np.float32)
    for sequence, role, form in placed:
        count, tokens = form.rows.shape
        here = sequence, slice(first[role], first[role] + count), slice(tokens)
        rows[here], columns[here] = form.rows, form.columns
    row_weights = torch.from_numpy(rows).to(device).transpose(1, 2)[:, None]  # batch, head, token, group
    targets = torch.from_numpy(columns).to(device).transpose(1, 2)
    weighed = torch.tensor([group for group, role in enumerate(role_of) if entropy[role]], device=device)
    index = torch.tensor(role_of, device=device)

    def part(attention: Attention, entropies: Tensor | None, result: Scores) -> None:
        batch, heads, tokens, _ = attention.shape
        received = torch.bmm(attention.reshape(batch, heads * tokens, tokens), targets)
        received = received.view(batch, heads, tokens, -1).mul_(row_weights)
        if len(weighed):
            received[..., weighed] *= entropies[..., None]
        result.index_add_(1, index, received.sum(2).transpose(1, 2))

    return part


def _band(
    placed: Sequence[Placed], shape: Shape, entropy: Sequence[bool], length: int, device: torch.device | str
) -> Part:
    roles = sorted({role for _, role, _ in placed})
    place = {role: number for number, role in enumerate(roles)}
    weights = np.zeros((shape[0], len(roles), length, 2 * REACH + 1), np.float32)
    for sequence, role, form in placed:
        weights[sequence, place[role], : len(form.weights)] = form.weights
    stacked = torch.from_numpy(weights).to(device).flatten(2)
    index = torch.tensor(roles, device=device)

    def part(attention: Attention, entropies: Tensor | None, result: Scores) -> None:
        batch, heads, tokens, _ = attention.shape
        # Rows as long as the padded map plus one: the diagonals of the map become columns.
        padded = pad(attention, (REACH, REACH))
        step = padded.stride()
        diagonals = padded.as_strided(
            (batch, heads, tokens, 2 * REACH + 1), (step[0], step[1], step[2] + step[3], step[3])
        )
        result.index_add_(1, index, torch.bmm(stacked, diagonals.flatten(2).transpose(1, 2)))

    return part


def _rectangles(
    placed: Sequence[Placed], shape: Shape, entropy: Sequence[bool], length: int, device: torch.device | str
) -> Part:
    counts = [len(form.ranges) for *_, form in placed]
    rectangle, rows, columns, shares = cells(np.concatenate([form.ranges for *_, form in placed]))

    def of_cells(values: Sequence[int]) -> np.ndarray:
        return np.repeat(values, counts)[rectangle]

    sequences = of_cells([sequence for sequence, *_ in placed])
    roles = of_cells([role for _, role, _ in placed])
    weights = (shares / of_cells(counts)).astype(np.float32)[:, None]
    sequence, row, column, target, weight = (
        torch.from_numpy(values).to(device)
        for values in (sequences, rows, columns, sequences * shape[1] + roles, weights)
    )

    def part(attention: Attention, entropies: Tensor | None, result: Scores) -> None:
        found = attention.permute(0, 2, 3, 1)[sequence, row, column]
        result.flatten(0, 1).index_add_(0, target, found * weight)

    return part


def _full(
    placed: Sequence[Placed], shape: Shape, entropy: Sequence[bool], length: int, device: torch.device | str
) -> Part:
    roles = sorted({role for _, role, _ in placed})
    place = {role: number for number, role in enumerate(roles)}
    weights = np.zeros((shape[0], len(roles), length, length), np.float32)
    for sequence, role, form in placed:
        tokens = len(form.weights)
        weights[sequence, place[role], :tokens, :tokens] = form.weights
    stacked = torch.from_numpy(weights).to(device)
    index = torch.tensor(roles, device=device)
    weighs = torch.tensor([entropy[role] for role in roles], device=device)[:, None, None]

    def part(attention: Attention, entropies: Tensor | None, result: Scores) -> None:
        rows = torch.einsum("brij,bhij->brhi", stacked, attention)
        if entropies is not None:
            rows = torch.where(weighs, rows * entropies[:, None], rows)
        result.index_add_(1, index, rows.sum(-1))

    return part
