"""Sums of sieve times attention for a whole batch: every role and head of one layer at once, on any device.

A head's score for a role is T * sum(W * A), where W is the sieve and A the head's map. Most of the T x T weights of a
sieve are zero or repeat, so this module never writes W out. It turns every sieve into a short list of weighted cells,
and sums the cells of all sieves at once.

**An example.** One sequence of T = 4 tokens, and one head that attends like this (rows are queries):

              [CLS]    a     b    [SEP]
    row 0      .4     .1    .1     .4       [CLS]
    row 1      .2     .2    .5     .1       a
    row 2      .1     .6    .2     .1       b
    row 3      .3     .1    .1     .5       [SEP]

*Cells.* The role `offset_+1` (the next token) has one cell in each of three rows, with weight 1/3: row 0, column 1;
row 1, column 2; row 2, column 3. The sum is (.1 + .5 + .1) / 3 = .233, and the score 4 * .233 = .93.

*Columns.* The role `cls` has weight 1/4 in every row of column 0. Written as cells, such a role has T cells for every
token that it marks. Instead, the mean of the rows is computed once and added below the map:

    row 4      .25    .25   .225   .275     1/4 of each row above

Now `cls` is the single cell in row 4, column 0, with weight 1: the sum is .25, and the score 1. `sep` and
`punctuation` read the same row. In general a form of `Columns` has several groups of rows, each with its own weights
and its own marked tokens; every group adds a row, and roles with equal groups share it.

*The table.* The map and the rows below it are one table of 5 x 4 cells, numbered row by row. The two roles read

    cells      1     6     11      16
    weights   1/3   1/3    1/3     1
    sieve      0     0     0       1

so one call of `embedding_bag` computes the sums of all sieves, for all heads at once: an entry of the table is a vector
with a number for each head. The tables of a batch lie one behind the other. A bag has at most BAG cells, since longer
sums in float32 have larger errors; then the bags of each sieve are added up.

*Entropies.* In roles such as `block`, every row of the map is multiplied by its entropy. Groups then have the entropies
among their weights, so they stand below the other groups and are computed for each layer and head. Cells of such
a role are read from a copy of the map with multiplied rows, which comes last in the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor
from torch.nn.functional import embedding_bag

from analysis.encoders.tap import Attention

Matrix = Float[np.ndarray, "token token"]


@dataclass(frozen=True)
class Columns:
    """Marked tokens for groups of rows: the sum of the outer products of `rows` and `columns`."""

    rows: Float[np.ndarray, "group token"]
    columns: Float[np.ndarray, "group token"]

    def matrix(self) -> Matrix:
        """The full T x T weights."""
        return (self.rows.T @ self.columns).astype(np.float32)

    @cached_property
    def units(self) -> int:
        """The number of tokens whose row has weights."""
        return int(np.count_nonzero(self.rows[0] if len(self.rows) == 1 else self.rows.any(axis=0)))


@dataclass(frozen=True)
class Cells:
    """Single cells of the T x T weights by row and column; a cell that is named twice counts twice."""

    rows: Int[np.ndarray, " cell"]
    columns: Int[np.ndarray, " cell"]
    weights: Float[np.ndarray, " cell"]
    length: int

    @classmethod
    def of(cls, matrix: Float[np.ndarray, "token token"]) -> "Cells":
        """The weights of a matrix that are not 0."""
        rows, columns = np.nonzero(matrix)
        return cls(rows, columns, matrix[rows, columns].astype(np.float32), len(matrix))

    def matrix(self) -> Matrix:
        """The full T x T weights."""
        full = np.zeros((self.length, self.length), np.float32)
        np.add.at(full, (self.rows, self.columns), self.weights)
        return full

    @cached_property
    def units(self) -> int:
        """The number of tokens whose row has weights."""
        return len(np.unique(self.rows))


Form = Columns | Cells


class Ranges(NamedTuple):
    """Pairs of words of one role in many sequences: the sequence of each, its first row, the one after the last, and
    the same of the columns."""

    sequences: Int[np.ndarray, " rectangle"]
    ranges: Int[np.ndarray, "rectangle 4"]

    def cells(self) -> tuple[np.ndarray, ...]:
        """Sequence, row, column and weight of every cell; the weights of each sequence have the sum 1.

        All pairs of a sequence have equal weights, and so have the cells of each pair.
        """
        row, row_end, column, column_end = self.ranges.T
        widths = column_end - column
        sizes = (row_end - row) * widths
        pair = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(pair)) - (np.cumsum(sizes) - sizes)[pair]
        down, across = np.divmod(place, widths[pair])
        weights = 1 / (sizes * np.bincount(self.sequences)[self.sequences])
        return self.sequences[pair], row[pair] + down, column[pair] + across, weights[pair].astype(np.float32)


Scores = Float[Tensor, "batch role head"]
BAG = 64  # cells that are summed at once: longer sums double the rounding error
AT_ONCE = 2**18  # cells of maps whose logarithms fit in the cache


class Placed(NamedTuple):
    """The form of one role in one sequence, and whether entropies multiply its rows."""

    sequence: int
    role: int
    form: Form
    entropy: bool


class Groups(NamedTuple):
    """Weighted rows of each sequence's map, whose sums are added below it, and the tokens that roles mark in them."""

    rows: Float32[np.ndarray, "batch group token"]
    entropy: Bool[np.ndarray, " group"]  # whether entropies multiply the weights of the rows
    columns: Float32[np.ndarray, "batch role group token"]


