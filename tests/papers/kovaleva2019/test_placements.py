"""Placements of a link are all its shifts that stay within the text."""

import numpy as np

from analysis.papers.kovaleva2019.placements import elsewhere, largest, placements


def test_placements_are_all_shifts_within_the_text():
    found = placements([(2, 5), (3, 5)], 1, 8)
    assert found.rows.tolist() == [[1, 2], [2, 3], [3, 4], [4, 5]]
    assert found.columns.tolist() == [[4, 4], [5, 5], [6, 6], [7, 7]]
    assert (found.rows[found.own].tolist(), found.columns[found.own].tolist()) == ([2, 3], [5, 5])


def test_largest_equals_a_loop():
    attention = np.random.default_rng(0).random((3, 9, 9))
    places = placements([(2, 6), (3, 6)], 1, 8)
    found = largest(attention, places)
    for number in range(len(places.rows)):
        pairs = [*zip(places.rows[number], places.columns[number], strict=True)]
        assert found[number].tolist() == [max(head[i, j] for i, j in pairs) for head in attention]
    others = np.delete(found, places.own, axis=0).mean(axis=0)
    assert elsewhere(found, places.own).tolist() == others.tolist()
