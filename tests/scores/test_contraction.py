"""The contraction of compact forms equals the sum of written-out sieve times map, cell by cell."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from oracles import entropy, random_maps

from analysis.scores.contraction import Contraction
from analysis.scores.forms import Band, Columns, Form, Full, Ranges, Rectangles

LENGTHS, HEADS = (7, 4, 1), 3


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """The other tests run on one thread; here, sums on several threads must not disturb each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def columns(length: int, random: np.random.Generator) -> Columns:
    groups = random.integers(1, 3)
    return Columns(*random.random((2, groups, length), np.float32))


def band(length: int, random: np.random.Generator) -> Band:
    steps = tuple(range(-9, 10, random.integers(1, 4)))
    positions = np.arange(length)[:, None] + np.array(steps)
    inside = (positions >= 0) & (positions < length)
    return Band(random.random(inside.shape, np.float32) * inside, steps)


def rectangles(length: int, random: np.random.Generator) -> Rectangles:
    starts = random.integers(0, length, (4, 2))
    ends = np.minimum(starts + random.integers(1, 4, (4, 2)), length)
    return Rectangles(np.stack([starts, ends], axis=2).reshape(4, 4), length)


def full(length: int, random: np.random.Generator) -> Full:
    return Full(random.random((length, length), np.float32))


KINDS = [columns, band, rectangles, full]


def loops(forms: list[dict[int, Form]], weighs: list[bool], maps: np.ndarray) -> np.ndarray:
    result = np.zeros((len(forms), len(weighs), HEADS))
    for i, length in enumerate(LENGTHS):
        for j, form in forms[i].items():
            for head in range(HEADS):
                seen = maps[i, head, :length, :length]
                factors = [entropy(row) if weighs[j] else 1 for row in seen]
                result[i, j, head] = (form.matrix() * np.array(factors)[:, None] * seen).sum()
    return result


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), KINDS, [*KINDS, *reversed(KINDS)]])
@pytest.mark.parametrize("entropy_of", [(False,), (True,), (False, True, True)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["compiled", "any device"])
def test_every_form_equals_loops(kinds: list, entropy_of: tuple[bool, ...], dtype: torch.dtype):
    random = np.random.default_rng(len(kinds))
    weighs = [entropy_of[j % len(entropy_of)] for j in range(len(kinds))]
    forms = [
        {j: kind(length, random) for j, kind in enumerate(kinds) if random.random() < 0.8}
        for length in LENGTHS
    ]
    maps = random_maps(max(LENGTHS), HEADS * len(LENGTHS)).reshape(len(LENGTHS), HEADS, max(LENGTHS), -1)
    for i, length in enumerate(LENGTHS):
        maps[i, :, :length, length:] = 0
        maps[i, :, :length] /= maps[i, :, :length].sum(-1, keepdims=True)
    found = Contraction(forms, weighs, max(LENGTHS))(torch.from_numpy(maps).to(dtype))
    np.testing.assert_allclose(found, loops(forms, weighs, maps), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["compiled", "any device"])
def test_rectangles_of_all_sequences_together_equal_those_of_each(dtype: torch.dtype):
    random = np.random.default_rng(0)
    forms = [{0: columns(length, random), 1: rectangles(length, random)} for length in LENGTHS]
    forms[1][2] = rectangles(LENGTHS[1], random)
    together = {
        role: Ranges(
            np.repeat(range(len(forms)), [len(row[role].ranges) if role in row else 0 for row in forms]),
            np.concatenate([row[role].ranges for row in forms if role in row]),
        )
        for role in (1, 2)
    }
    maps = torch.from_numpy(random_maps(max(LENGTHS), HEADS * len(LENGTHS))).to(dtype)
    maps = maps.reshape(len(LENGTHS), HEADS, max(LENGTHS), -1)
    alone = Contraction(forms, [False] * 3, max(LENGTHS))(maps)
    others = [{0: row[0]} for row in forms]
    found = Contraction(others, [False] * 3, max(LENGTHS), ranges=together)(maps)
    np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["compiled", "any device"])
def test_entropies_that_are_given_take_the_place_of_the_rows_own(dtype: torch.dtype):
    """And touch no role that is not weighed by entropy."""
    random = np.random.default_rng(3)
    kinds, weighs = [columns, full, columns, full], [True, True, False, False]
    forms = [{j: kind(length, random) for j, kind in enumerate(kinds)} for length in LENGTHS]
    size = max(LENGTHS)
    maps = random_maps(size, HEADS * len(LENGTHS)).reshape(len(LENGTHS), HEADS, size, size)
    given = random.random((len(LENGTHS), HEADS, size), np.float32)
    expected = np.zeros((len(LENGTHS), len(kinds), HEADS))
    for i, length in enumerate(LENGTHS):
        for j, head in np.ndindex(expected.shape[1:]):
            for row in range(length):
                factor = given[i, head, row] if weighs[j] else 1
                expected[i, j, head] += factor * forms[i][j].matrix()[row] @ maps[i, head, row, :length]
    contraction = Contraction(forms, weighs, size)
    found = contraction(torch.from_numpy(maps).to(dtype), torch.from_numpy(given).to(dtype))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
