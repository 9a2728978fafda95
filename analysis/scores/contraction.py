"""Sums of sieve times attention for a whole batch: every role and head of one layer at once, on any device."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag

from analysis.encoders.tap import Attention
from analysis.scores.forms import Cells, Columns, Form, Ranges

Scores = Float[Tensor, "batch role head"]
Placed = Sequence[tuple[int, int, Form]]  # sequence, role, and the form that belongs to them
BAG = 64  # cells that are summed at once: longer sums double the rounding error
AT_ONCE = 2**18  # cells of maps whose logarithms fit in the cache


class Contraction:
    """The sieves of one padded batch; called with the attention of a layer, it gives sum(sieve * map).

    The result has every sequence, role and head; padding and absent roles give 0. `forms[i][j]` is the sieve of
    sequence i and role j, if the role is present; `ranges[j]` are the word pairs of a role in all sequences. For roles
    marked in `entropy`, every row of a map is multiplied by its entropy (nats), or by `entropies` if they are given.

    Every sieve becomes a list of cells. Those of `Columns` lie in rows that are added below the map: the sums of groups
    of its rows. Those of other sieves with entropies lie in a copy of the map whose rows are multiplied.
    """

    def __init__(
        self,
        forms: Sequence[Mapping[int, Form]],
        entropy: Sequence[bool],
        length: int,
        device: torch.device | str = "cpu",
        ranges: Mapping[int, Ranges] = MappingProxyType({}),
    ):
        self.shape = (len(forms), len(entropy))
        placed = [(sequence, role, form) for sequence, row in enumerate(forms) for role, form in row.items()]
        of_columns = [each for each in placed if isinstance(each[2], Columns)]
        others = [each for each in placed if isinstance(each[2], Cells)]
        rows, weighed, columns = _groups(of_columns, *self.shape, length, entropy)
        self.copied = any(entropy[role] for _, role, _ in others)
        self.entropy = self.copied or bool(weighed.any())
        height = length + rows.shape[1]
        below = [height * entropy[role] for _, role, _ in others]
        # Sequence, role, row, column and weight of every cell; group g is row `length` + g.
        at = np.nonzero(columns)
        parts = [(*at[:2], length + at[2], at[3], columns[at]), _listed(others, below)]
        for role, own in ranges.items():
            sequences, *cells = own.cells()
            parts.append((sequences, np.full(len(sequences), role), *cells))
        sequence, role, row, column, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
        height += length * self.copied
        target = sequence * self.shape[1] + role
        order = np.argsort(target, kind="stable")
        target = target[order]
        place = np.arange(len(target)) - np.searchsorted(target, target)  # of each cell within its sieve
        bags = np.flatnonzero(place % BAG == 0)
        arrays = {
            "rows": rows,
            "weighed": weighed,
            "cells": ((sequence * height + row) * length + column)[order],
            "weights": weight[order].astype(np.float32),
            "bags": bags,
            "targets": target[bags],
        }
        self.arrays = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}

    def __call__(
        self, attention: Attention, entropies: Float[Tensor, "batch head row"] | None = None
    ) -> Scores:
        own, heads = self.arrays, attention.shape[1]
        if entropies is None and self.entropy:
            entropies = row_entropies(attention)
        parts = [attention]
        if len(own["weighed"]):
            rows = own["rows"].to(attention.dtype)[:, None]
            if self.entropy:
                rows = torch.where(own["weighed"][:, None], rows * entropies[..., None, :], rows)
            parts.append(torch.matmul(rows, attention))
        if self.copied:
            parts.append(attention * entropies[..., None])
        table = torch.cat(parts, dim=2).permute(0, 2, 3, 1).reshape(-1, heads)
        weights = own["weights"].to(attention.dtype)
        sums = embedding_bag(own["cells"], table, own["bags"], mode="sum", per_sample_weights=weights)
        result = attention.new_zeros(self.shape[0] * self.shape[1], heads)
        return result.index_add_(0, own["targets"], sums).reshape(*self.shape, heads)


def row_entropies(attention: Float[Tensor, "batch head row token"]) -> Float[Tensor, "batch head row"]:
    """The entropy of every row of attention (nats)."""
    some = max(1, AT_ONCE // max(1, attention.shape[2] * attention.shape[3]))
    found = []
    for maps in attention.flatten(0, 1).split(some):
        # torch.special.entr gives the same in twice the time: its logarithm is not vectorised.
        logarithms = maps.clamp_min(torch.finfo(maps.dtype).tiny).log_()
        found.append(-logarithms.mul_(maps).sum(-1))
    return torch.cat(found).reshape(attention.shape[:3])


def _groups(
    placed: Placed, batch: int, roles: int, length: int, entropy: Sequence[bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The groups of rows (batch, group, token), whether entropies multiply them, and what each role adds up (columns).

    The columns are (batch, role, group, token). Most roles of a sequence share their rows. Rows with entropies are
    counted apart.
    """
    known: dict[tuple[int, bool, bytes], int] = {}
    counts = np.zeros((batch, 2), int)
    entries = []
    for sequence, role, form in placed:
        weigh = bool(entropy[role])
        key = sequence, weigh, form.rows.tobytes()
        if key not in known:
            known[key] = int(counts[sequence, int(weigh)])
            counts[sequence, int(weigh)] += len(form.rows)
        entries.append((sequence, weigh, known[key], role, form))
    plain, weighed = (int(count) for count in counts.max(axis=0, initial=0))
    rows = np.zeros((batch, plain + weighed, length), np.float32)
    columns = np.zeros((batch, roles, plain + weighed, length), np.float32)
    for sequence, weigh, number, role, form in entries:
        first = number + plain * weigh
        groups, tokens = form.rows.shape
        rows[sequence, first : first + groups, :tokens] = form.rows
        columns[sequence, role, first : first + groups, :tokens] = form.columns
    return rows, np.arange(plain + weighed) >= plain, columns


def _listed(placed: Placed, below: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Sequence, role, row, column and weight of the cells of all other sieves; rows are moved down by `below`."""
    sizes = [len(form.weights) for *_, form in placed]
    empty: Int[np.ndarray, " cell"] = np.zeros(0, int)
    return (
        np.repeat([sequence for sequence, *_ in placed], sizes).astype(int),
        np.repeat([role for _, role, _ in placed], sizes).astype(int),
        np.concatenate([empty, *(form.rows for *_, form in placed)]) + np.repeat(below, sizes).astype(int),
        np.concatenate([empty, *(form.columns for *_, form in placed)]),
        np.concatenate([empty.astype(np.float32), *(form.weights for *_, form in placed)]),
    )
