"""The contraction of compact forms equals the sum of written-out sieve times map, cell by cell."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from oracles import entropy, random_maps
from scipy import special

from analysis.scores.contraction import BAG, Contraction, row_entropies
from analysis.scores.forms import Cells, Columns, Form, Ranges

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


def cells(length: int, random: np.random.Generator) -> Cells:
    count = random.integers(1, 3 * BAG)  # more than one bag, and cells that are named twice
    return Cells(*random.integers(0, length, (2, count)), random.random(count, np.float32), length)


def full(length: int, random: np.random.Generator) -> Cells:
    return Cells.of(random.random((length, length), np.float32))


def ranges(length: int, random: np.random.Generator) -> np.ndarray:
    starts = random.integers(0, length, (4, 2))
    ends = np.minimum(starts + random.integers(1, 4, (4, 2)), length)
    return np.stack([starts, ends], axis=2).reshape(4, 4)


KINDS = [columns, cells, full]


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
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
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


def test_word_pairs_of_all_sequences_together_equal_those_of_each():
    random = np.random.default_rng(0)
    pairs = [ranges(length, random) for length in LENGTHS]
    own = [Ranges(np.zeros(len(each), int), each) for each in pairs]
    together = Ranges(np.repeat(range(len(pairs)), [len(each) for each in pairs]), np.concatenate(pairs))
    maps = torch.from_numpy(random_maps(max(LENGTHS), HEADS * len(LENGTHS)))
    maps = maps.reshape(len(LENGTHS), HEADS, max(LENGTHS), -1)
    forms = [
        {0: columns(length, random), 1: Cells(*each.cells()[1:], length)}
        for length, each in zip(LENGTHS, own, strict=True)
    ]
    alone = Contraction(forms, [False] * 2, max(LENGTHS))(maps)
    others = [{0: row[0]} for row in forms]
    found = Contraction(others, [False] * 2, max(LENGTHS), ranges={1: together})(maps)
    np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)


def test_entropies_of_rows_equal_those_of_scipy():
    maps = torch.from_numpy(random_maps(9, 6)).reshape(2, 3, 9, 9)
    maps[0, 0, 0] = torch.eye(9)[0]
    expected = special.entr(maps.double().numpy()).sum(-1)
    np.testing.assert_allclose(row_entropies(maps), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
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
