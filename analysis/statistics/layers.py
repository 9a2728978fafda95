"""Regions of an encoder by relative depth, so that a claim about 12 layers applies to any number of them."""

from fractions import Fraction

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

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


def on_other_half(by_head: Float[np.ndarray, "block head"]) -> Float[np.ndarray, " block"]:
    """Of every block the value of the head that is best in the half of the blocks without it."""
    first = np.arange(len(by_head)) % 2 == 0
    best = {half: by_head[first == half].mean(axis=0).argmax() for half in (True, False)}
    return np.array([row[best[not half]] for row, half in zip(by_head, first, strict=True)])


def head_grid(table: pd.DataFrame, column: str) -> Float[np.ndarray, "layer head"]:
    """A column of a table with one row per head, as layers x heads; NaN if it is missing."""
    return table.pivot(index="layer", columns="head", values=column).to_numpy(float, na_value=np.nan)
