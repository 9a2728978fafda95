"""Compact forms of sieves, since most of the T x T weights are zero or repeat.

A head's score is the sum of weights times attention. `Columns` needs the attention to marked tokens, `Band` a few
diagonals, `Rectangles` the cells of word pairs; any other sieve is a full matrix.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

Matrix = Float[np.ndarray, "token token"]


class Cells(NamedTuple):
    """Single cells: the rectangle of each, its row and column, and its weight."""

    rectangle: Int[np.ndarray, " cell"]
    rows: Int[np.ndarray, " cell"]
    columns: Int[np.ndarray, " cell"]
    weights: Float[np.ndarray, " cell"]


def cells(ranges: Int[np.ndarray, "rectangle 4"]) -> Cells:
    """All cells of some rectangles; the cells of each rectangle have equal weights with the sum 1."""
    row, row_end, column, column_end = ranges.T
    widths = column_end - column
    sizes = (row_end - row) * widths
    rectangle = np.repeat(np.arange(len(ranges)), sizes)
    place = np.arange(len(rectangle)) - (np.cumsum(sizes) - sizes)[rectangle]
    down, across = np.divmod(place, widths[rectangle])
    return Cells(rectangle, row[rectangle] + down, column[rectangle] + across, 1 / sizes[rectangle])


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
class Band:
    """Neighbours: `weights[t, k]` is for token t and the one `steps[k]` positions after it, 0 if there is none."""

    weights: Float[np.ndarray, "token diagonal"]
    steps: tuple[int, ...]

    def matrix(self) -> Matrix:
        """The full T x T weights."""
        length = len(self.weights)
        full = np.zeros((length, length), np.float32)
        rows, diagonals = np.nonzero(self.weights)
        full[rows, rows + np.array(self.steps)[diagonals]] = self.weights[rows, diagonals]
        return full

    @cached_property
    def units(self) -> int:
        """The number of tokens whose row has weights."""
        return int(np.count_nonzero(self.weights.any(axis=1)))


@dataclass(frozen=True)
class Rectangles:
    """Pairs of words: `ranges[k]` holds the first row, the one after the last, and the same of the columns.

    All rectangles have equal weights, and so have the cells of each; `length` is the number of tokens.
    """

    ranges: Int[np.ndarray, "rectangle 4"]
    length: int

    def matrix(self) -> Matrix:
        """The full T x T weights."""
        full = np.zeros((self.length, self.length), np.float32)
        rectangle, rows, columns, weights = cells(self.ranges)
        np.add.at(full, (rows, columns), weights / len(self.ranges))
        return full

    @cached_property
    def units(self) -> int:
        """The number of tokens whose row has weights."""
        return len(np.unique(cells(self.ranges).rows))


class Ranges(NamedTuple):
    """The rectangles of one role in many sequences (see `Rectangles`), and the sequence of each."""

    sequences: Int[np.ndarray, " rectangle"]
    ranges: Int[np.ndarray, "rectangle 4"]


@dataclass(frozen=True)
class Full:
    """Any weights."""

    weights: np.ndarray

    def matrix(self) -> Matrix:
        """The full T x T weights."""
        return self.weights

    @cached_property
    def units(self) -> int:
        """The number of tokens whose row has weights."""
        return int(np.count_nonzero(self.weights.any(axis=1)))


Form = Columns | Band | Rectangles | Full
