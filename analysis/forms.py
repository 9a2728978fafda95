"""Compact forms of sieves: most of their T x T weights are zero or repeat, so they are never written out.

A head's score is the sum of weights times attention. `Columns` needs the attention that falls on marked
tokens, `Band` a few diagonals, `Entries` single cells; whatever else a sieve may be is a full matrix.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

Matrix = Float[np.ndarray, "token token"]
REACH = 5  # diagonals that a band may use on each side of the main one


@dataclass(frozen=True)
class Columns:
    """Marked tokens for groups of rows: the sum of the outer products of `rows` and `columns`."""

    rows: Float[np.ndarray, "group token"]
    columns: Float[np.ndarray, "group token"]

    def matrix(self) -> Matrix:
        """The sieve written out."""
        return (self.rows.T @ self.columns).astype(np.float32)

    @cached_property
    def tokens(self) -> int:
        """Number of tokens that have a sieve."""
        return int(np.count_nonzero(self.rows.any(axis=0)))


@dataclass(frozen=True)
class Band:
    """Neighbours: `weights[t, k]` belongs to token t and the token k - REACH positions after it."""

    weights: Float[np.ndarray, "token diagonal"]

    def matrix(self) -> Matrix:
        """The sieve written out."""
        length = len(self.weights)
        full = np.zeros((length, length + 2 * REACH), np.float32)
        np.put_along_axis(full, np.arange(length)[:, None] + np.arange(2 * REACH + 1), self.weights, axis=1)
        return full[:, REACH : REACH + length]

    @cached_property
    def tokens(self) -> int:
        """Number of tokens that have a sieve."""
        return int(np.count_nonzero(self.weights.any(axis=1)))


@dataclass(frozen=True)
class Entries:
    """Single cells: `weights[k]` belongs to row `rows[k]` and column `columns[k]` of `length` tokens."""

    rows: Int[np.ndarray, " cell"]
    columns: Int[np.ndarray, " cell"]
    weights: Float[np.ndarray, " cell"]
    length: int

    def matrix(self) -> Matrix:
        """The sieve written out."""
        full = np.zeros((self.length, self.length), np.float32)
        np.add.at(full, (self.rows, self.columns), self.weights)
        return full

    @cached_property
    def tokens(self) -> int:
        """Number of tokens that have a sieve."""
        return len(np.unique(self.rows))


@dataclass(frozen=True)
class Full:
    """Any weights."""

    weights: np.ndarray

    def matrix(self) -> Matrix:
        """The sieve written out."""
        return self.weights

    @cached_property
    def tokens(self) -> int:
        """Number of tokens that have a sieve."""
        return int(np.count_nonzero(self.weights.any(axis=1)))


Form = Columns | Band | Entries | Full
