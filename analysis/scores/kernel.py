"""The sums of `contraction` as compiled code for a CPU, which reads every map while it is in the cache of its core.

numba compiles them at the first call. It stores the machine code next to this module; if it cannot write there, in
the user's cache folder; if it cannot write there either, nowhere. NUMBA_CACHE_DIR names another folder.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np
from numba import njit, prange
from numpy.polynomial import Chebyshev, Polynomial

# Sums may change their order and use fused products; NaN stays NaN, so that damaged weights are found.
FLAGS = {"reassoc", "contract"}

# log2 x = exponent + log2(1 + m), where 1 + m lies between the roots of 1/2 and 2. A polynomial for log2(1 + m) / m is
# about as exact as float32. It has no branch, so that sixteen cells are computed at a time.
LOWEST = np.float32(np.sqrt(0.5))
SERIES = Chebyshev.interpolate(lambda m: np.log1p(m) / m / np.log(2), 6, [LOWEST - 1, 2 * LOWEST - 1])
C0, C1, C2, C3, C4, C5, C6 = SERIES.convert(kind=Polynomial).coef.astype(np.float32)
NATS = np.float32(np.log(2))  # of a bit
ONE = np.float32(1)
ROWS = 32  # of a map whose logarithms fit in the fastest cache
LOWEST_BITS, MANTISSA_BITS = LOWEST.view(np.int32), np.int32(23)


@njit(fastmath=FLAGS)
def logarithm(x):
    """The binary logarithm of a float32 from 2^-126 up, finite below."""
    bits = np.float32(x).view(np.int32)
    # Without the conversions numba computes in 64 bits, half as fast.
    exponent = np.int32(np.int32(bits - LOWEST_BITS) >> MANTISSA_BITS)
    m = np.int32(bits - np.int32(exponent << MANTISSA_BITS)).view(np.float32) - ONE
    series = C0 + m * (C1 + m * (C2 + m * (C3 + m * (C4 + m * (C5 + m * C6)))))
    return np.float32(exponent) + m * series


@njit(fastmath=FLAGS)
def multiply_logarithms(values, products):
    """Writes x log2 x of every value to `products`."""
    for k in range(len(values)):
        products[k] = values[k] * logarithm(values[k])


@njit(fastmath=FLAGS)
def row_entropies(attention):
    """The entropy (nats) of every row of one map."""
    tokens = len(attention)
    values, products = attention.reshape(-1), np.empty((ROWS, tokens), np.float32)
    entropies = np.empty(tokens, np.float32)
    # Several rows at a time, since the last cells of a single row would not fill a vector.
    for first in range(0, tokens, ROWS):
        count = min(ROWS, tokens - first)
        multiply_logarithms(values[first * tokens :][: count * tokens], products.reshape(-1))
        for row in range(count):
            total = np.float32(0)
            for column in range(tokens):
                total -= products[row, column]
            entropies[first + row] = total * NATS
    return entropies


@njit(fastmath=FLAGS)
def diagonals(attention, steps, found):
    """Copies the diagonals of one map: `found[k, t]` is the attention of token t to token t + `steps[k]`."""
    tokens = len(attention)
    flat = attention.reshape(-1)
    for k in range(len(steps)):
        first, last = max(0, -steps[k]), min(tokens, tokens - steps[k])
        if first < last:
            found[k, first:last] = flat[first * tokens + first + steps[k] :: tokens + 1][: last - first]


@njit
def add(result, roles, weights, found):
    """Adds the sums of weights (role, ...) times values (head, ...) to the scores of the roles."""
    scores = np.dot(weights.reshape(len(weights), -1), found.reshape(len(found), -1).T)
    for r in range(len(roles)):
        result[roles[r]] += scores[r]


def compiled(function: Callable) -> Callable:
    """A parallel function whose machine code is stored for later processes if a folder can be written."""
    try:
        fast = njit(function, parallel=True, fastmath=FLAGS, cache=True)
    except RuntimeError:  # every folder is read-only
        fast = njit(function, parallel=True, fastmath=FLAGS)

    @wraps(function)
    def call(*arguments):
        try:
            return fast(*arguments)
        except OSError:  # the disk is full: the machine code is compiled, but not stored, and did not run yet
            return fast(*arguments)

    return call


@compiled
def contract(attention, sieves, result, given):
    """Adds sum(sieve * map) of every sequence, role and head to `result` (see `contraction.Packed`).

    `given` holds entropies (batch, head, row) to use instead of those of the rows, or is empty.
    """
    batch, heads, tokens, _ = attention.shape
    groups, steps = len(sieves.weighed), len(sieves.steps)
    for b in prange(batch):
        received = np.empty((heads, groups, tokens), np.float32)
        neighbours = np.zeros((heads, steps, tokens), np.float32)
        for h in range(heads):
            one = attention[b, h]
            if given.size:
                entropies = given[b, h]
            else:
                entropies = row_entropies(one) if sieves.entropy else np.ones(tokens, np.float32)
            if groups:
                rows = sieves.rows[b].copy()
                for g in range(groups):
                    if sieves.weighed[g]:
                        rows[g] *= entropies
                np.dot(rows, one, received[h])
            diagonals(one, sieves.steps, neighbours[h])
            for k in range(sieves.starts[b], sieves.starts[b + 1]):
                value = one[sieves.cells[k, 0], sieves.cells[k, 1]]
                result[b, sieves.cell_roles[k], h] += sieves.shares[k] * value
            for r in range(len(sieves.full_roles)):
                for t in range(tokens):
                    value = np.dot(sieves.full[b, r, t], one[t])
                    result[b, sieves.full_roles[r], h] += value * (
                        entropies[t] if sieves.full_weighed[r] else ONE
                    )
        if groups:
            add(result[b], sieves.column_roles, sieves.columns[b], received)
        if steps:
            add(result[b], sieves.band_roles, sieves.bands[sieves.band_kinds[b]], neighbours)
