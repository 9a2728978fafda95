"""The figures after Clark 2019: what they draw, and that their axes have names."""

import numpy as np
import pandas as pd
import pytest
from drawing import unnamed
from matplotlib.collections import LineCollection

from analysis.papers.clark2019.distances import BEHAVIOURS, OTHER
from analysis.papers.clark2019.gradients import GROUPS
from analysis.papers.clark2019.published import surface_layers
from analysis.papers.clark2019.surface import COLUMNS
from analysis.papers.clark2019.surface_figures import (
    BEHAVIOUR_LOOKS,
    LOOKS,
    PANELS,
    entropy_layers,
    example_heads,
    gradient_layers,
    head_map,
    surface_patterns,
)

LAYERS, HEADS = 3, 4


@pytest.fixture
def table() -> pd.DataFrame:
    """A surface table of random values."""
    rng = np.random.default_rng(0)
    heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    values = {name: rng.random(len(heads)) * (3 if "entropy" in name else 1) for name in COLUMNS}
    return pd.DataFrame(heads, columns=["layer", "head"]).join(pd.DataFrame(values))


UNIFORM = pd.Series({name: 3.5 if "entropy" in name else 0.02 for name in COLUMNS})


def means(axes) -> list[np.ndarray]:
    return [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == LAYERS]


def test_every_column_and_group_has_a_look():
    assert set(COLUMNS) | set(GROUPS) <= set(LOOKS)
    assert set(BEHAVIOUR_LOOKS) == {OTHER, *BEHAVIOURS}


def test_surface_patterns_draw_heads_and_layer_means(table):
    figure = surface_patterns(table, UNIFORM)
    assert len(figure.axes) == 3
    for axes, names in zip(figure.axes, PANELS, strict=True):
        assert len(axes.collections) == len(names)
        expected = [table.groupby("layer")[name].mean() for name in names]
        np.testing.assert_allclose(means(axes), expected)
        assert all(len(marks.get_offsets()) == LAYERS * HEADS for marks in axes.collections)
    assert unnamed(figure) == []


def test_entropies_stand_below_the_uniform_line(table):
    figure = entropy_layers(table, UNIFORM)
    for axes, name in zip(figure.axes, ("entropy", "entropy_cls"), strict=True):
        np.testing.assert_allclose(means(axes), [table.groupby("layer")[name].mean()])
        assert [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == ":"] == [3.5]
        assert axes.get_ylim()[1] > 3.5
    assert unnamed(figure) == []


def test_gradients_by_group(table):
    parts = [table[["layer", "head"]].assign(group=group, importance=table["sep"] + 1) for group in GROUPS]
    figure = gradient_layers(pd.concat(parts, ignore_index=True), title="head trained here")
    (axes,) = figure.axes
    np.testing.assert_allclose(means(axes), [table.groupby("layer")["sep"].mean() + 1] * 4)
    assert figure.get_suptitle() == "head trained here"
    assert unnamed(figure) == []


def test_lines_are_as_opaque_as_rows_that_sum_to_one():
    rng = np.random.default_rng(1)
    maps = {"a": rng.random((20, 20)), "b": rng.random((20, 20))}
    figure = example_heads(maps, [f"t{position}" for position in range(20)], last=5)
    shown = [0, *range(15, 20)]
    for axes, attention in zip(figure.axes, maps.values(), strict=True):
        (lines,) = [part for part in axes.collections if isinstance(part, LineCollection)]
        cells = np.array([[attention[row, column] for column in shown] for row in shown])
        np.testing.assert_allclose(
            lines.get_colors()[:, 3].reshape(6, 6), cells / cells.sum(axis=1, keepdims=True)
        )
        start, stop = lines.get_segments()[1]  # the first of the tokens to the second
        assert (start.tolist(), stop.tolist()) == ([0, 0], [1, 1])
        texts = ["t0 …", *(f"t{position}" for position in range(15, 20))]
        assert [text.get_text() for text in axes.texts[::2]] == texts
    assert unnamed(figure) == []


def test_sequences_shorter_than_the_excerpt():
    figure = example_heads({"a": np.full((3, 3), 1 / 3)}, ["a", "b", "c"])
    assert [text.get_text() for text in figure.axes[0].texts[::2]] == ["a", "b", "c"]


def test_a_kind_without_a_head_says_so():
    figure = example_heads({"a": np.full((3, 3), 1 / 3), "[SEP]": None}, ["a", "b", "c"])
    _, axes = figure.axes
    assert axes.get_title() == "[SEP]"
    assert not axes.collections
    assert ["no head" in text.get_text() for text in axes.texts] == [True]


def test_published_layers_are_stretched_to_the_depth_of_the_encoder(table):
    reference = surface_layers()
    for figure, columns in (
        (surface_patterns(table, UNIFORM, reference), [[], ["cls", "sep", "punct"], ["sep_sep", "rest_sep"]]),
        (entropy_layers(table, UNIFORM, reference), [["entropy"], ["entropy_cls"]]),
    ):
        for axes, names in zip(figure.axes, columns, strict=True):
            dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
            drawn = {tuple(line.get_ydata()) for line in dashed}
            assert drawn == {tuple(reference[name]) for name in names}
            assert all((line.get_xdata()[0], line.get_xdata()[-1]) == (0, LAYERS - 1) for line in dashed)
        assert "BERT-base" in figure.legends[0].get_texts()[0].get_text()


def test_head_map_draws_every_head_twice():
    rng = np.random.default_rng(2)
    heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    places = pd.DataFrame(heads, columns=["layer", "head"]).assign(x=rng.random(12), y=rng.random(12))
    behaviour = pd.Series(["other"] * 8 + ["[SEP]"] * 3 + ["broad"])
    linguistic = pd.DataFrame({"layer": [1, 2], "head": [3, 0], "finds": ["nsubj", "coreference"]})
    figure = head_map(places, behaviour, linguistic, 0.123)
    left, right = figure.axes[:2]
    assert {part.get_label(): len(part.get_offsets()) for part in left.collections} == {
        "other (8)": 8,
        "broad (1)": 1,
        "[SEP] (3)": 3,
        "finds a relation or antecedents (2)": 2,
    }
    ringed = places.set_index(["layer", "head"]).loc[[(1, 3), (2, 0)], ["x", "y"]]
    np.testing.assert_allclose(left.collections[-1].get_offsets(), ringed)
    assert [text.get_text() for text in left.texts] == ["1-3", "2-0"]
    assert {part.get_label(): len(part.get_offsets()) for part in right.collections} == {
        "0": 4,
        "1": 4,
        "2": 4,
    }
    assert left.get_xlim() == right.get_xlim()
    assert np.ptp(left.get_xlim()) == pytest.approx(np.ptp(left.get_ylim()))
    assert "stress 0.12" in figure.get_supylabel()
