"""Ceilings against the sieves' own matrices, and the effect of length on planted heads."""

import numpy as np
import pytest
import xarray as xr

from analysis.encoders.layout import Layout
from analysis.papers.pande2021.sensitivity import ceilings, uniform_head
from analysis.scores.sieves import SIEVES


def layout(first: int, second: int = 0) -> Layout:
    """[CLS] and word pieces of one or two texts, each ended by [SEP]."""
    text = np.array([-1, *[0] * first, -1, *([1] * second + [-1] if second else [])])
    sep = (text < 0) & (np.arange(len(text)) > 0)
    return Layout(
        id=f"{first}-{second}",
        tokens=("x",) * len(text),
        input_ids=np.zeros(len(text), int),
        type_ids=np.zeros(len(text), int),
        text=text,
        spans=np.zeros((len(text), 2), int),
        cls=np.arange(len(text)) == 0,
        sep=sep,
        punctuation=np.zeros(len(text), bool),
    )


def highest(role: str, one: Layout) -> float:
    """Score of a map that puts every row wherever its sieve is highest."""
    return len(one) * SIEVES[role].matrix(one, {}).max(axis=1).sum()


def composed(lengths: list[int], roles: list[str], values=1.0, separators=2, **attrs) -> xr.DataArray:
    """Constant scores, or those given per sequence and role, of 2 layers x 3 heads."""
    filled = np.broadcast_to(np.asarray(values, float), (len(lengths), len(roles)))[:, :, None, None]
    coordinates = {
        "sequence": [f"s{row}" for row in range(len(lengths))],
        "role": roles,
        "layer": [0, 1],
        "head": [0, 1, 2],
        "tokens": ("sequence", np.array(lengths)),
        "separators": ("sequence", np.broadcast_to(separators, len(lengths))),
    }
    dimensions = ("sequence", "role", "layer", "head")
    return xr.DataArray(np.tile(filled, (1, 1, 2, 3)), coordinates, dimensions, attrs=attrs)


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_local_equals_the_matrix_of_the_sieve(arithmetic, width):
    layouts = [layout(1), layout(3), layout(9), layout(7, 7)]
    name = f"window_{width}" + "_published" * (arithmetic == "published")
    scores = composed([len(one) for one in layouts], ["local"], arithmetic=arithmetic)
    expected = [highest(name, one) for one in layouts]
    np.testing.assert_allclose(ceilings(scores, width)[:, 0], expected, rtol=1e-6)


def test_the_other_roles_equal_the_matrices_of_their_sieves():
    roles = ["cls", "sep", "delimiter", "block", "nsubj"]
    layouts = [layout(4, 4), layout(9, 9), layout(30, 30)]
    found = ceilings(composed([len(one) for one in layouts], roles), weighted_block=False)
    sources = {"block": "own_sentence"}
    for role in roles[:-1]:
        expected = [highest(sources.get(role, role), one) for one in layouts]
        np.testing.assert_allclose(found.sel(role=role), expected, rtol=1e-6)
    assert found.sel(role="nsubj").values.tolist() == [11, 21, 63]


def test_block_without_entropy_hardly_passes_two_and_with_it_ln_t_times_that():
    scores = composed([63], ["block"])
    assert 2 < ceilings(scores, weighted_block=False).item() < 2.2
    assert ceilings(scores).item() == pytest.approx(
        ceilings(scores, weighted_block=False).item() * np.log(63)
    )


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_uniform_heads_score_the_sum_of_the_sieve(arithmetic):
    layouts = [layout(4), layout(9), layout(30)]
    scores = composed(
        [len(one) for one in layouts], ["local", "cls", "block"], separators=1, arithmetic=arithmetic
    )
    scores[0, 2] = np.nan
    name = "window_2" + "_published" * (arithmetic == "published")
    found = uniform_head(scores)
    assert found.dims == scores.dims
    assert found.attrs == scores.attrs
    expected = [SIEVES[name].matrix(one, {}).sum() for one in layouts]
    np.testing.assert_allclose(found[:, 0, 1, 2], expected, rtol=1e-6)
    assert (found[:, 1] == 1).all()
    assert found[0, 2].isnull().all()
    np.testing.assert_allclose(found[1:, 2, 0, 0], np.log([len(one) for one in layouts[1:]]))
    assert (uniform_head(scores, weighted_block=False)[1:, 2] == 1).all()
