"""Every compact form writes out the matrix it stands for."""

import numpy as np

from analysis.scores.forms import Cells, Columns, Ranges


def test_columns_are_a_sum_of_outer_products():
    form = Columns(np.array([[0.5, 0, 0], [0, 0.25, 0]]), np.array([[0, 1.0, 0], [0, 0.5, 0.5]]))
    np.testing.assert_allclose(form.matrix(), [[0, 0.5, 0], [0, 0.125, 0.125], [0, 0, 0]])
    assert form.units == 2


def test_cells_of_a_matrix_write_it_out_again():
    weights = np.array([[0, 0, 1], [2, 3, 0], [0, 0, 0.0]])
    form = Cells.of(weights)
    np.testing.assert_allclose(form.matrix(), weights)
    assert form.units == 2
    assert len(form.weights) == 3


def test_pairs_that_overlap_add_up():
    sequences, *cells = Ranges(np.array([0, 0]), np.array([[0, 2, 1, 2], [0, 1, 1, 3]])).cells()
    form = Cells(*cells, 3)
    np.testing.assert_allclose(form.matrix(), [[0, 0.5, 0.25], [0, 0.25, 0], [0, 0, 0]])
    assert form.units == 2
    assert (sequences == 0).all()


def test_pairs_of_each_sequence_weigh_one():
    sequences, _, _, weights = Ranges(
        np.array([0, 0, 1]), np.array([[0, 2, 1, 2], [0, 1, 1, 3], [1, 2, 0, 3]])
    ).cells()
    np.testing.assert_allclose(np.bincount(sequences, weights), [1, 1])