class Entries(NamedTuple):
    """Cells of the tables of a batch, with the role that reads each and its weight."""

    sequence: Int[np.ndarray, " cell"]
    role: Int[np.ndarray, " cell"]
    row: Int[np.ndarray, " cell"]
    column: Int[np.ndarray, " cell"]
    weight: Float32[np.ndarray, " cell"]


class Contraction:
    """The sieves of one padded batch; called with the attention of a layer, it gives sum(sieve * map).

    The result has every sequence, role and head; padding and absent roles give 0. `forms[i][j]` is the sieve of
    sequence i and role j, if the role is present; `ranges[j]` are the word pairs of a role in all sequences. For roles
    marked in `entropy`, every row of a map is multiplied by its entropy (nats), or by `entropies` if they are given.
    """

    def __init__(
        self,
        forms: Sequence[Mapping[int, Form]],
        entropy: Sequence[bool],
        length: int,
        device: torch.device | str = "cpu",
        ranges: Mapping[int, Ranges] = MappingProxyType({}),
    ):
        batch, roles = self.shape = (len(forms), len(entropy))
        placed = [
            Placed(sequence, role, form, bool(entropy[role]))
            for sequence, by_role in enumerate(forms)
            for role, form in by_role.items()
        ]
        cells = [sieve for sieve in placed if isinstance(sieve.form, Cells)]
        groups = _groups([sieve for sieve in placed if isinstance(sieve.form, Columns)], batch, roles, length)
        self.copied = any(sieve.entropy for sieve in cells)
        self.entropy = self.copied or bool(groups.entropy.any())
        copy = length + groups.rows.shape[1]  # the row at which the copy of the map starts
        parts = [_of_groups(groups, length), _of_cells(cells, copy)]
        parts += [_of_ranges(role, pairs) for role, pairs in ranges.items()]
        entries = Entries(*(np.concatenate(part) for part in zip(*parts, strict=True)))

        table = (batch, copy + length * self.copied, length)
        cell = np.ravel_multi_index((entries.sequence, entries.row, entries.column), table)
        sieve = np.ravel_multi_index((entries.sequence, entries.role), self.shape)
        order = np.argsort(sieve, kind="stable")
        sieve = sieve[order]
        place_in_sieve = np.arange(len(sieve)) - np.searchsorted(sieve, sieve)
        bags = np.flatnonzero(place_in_sieve % BAG == 0)
        arrays = {
            "rows": groups.rows,
            "weighed": groups.entropy,
            "cells": cell[order],
            "weights": entries.weight[order],
            "bags": bags,
            "sieves": sieve[bags],
        }
        self.arrays = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}

    def __call__(
        self, attention: Attention, entropies: Float[Tensor, "batch head row"] | None = None
    ) -> Scores:
        arrays, heads = self.arrays, attention.shape[1]
        if entropies is None and self.entropy:
            entropies = row_entropies(attention)
        parts = [attention]
        if len(arrays["weighed"]):
            rows = arrays["rows"].to(attention.dtype)[:, None]
            if self.entropy:
                rows = torch.where(arrays["weighed"][:, None], rows * entropies[..., None, :], rows)
            parts.append(torch.matmul(rows, attention))
        if self.copied:
            parts.append(attention * entropies[..., None])
        table = torch.cat(parts, dim=2).permute(0, 2, 3, 1).reshape(-1, heads)
        weights = arrays["weights"].to(attention.dtype)
        sums = embedding_bag(arrays["cells"], table, arrays["bags"], mode="sum", per_sample_weights=weights)
        result = attention.new_zeros(self.shape[0] * self.shape[1], heads)
        return result.index_add_(0, arrays["sieves"], sums).reshape(*self.shape, heads)


