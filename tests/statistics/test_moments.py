from functools import reduce
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from headtables import score_array

from analysis.statistics.moments import merge, moments, moments_table
from analysis.statistics.significance import Rule, published_table

ROLES = ["local", "nsubj", "constant", "absent", "once"]
LAYERS, HEADS = 2, 3


def scores(sequences: int = 200, arithmetic: str = "corrected") -> xr.DataArray:
    """Skewed scores; roles that some, one or no sequences have, and one whose scores are all the same."""
    generator = np.random.default_rng(0)
    shape = (sequences, len(ROLES), LAYERS, HEADS)
    values = generator.gamma(2, 1.5, shape).astype(np.float32)
    values[generator.random(sequences) < 0.4, 1] = np.nan
    values[:, 2] = np.float32(3.3)
    values[:, 3] = np.nan
    values[1:, 4] = np.nan
    return score_array(values, ROLES, arithmetic)


def parts(whole: xr.DataArray, *ends: int) -> list[xr.Dataset]:
    bounds = [0, *ends, whole.sizes["sequence"]]
    return [moments(whole.isel(sequence=slice(start, end))) for start, end in pairwise(bounds)]


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
@pytest.mark.parametrize("ends", [(), (1,), (0, 1, 50), (3, 3, 120, 199)])
def test_table_of_merged_parts_equals_the_table_of_all_scores(arithmetic: str, ends: tuple[int, ...]):
    whole = scores(arithmetic=arithmetic)
    result = moments_table(reduce(merge, parts(whole, *ends)), Rule(2.9))
    expected = published_table(whole, Rule(2.9))
    assert expected["assigned"].nunique(dropna=False) == 3
    pd.testing.assert_frame_equal(result[expected.columns], expected, rtol=1e-9, atol=1e-9)


def test_a_large_common_offset_and_large_counts_lose_no_digits():
    generator = np.random.default_rng(1)
    whole = scores(1).isel(sequence=[0] * 4000).copy()
    whole.values[:] = 1e3 + generator.random(whole.shape)  # float32: steps of 0.0001
    result = reduce(merge, parts(whole, *range(1000, 4000, 1000)))
    values = whole.values.astype(np.float64)
    np.testing.assert_allclose(result["m2"] / result["n"], values.var(axis=0), rtol=1e-9)
    doubled = reduce(merge, [result] * 2)
    for _ in range(20):  # 4000 * 2^21 sequences: products of counts pass 2^63
        doubled = merge(doubled, doubled)
    np.testing.assert_allclose(doubled["m2"] / doubled["n"], values.var(axis=0), rtol=1e-9)
