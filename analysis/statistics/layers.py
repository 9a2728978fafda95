"""Regions of an encoder by relative depth, so that a claim about 12 layers applies to any number of them."""

from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int, Shaped

BLOCKS = 10  # of the sequences of a streaming pass

MIDDLE = (Fraction(5, 12), Fraction(10, 12))  # layers 5-9 of 12
INITIAL = (Fraction(0), Fraction(1, 3))
FIRST_HALF = (Fraction(0), Fraction(1, 2))
LAST_HALF = (Fraction(1, 2), Fraction(1))
FIRST_THIRD = (Fraction(0), Fraction(1, 3))
MIDDLE_THIRD = (Fraction(1, 3), Fraction(2, 3))
LAST_THIRD = (Fraction(2, 3), Fraction(1))
LAST_SIXTH = (Fraction(5, 6), Fraction(1))  # the last two layers of 12


def layers_within(depth: int, region: tuple[Fraction, Fraction]) -> list[int]:
    """The layers whose relative depth lies in [start, stop); always at least one."""
    start, stop = (bound * depth for bound in region)
    return [layer for layer in range(depth) if start <= layer < stop] or [int(start)]


def blocks_of(count: int) -> Int[np.ndarray, " sequence"]:
    """The block of every sequence of a streaming pass, which keeps a mean for each block instead of one for all."""
    return np.arange(count) % min(BLOCKS, count)


def cross_fitted(
    values: Shaped[np.ndarray, " case *place"],
    first_half: Bool[np.ndarray, " case"] | None = None,
    scored: Shaped[np.ndarray, " case *place"] | None = None,
) -> Shaped[np.ndarray, " case"]:
    """Of every case the value at the place (a head) that is best in the half without the case.

    Each half chooses a place by the means of `values` for the other half, of equally good places the first. The result
    is read from `scored`, the values on another map, or else from `values`. Without `first_half`, every other case.
    """
    first_half = np.arange(len(values)) % 2 == 0 if first_half is None else first_half
    scored = values if scored is None else scored
    result = np.empty(len(values), scored.dtype)
    for chosen_on in (first_half, ~first_half):
        means = values[chosen_on].mean(axis=0)
        result[~chosen_on] = scored[(~chosen_on, *np.unravel_index(means.argmax(), means.shape))]
    return result
