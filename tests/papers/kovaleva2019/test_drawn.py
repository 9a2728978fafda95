"""Maps drawn by code have the pattern that they are drawn for."""

import numpy as np
import pytest
from layouts_by_hand import LAYOUTS, PAIR, SINGLE

from analysis.papers.kovaleva2019.labellers import band, blocks, columns, draw_map, draw_maps
from analysis.papers.kovaleva2019.names import BLOCK, PATTERNS


def test_rows_sum_to_one_and_a_seed_gives_the_same_maps():
    drawn, again, other = (draw_maps(LAYOUTS, 20, seed) for seed in (0, 0, 1))
    assert all(np.allclose(one.sum(axis=1), 1, atol=1e-5) and (one >= 0).all() for one in drawn.maps)
    assert all(np.array_equal(*pair) for pair in zip(drawn.maps, again.maps, strict=True))
    assert not all(np.array_equal(*pair) for pair in zip(drawn.maps, other.maps, strict=True))
    assert np.bincount(drawn.patterns).tolist() == [4] * len(PATTERNS)
    assert all(len(one) == len(layout) for one, layout in zip(drawn.maps, drawn.layouts, strict=True))


def test_blocks_are_of_pairs_alone():
    drawn = draw_maps(LAYOUTS, 20, 0)
    of = [
        layout
        for layout, pattern in zip(drawn.layouts, drawn.patterns, strict=True)
        if PATTERNS[pattern] == BLOCK
    ]
    assert all(layout is PAIR for layout in of)
    alone = draw_maps([SINGLE], 12, 0)
    assert PATTERNS.index(BLOCK) not in alone.patterns


def test_parts():
    rng = np.random.default_rng(0)
    assert ((columns(PAIR, rng) > 0).sum(axis=1) <= 7).all()
    attended = np.abs(band(PAIR, rng).argmax(axis=1) - np.arange(len(PAIR)))
    assert np.median(attended) <= 1
    inside = PAIR.sentence[:, None] == PAIR.sentence[None]
    assert blocks(PAIR, rng)[~inside].sum() == 0


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_pattern_is_drawn(pattern):
    one = draw_map(PAIR, pattern, np.random.default_rng(0))
    assert one.shape == (len(PAIR), len(PAIR))
