"""Two compact forms of sieves, since most of the T x T weights are zero or repeat.

A head's score is the sum of weights times attention. `Columns` needs the attention that groups of rows give to marked
tokens; any other sieve is a list of `Cells`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

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
