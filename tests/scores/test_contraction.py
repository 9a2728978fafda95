import numpy as np
import pytest
import torch
from oracles import entropy, random_maps

from analysis.scores.contraction import BAG, Cells, Columns, Contraction, Form

LENGTHS, HEADS = (7, 4, 1), 3


def test_the_example_in_the_docstring():
    rows = [[0.4, 0.1, 0.1, 0.4], [0.2, 0.2, 0.5, 0.1], [0.1, 0.6, 0.2, 0.1], [0.3, 0.1, 0.1, 0.5]]
    next_token = Cells(np.arange(3), np.arange(1, 4), np.full(3, 1 / 3, np.float32), 4)
    cls = Columns(np.full((1, 4), 1 / 4, np.float32), np.eye(1, 4, dtype=np.float32))
    contraction = Contraction([{0: next_token, 1: cls}], [False, False], 4)
    assert contraction.arrays["cells"].tolist() == [1, 6, 11, 16]
    sums = contraction(torch.tensor(rows)[None, None])
    np.testing.assert_allclose(sums[0, :, 0], [0.7 / 3, 0.25], rtol=1e-6)


def columns(length: int, random: np.random.Generator) -> Columns:
    groups = random.integers(1, 3)
    return Columns(*random.random((2, groups, length), np.float32))


def cells(length: int, random: np.random.Generator) -> Cells:
    count = random.integers(1, 3 * BAG)  # more than one bag, and cells that are named twice
    return Cells(*random.integers(0, length, (2, count)), random.random(count, np.float32), length)


def full(length: int, random: np.random.Generator) -> Cells:
    return Cells.of(random.random((length, length), np.float32))


KINDS = [columns, cells, full]


Forms = list[dict[int, Form]]


def loops(forms: Forms, weighs: list[bool], maps: np.ndarray, entropies: np.ndarray) -> np.ndarray:
    result = np.zeros((len(forms), len(weighs), HEADS))
    for i, length in enumerate(LENGTHS):
        for j, form in forms[i].items():
            for head in range(HEADS):
                factors = entropies[i, head, :length] if weighs[j] else np.ones(length)
                weighted = factors[:, None] * maps[i, head, :length, :length]
                result[i, j, head] = (form.matrix() * weighted).sum()
    return result


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), KINDS, [*KINDS, *reversed(KINDS)]])
@pytest.mark.parametrize("entropy_of", [(False,), (True,), (False, True, True)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
def test_every_form_equals_loops(kinds: list, entropy_of: tuple[bool, ...], dtype: torch.dtype):
    random = np.random.default_rng(len(kinds))
    weighs = [entropy_of[j % len(entropy_of)] for j in range(len(kinds))]
    numbered = [*enumerate(kinds)]
    forms = [{j: kind(size, random) for j, kind in numbered if random.random() < 0.8} for size in LENGTHS]
    maps = random_maps(max(LENGTHS), HEADS * len(LENGTHS)).reshape(len(LENGTHS), HEADS, max(LENGTHS), -1)
    for i, length in enumerate(LENGTHS):
        maps[i, :, :length, length:] = 0
        maps[i, :, :length] /= maps[i, :, :length].sum(-1, keepdims=True)
    measured = Contraction(forms, weighs, max(LENGTHS))(torch.from_numpy(maps).to(dtype))
    entropies = np.apply_along_axis(entropy, -1, maps)
    np.testing.assert_allclose(measured, loops(forms, weighs, maps, entropies), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
def test_entropies_that_are_given_take_the_place_of_the_rows_own(dtype: torch.dtype):
    random = np.random.default_rng(3)
    kinds, weighs = [columns, full, columns, full], [True, True, False, False]
    forms = [{j: kind(length, random) for j, kind in enumerate(kinds)} for length in LENGTHS]
    size = max(LENGTHS)
    maps = random_maps(size, HEADS * len(LENGTHS)).reshape(len(LENGTHS), HEADS, size, size)
    arguments = random.random((len(LENGTHS), HEADS, size), np.float32)
    contraction = Contraction(forms, weighs, size)
    measured = contraction(torch.from_numpy(maps).to(dtype), torch.from_numpy(arguments).to(dtype))
    np.testing.assert_allclose(measured, loops(forms, weighs, maps, arguments), rtol=1e-5, atol=1e-6)
