"""Ceilings and uniform heads against the sieves' own matrices."""

import numpy as np
import pytest
import xarray as xr
from layouts_by_hand import layout_of

from analysis.encoders.layout import Layout
from analysis.papers.pande2021.sensitivity import ceilings, uniform_head
from analysis.scores.sieves import SIEVES


def highest(role: str, one: Layout) -> float:
    """Score of a map that puts every row wherever its sieve is highest."""
    return len(one) * SIEVES[role].matrix(one, {}).max(axis=1).sum()


def composed(lengths: list[int], roles: list[str], separators=2, **attrs) -> xr.DataArray:
    """Constant scores of 2 layers x 3 heads."""
    coordinates = {
        "sequence": [f"s{row}" for row in range(len(lengths))],
        "role": roles,
        "layer": [0, 1],
        "head": [0, 1, 2],
        "tokens": ("sequence", np.array(lengths)),
        "separators": ("sequence", np.broadcast_to(separators, len(lengths))),
    }
    dimensions = ("sequence", "role", "layer", "head")
    return xr.DataArray(np.ones((len(lengths), len(roles), 2, 3)), coordinates, dimensions, attrs=attrs)


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_local_equals_the_matrix_of_the_sieve(arithmetic, width):
    layouts = [layout_of("", *lengths) for lengths in ((1,), (3,), (9,), (7, 7))]
    name = f"window_{width}" + "_published" * (arithmetic == "published")
    scores = composed([len(one) for one in layouts], ["local"], arithmetic=arithmetic)
    expected = [highest(name, one) for one in layouts]
    np.testing.assert_allclose(ceilings(scores, width)[:, 0], expected, rtol=1e-6)


def test_the_other_roles_equal_the_matrices_of_their_sieves():
    roles = ["cls", "sep", "delimiter", "block", "nsubj"]
    layouts = [layout_of("", length, length) for length in (4, 9, 30)]
    scores = composed([len(one) for one in layouts], roles)
    found = ceilings(scores, weighted_block=False)
    sources = {"block": "own_sentence"}
    for role in roles[:-1]:
        expected = [highest(sources.get(role, role), one) for one in layouts]
        np.testing.assert_allclose(found.sel(role=role), expected, rtol=1e-6)
    lengths = found.sel(role="nsubj")
    assert lengths.values.tolist() == [11, 21, 63]
    weighted = ceilings(scores).sel(role="block")
    np.testing.assert_allclose(weighted, found.sel(role="block") * np.log(lengths))


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_uniform_heads_score_the_sum_of_the_sieve(arithmetic):
    layouts = [layout_of("", length) for length in (4, 9, 30)]
    scores = composed(
        [len(one) for one in layouts], ["local", "cls", "block"], separators=1, arithmetic=arithmetic
    )
    scores[0, 2] = np.nan
    name = "window_2" + "_published" * (arithmetic == "published")
    found = uniform_head(scores)
    assert found.attrs == scores.attrs
    expected = [SIEVES[name].matrix(one, {}).sum() for one in layouts]
    np.testing.assert_allclose(found[:, 0, 1, 2], expected, rtol=1e-6)
    assert (found[:, 1] == 1).all()
    assert found[0, 2].isnull().all()
    np.testing.assert_allclose(found[1:, 2, 0, 0], np.log([len(one) for one in layouts[1:]]))
    assert (uniform_head(scores, weighted_block=False)[1:, 2] == 1).all()
