"""Regions of an encoder by relative depth, so that a claim about 12 layers can be asked of any number."""

from fractions import Fraction

MIDDLE = (Fraction(5, 12), Fraction(10, 12))  # layers 5-9 of 12
INITIAL = (Fraction(0), Fraction(1, 3))
FIRST_HALF = (Fraction(0), Fraction(1, 2))
LAST_HALF = (Fraction(1, 2), Fraction(1))
LAST_THIRD = (Fraction(2, 3), Fraction(1))
LAST_SIXTH = (Fraction(5, 6), Fraction(1))  # the last two layers of 12


def layers_within(depth: int, region: tuple[Fraction, Fraction]) -> list[int]:
    """The layers whose relative depth lies in [start, stop); always at least one."""
    start, stop = (bound * depth for bound in region)
    return [layer for layer in range(depth) if start <= layer < stop] or [int(start)]
