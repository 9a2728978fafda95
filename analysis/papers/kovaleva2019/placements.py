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


def placements(pairs: Sequence[tuple[int, int]], first: int, last: int) -> Placements:
    """All placements of these pairs among the tokens from `first` up to, but not including, `last`."""
    places = np.array(pairs)
    shifts = np.arange(first - places.min(), last - places.max())
    rows, columns = places.T[:, None] + shifts[:, None]
    return Placements(rows, columns, int(np.flatnonzero(shifts == 0)[0]))


def largest(
    attention: Num[np.ndarray, "head token token"], places: Placements
) -> Float[np.ndarray, "placement head"]:
    """The largest attention of any of the pairs, for every placement (Kovaleva 2019, 4.2)."""
    return attention[:, places.rows, places.columns].max(axis=-1).T.astype(np.float64)


def elsewhere(scores: Float[np.ndarray, "placement ..."], own: int) -> Float[np.ndarray, "..."]:
    """The mean over the other placements; the link's own score if there is no other."""
    others = np.delete(scores, own, axis=0)
    return others.mean(axis=0) if len(others) else scores[own]
