import numpy as np
import pandas as pd
import pytest
import torch

from analysis.encoders.layout import layouts
from analysis.encoders.models import load_encoder
from analysis.papers.kovaleva2019 import labellers
from analysis.papers.kovaleva2019.measures import BLOCK, BOTH, DIAGONAL, HETEROGENEOUS, PATTERNS, VERTICAL
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples


def batch_of(first: np.ndarray, second: np.ndarray) -> torch.Tensor:
    """A batch of two sequences with one head; rows of padding attend to the real tokens of the second."""
    batch = np.zeros((2, 1, len(first), len(first)), np.float32)
    batch[0, 0], batch[1, 0, : len(second), : len(second)] = first, second
    batch[1, 0, len(second) :, : len(second)] = 1 / len(second)
    return torch.from_numpy(batch)


def by_loops(one: np.ndarray, layout) -> list[float]:
    size = len(one)
    received = [sum(one[i][j] for i in range(size)) / size for j in range(size)]
    medians = [sorted(one[i][j] for i in range(size))[(size - 1) // 2] for j in range(size)]
    beside = []
    for offset in (-1, 0, 1):
        pairs = [(i, i + offset) for i in range(size) if 0 <= i + offset < size]
        beside.append(sum(one[i][j] - received[j] for i, j in pairs) / size)
    same = [(i, j) for i in range(size) for j in range(size) if layout.sentence[i] == layout.sentence[j]]
    inside = sum(one[i][j] - received[j] for i, j in same) / size if layout.sep.sum() > 1 else 0
    return [np.log(max(max(medians) * size, 0.1)), sum(beside), max(beside), inside]


def test_measures_equal_loops_whatever_the_padding(tiny):
    rng, texts = np.random.default_rng(0), ("The old cat saw a dog .", "It ran away from the red car .")
    sequences = layouts(tiny.tokenizer, [Example("pair", *texts), Example("single", texts[1])])
    maps = [rng.dirichlet(np.full(len(one), 0.5), len(one)).astype(np.float32) for one in sequences]
    values = labellers.map_measures(batch_of(*maps), sequences)
    assert values.shape == (2, 1, len(labellers.MEASURES))
    for number, layout in enumerate(sequences):
        assert values[number, 0].tolist() == pytest.approx(by_loops(maps[number], layout), abs=1e-5)


def test_the_first_rule_that_holds_decides():
    """Column, neighbours, nearest, inside; the rules are at most twelve, and some rule holds for any map."""
    values = [[2, 0, 0, 0], [2, 0.1, 0, 0], [0, 0, 0, 0.2], [0, 0, 0, 0], [1, 0.2, 0.2, 0], [0, 0.5, 0.5, 0]]
    patterns = [PATTERNS[number] for number in labellers.find_patterns(np.array(values))]
    assert patterns == [VERTICAL, BOTH, BLOCK, HETEROGENEOUS, BOTH, DIAGONAL]
    assert len(labellers.RULES) <= 12
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 4, 13)] * 4), axis=-1).reshape(-1, 4)
    table = pd.DataFrame(grid, columns=[*labellers.MEASURES])
    assert np.any([table.eval(condition) for condition in labellers.RULES["condition"]], axis=0).all()


def test_quality_by_hand(monkeypatch):
    monkeypatch.setattr(labellers, "find_patterns", lambda _: np.array([0, 1, 1]))
    maps = labellers.LabelledMaps(np.empty((3, 4)), np.array([0, 0, 1]))
    quality, confusion = labellers.quality_tables(maps)
    rows = quality.set_index("pattern")
    assert rows.loc[PATTERNS[0], ["precision", "recall", "n"]].tolist() == [1, 0.5, 2]
    assert rows.loc[PATTERNS[1], ["precision", "recall", "n"]].tolist() == [0.5, 1, 1]
    assert rows.loc[labellers.MACRO, "n"] == 3
    assert confusion.set_index(["pattern", "found"]).loc[(PATTERNS[0], PATTERNS[1]), "n"] == 1


def test_quality_on_maps_labelled_by_eye():
    """Golden values: the committed rules, the committed labels and the bundled encoder."""
    quality, confusion = labellers.quality_tables(labellers.eye_maps(load_encoder("minilm")))
    rows = quality.set_index("pattern")
    assert confusion["n"].sum() == rows.loc[labellers.MACRO, "n"] == 300
    assert rows.loc[labellers.MACRO, "f1"] == pytest.approx(0.64, abs=0.01)
    assert rows.loc[BLOCK, "precision"] == pytest.approx(0.17, abs=0.02)


def test_quality_on_maps_of_mpnet_labelled_by_eye():
    """Golden values: the committed rules and the committed labels; on this encoder the rules are right less often."""
    name, maps = labellers.labelled_maps("mpnet")
    rows = labellers.quality_tables(maps)[0].set_index("pattern")
    assert (name, rows.loc[labellers.MACRO, "n"]) == ("MPNet fine-tuned on MRPC", 150)
    assert rows.loc[labellers.MACRO, "f1"] == pytest.approx(0.35, abs=0.01)
    assert rows.loc[BLOCK, "precision"] == pytest.approx(0.08, abs=0.01)


def test_maps_to_label_come_in_the_order_of_a_seed_and_qualify_the_rules_of_their_encoder(
    tmp_path, monkeypatch
):
    encoder, examples = load_encoder("tiny"), load_examples("toy-mrpc", n=3)
    table = labellers.maps_to_label(encoder, examples, count=20, seed=1)
    again = labellers.maps_to_label(encoder, examples, count=20, seed=1)
    pd.testing.assert_frame_equal(table, again)
    assert not table.duplicated(["sequence", "layer", "head"]).any()
    monkeypatch.setattr(labellers, "FOLDER", tmp_path)
    table.assign(pattern=BLOCK).to_csv(tmp_path / "eye_labels-other.csv", index=False)
    name, maps = labellers.labelled_maps("other")
    assert (name, len(maps.values), {*maps.patterns}) == ("other", 20, {PATTERNS.index(BLOCK)})
    np.testing.assert_allclose(maps.values, table[[*labellers.MEASURES]])
