"""Attention between two sets of tokens, compared with the same arrangement of tokens elsewhere in the text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num


class Placements(NamedTuple):
    """The token pairs of a link (row, column), at every position of the text where they fit with the same distances.

    `own` is the number of the link's own placement.
    """

    rows: Int[np.ndarray, "placement pair"]
    columns: Int[np.ndarray, "placement pair"]
    own: int


def placements(rows: Sequence[int], columns: Sequence[int], first: int, last: int) -> Placements:
    """All placements of these pairs among the tokens from `first` up to, but not including, `last`."""
    pairs = np.array([rows, columns])
    shifts = np.arange(first - pairs.min(), last - pairs.max())
    moved = pairs[:, None] + shifts[:, None]
    return Placements(moved[0], moved[1], int(np.flatnonzero(shifts == 0)[0]))


def every_pair(first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
    """Each token of one set with each token of the other."""
    return [one for one in first for _ in second], [other for _ in first for other in second]


def zipped(first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
    """The first token of one set with the first of the other, and so on, up to the shorter set (released code)."""
    length = min(len(first), len(second))
    return [*first[:length]], [*second[:length]]


def largest(
    attention: Num[np.ndarray, "head token token"], places: Placements
) -> Float[np.ndarray, "placement head"]:
    """The largest attention of any of the pairs, for every placement (Kovaleva 2019, 4.2)."""
    return attention[:, places.rows, places.columns].max(axis=-1).T.astype(np.float64)


def elsewhere(scores: Float[np.ndarray, "placement head"], own: int) -> Float[np.ndarray, " head"]:
    """The mean over the other placements; the link's own score if there is no other."""
    others = np.delete(scores, own, axis=0)
    return others.mean(axis=0) if len(others) else scores[own]
