"""Random sets of heads, with which the effect of a set is compared."""

from collections.abc import Sequence
from fractions import Fraction
from math import comb, prod

import numpy as np

from analysis.errors import InputError
from analysis.roles import Head

# Of the heads of its layers that a set may have, to be compared with random sets.
LARGEST_SHARE = Fraction(2, 3)


def random_sets(
    heads: Sequence[Head], width: int, count: int, seed: int | Sequence[int] = 0
) -> list[tuple[Head, ...]]:
    """At most `count` other sets of as many heads (layer, head) from the same layers of `width` heads.

    Sets may share heads with the given one: only among all sets of its layers is a set that means nothing as likely as
    any other to have the largest effect. No sets if the heads are more than LARGEST_SHARE of their layers' heads, since
    all sets would then be nearly the same.
    """
    layers, sizes = np.unique([layer for layer, _ in heads], return_counts=True)
    if sizes.max(initial=0) > width:
        raise InputError(f"a set names {sizes.max()} heads of one layer: a layer has {width}")
    if not len(heads) or len(heads) > LARGEST_SHARE * width * len(layers):
        return []
    count = min(count, prod(comb(width, int(size)) for size in sizes) - 1)
    rng, tested = np.random.default_rng(seed), tuple(sorted(heads))
    sets: dict[tuple[Head, ...], None] = {}
    while len(sets) < count:
        by_layer = [np.sort(rng.permutation(width)[:size]).tolist() for size in sizes]
        other = tuple((int(layer), head) for layer, row in zip(layers, by_layer, strict=True) for head in row)
        if other != tested:
            sets[other] = None
    return [*sets]
