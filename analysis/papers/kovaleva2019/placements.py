"""Attention between two sets of tokens, compared with the same arrangement of tokens elsewhere in the text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num


class Placements(NamedTuple):
    """The token pairs (row, column) of a link, shifted to every position where they fit into the text.

    `original` is the number of the placement at which the link stands.
    """

    rows: Int[np.ndarray, "placement pair"]
    columns: Int[np.ndarray, "placement pair"]
    original: int


def placements(pairs: Sequence[tuple[int, int]], first: int, last: int) -> Placements:
    """All placements of these pairs among the tokens from `first` up to, but not including, `last`."""
    places = np.array(pairs)
    shifts = np.arange(first - places.min(), last - places.max())
    rows, columns = places.T[:, None] + shifts[:, None]
    return Placements(rows, columns, int(np.flatnonzero(shifts == 0)[0]))


class Scores(NamedTuple):
    """Attention to all placements of a link; `original` is the number of the link's own placement."""

    values: Float[np.ndarray, "placement *head"]
    original: int

    @property
    def link(self) -> Float[np.ndarray, "*head"]:
        """Attention to the link itself."""
        return self.values[self.original]

    @property
    def elsewhere(self) -> Float[np.ndarray, "*head"]:
        """The control: the mean over the other placements, or attention to the link if there is no other."""
        others = np.delete(self.values, self.original, axis=0)
        return others.mean(axis=0) if len(others) else self.link


def largest(attention: Num[np.ndarray, "*head token token"], places: Placements) -> Scores:
    """The largest attention of any of the pairs, for every placement (Kovaleva 2019, 4.2)."""
    values = attention[..., places.rows, places.columns].max(axis=-1)
    return Scores(np.moveaxis(values, -1, 0).astype(np.float64), places.original)
