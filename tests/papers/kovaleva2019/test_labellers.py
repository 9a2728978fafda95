from types import SimpleNamespace

import numpy as np
import pytest
import torch
from layouts_by_hand import LAYOUTS, PAIR, SINGLE

from analysis.papers.kovaleva2019 import labellers
from analysis.papers.kovaleva2019.names import BLOCK, PATTERNS


@pytest.fixture(scope="module")
def drawn() -> labellers.LabelledMaps:
    return labellers.draw_maps(LAYOUTS, 150, 0)


def test_rows_sum_to_one_and_a_seed_gives_the_same_maps():
    drawn, again = (labellers.draw_maps(LAYOUTS, 20, 0) for _ in range(2))
    for one, other in zip(drawn.maps, again.maps, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one.sum(axis=1), 1, atol=1e-5)
    assert np.bincount(drawn.patterns).tolist() == [4] * len(PATTERNS)
    of_pairs = [layout is PAIR for layout in drawn.layouts]
    assert np.all(of_pairs, where=drawn.patterns == PATTERNS.index(BLOCK))
    assert PATTERNS.index(BLOCK) not in labellers.draw_maps([SINGLE], 12, 0).patterns


def padded(first: np.ndarray, second: np.ndarray) -> torch.Tensor:
    """A batch of two sequences with one head; rows of padding attend to the real tokens of the second."""
    batch = np.zeros((2, 1, len(first), len(first)), np.float32)
    batch[0, 0], batch[1, 0, : len(second), : len(second)] = first, second
    batch[1, 0, len(second) :, : len(second)] = 1 / len(second)
    return torch.from_numpy(batch)


def by_loops(one: np.ndarray, layout) -> list[float]:
    """MEASURES from their definitions."""
    size = len(one)
    received = [sum(one[i][j] for i in range(size)) / size for j in range(size)]
    special = sum(received[j] for j in range(size) if layout.cls[j] or layout.sep[j])
    medians = [sorted(one[i][j] for i in range(size))[(size - 1) // 2] for j in range(size)]
    beside = []
    for offset in (-1, 0, 1):
        pairs = [(i, i + offset) for i in range(size) if 0 <= i + offset < size]
        beside.append(sum(one[i][j] - received[j] for i, j in pairs) / size)
    same = [(i, j) for i in range(size) for j in range(size) if layout.sentence[i] == layout.sentence[j]]
    inside = sum(one[i][j] - received[j] for i, j in same) / size if layout.sep.sum() > 1 else 0
    entropy = np.mean([-sum(p * np.log(p) for p in row if p > 0) for row in one.tolist()]) / np.log(size)
    return [special, np.log(max(max(medians) * size, 0.1)), sum(beside), max(beside), inside, entropy]


def test_measures_equal_loops_whatever_the_padding():
    rng = np.random.default_rng(0)
    first, second = (
        rng.dirichlet(np.full(len(layout), 0.5), len(layout)).astype(np.float32) for layout in (PAIR, SINGLE)
    )
    values = labellers.measures(padded(first, second), [PAIR, SINGLE])
    assert values.shape == (2, 1, len(labellers.MEASURES))
    assert values[0, 0].tolist() == pytest.approx(by_loops(first, PAIR), abs=1e-5)
    assert values[1, 0].tolist() == pytest.approx(by_loops(second, SINGLE), abs=1e-5)


def test_rules_find_the_patterns_of_new_drawn_maps(drawn):
    rules = labellers.fit_rules(drawn)
    new = labellers.draw_maps(LAYOUTS, 100, 1)
    assert (rules.tree.predict(labellers.single_measures(new)) == new.patterns).mean() > 0.75
    assert rules.key != labellers.fit_rules(labellers.draw_maps(LAYOUTS, 60, 2)).key


def test_rules_of_single_texts_have_no_block():
    rules = labellers.fit_rules(labellers.draw_maps([SINGLE], 100, 1)).rules()
    assert f"class: {PATTERNS[0]}" in rules
    assert f"class: {labellers.BLOCK}" not in rules


def test_quality_by_hand():
    labelled = labellers.LabelledMaps(
        [np.eye(len(SINGLE), dtype=np.float32)] * 3, [SINGLE] * 3, np.array([0, 0, 1])
    )
    labeller = labellers.Labeller(SimpleNamespace(predict=lambda _: np.array([0, 1, 1])))
    quality, confusion = labellers.quality_tables(labeller, {"drawn": labelled})
    rows = quality.set_index("pattern")
    assert rows.loc[PATTERNS[0], ["precision", "recall", "n"]].tolist() == [1, 0.5, 2]
    assert rows.loc[PATTERNS[1], ["precision", "recall", "n"]].tolist() == [0.5, 1, 1]
    assert rows.loc[labellers.MACRO, "f1"] == pytest.approx(2 / 3)
    assert confusion.set_index(["pattern", "found"]).loc[(PATTERNS[0], PATTERNS[1]), "n"] == 1
