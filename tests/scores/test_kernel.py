"""The compiled sums: the logarithm, entropies, what damaged weights give, and threads (the sums: test_contraction)."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from numba.core import caching
from oracles import entropy, random_maps

from analysis.files import ROOT
from analysis.scores import kernel
from analysis.scores.contraction import Contraction
from analysis.scores.forms import Columns


@pytest.mark.parametrize("size", [1, 49, 64, 130])
def test_row_entropies_equal_loops(size: int):
    attention = random_maps(size, heads=1)[0].astype(np.float32)
    expected = [entropy(row) for row in attention]
    np.testing.assert_allclose(kernel.row_entropies(attention), expected, rtol=1e-6, atol=1e-6)


def test_logarithm_is_about_as_exact_as_float32():
    values = np.geomspace(2.0**-126, 1, 100_001).astype(np.float32)
    products = np.empty_like(values)
    kernel.multiply_logarithms(values, products)
    expected = values.astype(float) * np.log2(values.astype(float))
    np.testing.assert_allclose(products, expected, rtol=2e-6)


def test_entropy_of_one_token_alone_is_zero():
    """Zeros, which have no logarithm, and the smallest numbers of float32 add nothing."""
    row = np.zeros((1, 20), np.float32)
    row[0, 3], row[0, 5] = 1, 1e-44
    np.testing.assert_allclose(kernel.row_entropies(row), [0], atol=1e-30)


@pytest.mark.parametrize("damage", [np.nan, np.inf])
def test_damage_is_not_hidden(damage: float):
    attention = torch.full((1, 2, 4, 4), 0.25)
    attention[0, 1, 2, 3] = damage
    sieve = Columns(np.full((1, 4), 0.25, np.float32), np.full((1, 4), 0.25, np.float32))
    scores = Contraction([{0: sieve, 1: sieve}], [False, True], 4)(attention)
    assert torch.isfinite(scores).tolist() == [[[True, False], [True, False]]]


THREADS = """
import numba, torch
from analysis.scores.contraction import Contraction
Contraction([{}], [False], 4)(torch.full((1, 2, 4, 4), 0.25))
print(numba.get_num_threads(), torch.get_num_threads())
"""


def test_as_many_threads_as_torch_uses():
    """In a separate process: numba's start would also give torch a thread for every core."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, "-c", THREADS]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "1"]


def double(values):
    for place in numba.prange(len(values)):
        values[place] *= 2


def test_read_only_folders_take_no_machine_code(monkeypatch: pytest.MonkeyPatch):
    """For example the source tree and the user's cache folder."""
    monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", refuse(errno.EROFS))
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(double, cache=True)
    values = np.array([1.0, 3.0])
    kernel.compiled(double)(values)
    assert values.tolist() == [2, 6]


def test_full_disk_takes_no_machine_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The sums are made once all the same."""
    tries = []
    monkeypatch.setattr(caching.IndexDataCacheFile, "save", refuse(errno.ENOSPC, tries))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    values = np.array([1.0, 3.0])
    kernel.compiled(double)(values)
    assert values.tolist() == [2, 6]
    assert len(tries) == 1


def refuse(number: int, tries: list | None = None) -> Callable:
    """The system's answer to every attempt to write a file."""

    def fail(*_: object) -> None:
        if tries is not None:
            tries.append(number)
        raise OSError(number, os.strerror(number))

    return fail
