from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from oracles import random_maps
from scipy.spatial.distance import pdist, squareform

from analysis.papers.clark2019 import distances
from analysis.papers.clark2019.distances import behaviours, block_distances, embed, pairwise


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Jensen-Shannon divergence (nats) of two rows, smoothed as in the authors' code."""
    p, q = (0.999 * row + 0.001 / len(row) for row in (p, q))
    m = (p + q) / 2
    return 0.5 * sum(p * np.log(p / m)) + 0.5 * sum(q * np.log(q / m))


def table_of(square: np.ndarray, layers: int) -> pd.DataFrame:
    places = list(np.ndindex(layers, len(square) // layers))
    pairs = [(*places[i], *places[j], square[i, j]) for i, j in combinations(range(len(places)), 2)]
    return pd.DataFrame(pairs, columns=["layer", "head", "other_layer", "other_head", "distance"])


@pytest.mark.parametrize("cached", [1, 2**18])
def test_equal_loops_over_the_definition(cached: int, monkeypatch):
    monkeypatch.setattr(distances, "CACHED", cached)
    maps = random_maps(9, heads=5)
    maps[3] = np.eye(9)
    maps[4] = maps[0]
    expected = np.array([[sum(map(divergence, one, other)) for other in maps] for one in maps])
    double = pairwise(torch.from_numpy(maps)).numpy()
    np.testing.assert_allclose(double, expected, rtol=1e-9, atol=1e-12)
    single = pairwise(torch.from_numpy(maps).float()).numpy()
    np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-4)
    assert single.min() == 0  # never below, also for equal maps


def test_scaling_recovers_points_of_a_plane():
    square = squareform(pdist(np.random.default_rng(1).random((12, 2))))
    places, stress = embed(table_of(1000 * square, layers=4))
    assert stress < 0.01
    assert places[["layer", "head"]].values.tolist() == [[i, j] for i in range(4) for j in range(3)]
    assert np.corrcoef(pdist(places[["x", "y"]]), squareform(square))[0, 1] > 0.999


def test_later_rules_override_earlier_ones():
    heads = {
        "next token": [0.9, 0.0, 1.0, 0.0, 0.0, 0.0],
        "previous token": [0.9, 0.6, 1.0, 0.0, 0.0, 0.0],
        "broad": [0.1, 0.1, 3.9, 0.0, 0.0, 0.0],
        "[SEP]": [0.1, 0.1, 3.9, 0.7, 0.7, 0.0],
        "other": [0.5, 0.5, 3.8, 0.6, 0.6, 0.6],
    }
    table = pd.DataFrame([*heads.values()], columns="next previous entropy cls sep punct".split())
    assert behaviours(table).tolist() == [*heads]


def test_planted_layers_lie_apart_and_random_layers_do_not():
    rng = np.random.default_rng(0)
    points = np.repeat(np.arange(4), 5)[:, None] * 1.0 + rng.normal(0, 0.3, (20, 2))
    square = squareform(pdist(points))
    blocks = block_distances([(table_of(square, layers=4), 10), (table_of(2 * square, layers=4), 10)])
    same = np.kron(np.eye(4), np.ones((5, 5))) > 0
    gap = (square[~same].mean() - square[same & ~np.eye(20, dtype=bool)].mean()) / 10
    assert blocks["gap"].tolist() == pytest.approx([gap, 2 * gap])
    assert (blocks["shuffled"].abs() < gap / 10).all()