def row_entropies(attention: Float[Tensor, "batch head row token"]) -> Float[Tensor, "batch head row"]:
    """The entropy of every row of attention (nats)."""
    maps_at_once = max(1, AT_ONCE // max(1, attention.shape[2] * attention.shape[3]))
    entropies = []
    for maps in attention.flatten(0, 1).split(maps_at_once):
        # torch.special.entr gives the same in twice the time: its logarithm is not vectorised.
        logarithms = maps.clamp_min(torch.finfo(maps.dtype).tiny).log_()
        entropies.append(-logarithms.mul_(maps).sum(-1))
    return torch.cat(entropies).reshape(attention.shape[:3])


def _groups(placed: Sequence[Placed], batch: int, roles: int, length: int) -> Groups:
    """The groups of all `Columns`; those with entropies come last. Roles of a sequence share equal groups."""
    counts = {False: [0] * batch, True: [0] * batch}  # groups of each sequence, without and with entropies
    firsts: dict[tuple[int, bool, bytes], int] = {}
    for sequence, _, form, entropy in placed:
        key = sequence, entropy, form.rows.tobytes()
        if key not in firsts:
            firsts[key] = counts[entropy][sequence]
            counts[entropy][sequence] += len(form.rows)
    plain, weighed = (max(counts[entropy], default=0) for entropy in (False, True))
    rows = np.zeros((batch, plain + weighed, length), np.float32)
    columns = np.zeros((batch, roles, plain + weighed, length), np.float32)
    for sequence, role, form, entropy in placed:
        first = firsts[sequence, entropy, form.rows.tobytes()] + plain * entropy
        groups, tokens = form.rows.shape
        rows[sequence, first : first + groups, :tokens] = form.rows
        columns[sequence, role, first : first + groups, :tokens] = form.columns
    return Groups(rows, np.arange(plain + weighed) >= plain, columns)


def _of_groups(groups: Groups, length: int) -> Entries:
    """The marked tokens of each role, in the rows that are added below the map."""
    sequence, role, group, column = marked = np.nonzero(groups.columns)
    return Entries(sequence, role, length + group, column, groups.columns[marked])


def _of_cells(placed: Sequence[Placed], copy: int) -> Entries:
    """The cells of each role in the map or, with entropies, in its copy, which starts at the row `copy`."""
    sizes = [len(sieve.form.weights) for sieve in placed]
    none: Int[np.ndarray, " cell"] = np.zeros(0, int)
    return Entries(
        np.repeat([sieve.sequence for sieve in placed], sizes).astype(int),
        np.repeat([sieve.role for sieve in placed], sizes).astype(int),
        np.concatenate([none, *(sieve.form.rows + copy * sieve.entropy for sieve in placed)]),
        np.concatenate([none, *(sieve.form.columns for sieve in placed)]),
        np.concatenate([none.astype(np.float32), *(sieve.form.weights for sieve in placed)]).astype(
            np.float32
        ),
    )


def _of_ranges(role: int, pairs: Ranges) -> Entries:
    """The cells of the word pairs of one role."""
    sequence, row, column, weight = pairs.cells()
    return Entries(sequence, np.full(len(sequence), role), row, column, weight)
