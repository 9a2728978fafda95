"""Every compact form writes out the matrix it stands for."""

import numpy as np

from analysis.scores.forms import Band, Columns, Full, Rectangles


def test_columns_are_a_sum_of_outer_products():
    form = Columns(np.array([[0.5, 0, 0], [0, 0.25, 0]]), np.array([[0, 1.0, 0], [0, 0.5, 0.5]]))
    np.testing.assert_allclose(form.matrix(), [[0, 0.5, 0], [0, 0.125, 0.125], [0, 0, 0]])
    assert form.units == 2


def test_band_holds_neighbours_row_by_row():
    form = Band(np.array([[0, 0, 1], [2, 3, 0], [0, 0, 0.0]]), steps=(-1, 0, 2))
    np.testing.assert_allclose(form.matrix(), [[0, 0, 1], [2, 3, 0], [0, 0, 0]])
    assert form.units == 2


def test_rectangles_that_overlap_add_up():
    form = Rectangles(np.array([[0, 2, 1, 2], [0, 1, 1, 3]]), 3)
    np.testing.assert_allclose(form.matrix(), [[0, 0.5, 0.25], [0, 0.25, 0], [0, 0, 0]])
    assert form.units == 2


def test_full_is_itself():
    weights = np.diag([0.5, 0, 0.5])
    assert Full(weights).matrix() is weights
    assert Full(weights).units == 2
