"""Figures of heads, coreference and probes: what is drawn is what the tables say."""

import numpy as np
import pandas as pd
import pytest
from drawing import unnamed
from matplotlib.collections import LineCollection

from analysis.errors import InputError
from analysis.papers.clark2019.antecedents import BOUNDS
from analysis.papers.clark2019.coreference import CANDIDATES, SYSTEMS
from analysis.papers.clark2019.illustrations import HeadExample
from analysis.papers.clark2019.syntax_figures import (
    SYSTEM_COLOURS,
    SYSTEM_MARKS,
    coreference_accuracy,
    dependency_accuracy,
    head_arcs,
    probe_scores,
)
from analysis.scores.attachment import DIRECTIONS


def dependencies() -> pd.DataFrame:
    return pd.DataFrame(
        {"relation": ["nsubj", "det", "obj"], "n": [300, 200, 100], "layer": [1, 2, 3], "head": [4, 5, 6],
         "direction": [*DIRECTIONS, DIRECTIONS[0]], "accuracy": [0.6, 1.0, 0.5], "low": [0.5, np.nan, 0.4],
         "high": [0.7, np.nan, 0.6], "offset": [1, 1, -2], "offset_accuracy": [0.3, 0.7, 0.5],
         "p_adjusted": [0.001, 0.01, 0.8]}
    )  # fmt: skip


def test_heads_and_offsets_are_drawn_where_the_table_has_them():
    (axes,) = dependency_accuracy(dependencies()).axes
    decided, undecided, offsets = axes.get_lines()
    assert (list(decided.get_xdata()), list(decided.get_ydata())) == ([0.6, 1.0], [0, 1])
    assert (list(undecided.get_xdata()), list(undecided.get_ydata())) == ([0.5], [2])
    assert list(offsets.get_xdata()) == [0.3, 0.7, 0.5]
    assert [label.get_text().split(" ")[0] for label in axes.get_yticklabels()] == ["nsubj", "det", "obj"]
    assert "head 3-6 dep→head, offset -2" in axes.get_yticklabels()[2].get_text()
    assert unnamed(axes) == []


def example(relation: str = "det") -> HeadExample:
    attention = np.array([[0.1, 0.2, 0.7], [0.5, 0.2, 0.3], [0, 1, 0]])
    return HeadExample(relation, 2, 3, DIRECTIONS[0], ["one", "word", "more"], attention, [(1, 0)])


def test_arcs_are_as_dark_as_the_attention():
    figure = head_arcs([example("det"), example("obj")])
    for axes in figure.axes:
        drawn, gold = (each for each in axes.collections if isinstance(each, LineCollection))
        red = drawn.get_colors()[:, 0] > 0.5
        starts = [line[0][1] for line in drawn.get_segments()]
        assert starts == [0, 0, 0, 2, 2, 2, 1, 1, 1]  # the words that attend in an arc come last
        assert red.tolist() == [start == 1 for start in starts]
        np.testing.assert_allclose(drawn.get_colors()[red, 3], example().attention[1])
        assert [line[1][1] for line in drawn.get_segments()] == [0, 1, 2] * 3
        assert [line.tolist() for line in gold.get_segments()] == [[[0, 1], [1, 0]]]
    assert figure.axes[1].get_title() == "obj: 2-3\ndep→head"
    assert unnamed(figure) == []


def test_no_example_to_draw():
    with pytest.raises(InputError, match="no relation has an example"):
        head_arcs([])


def test_coreference_by_kind():
    table = pd.DataFrame(
        {"system": ["nearest", "best head"], "all": [0.3, 0.5], "pronoun": [0.4, 0.6], "proper": [0.2, np.nan],
         "nominal": [0.1, 0.3], "n": 80, "low": [0.2, 0.4], "high": [0.4, 0.6],
         **{name: [0.05, 0.25] for name in BOUNDS}, "high_nominal": [0.15, 0.35],
         "layer": pd.array([None, 2], "Int64"), "head": pd.array([None, 5], "Int64")}
    )  # fmt: skip
    (axes,) = coreference_accuracy(table).axes
    rule, head = axes.get_lines()
    intervals = [part.get_segments() for part in axes.collections[:2]]
    assert [[(low, high) for (_, low), (_, high) in part] for part in intervals] == [
        [(0.2, 0.4), (0.05, 0.05), (0.05, 0.05), (0.05, 0.15)],
        [(0.4, 0.6), (0.25, 0.25), (0.25, 0.25), (0.25, 0.35)],
    ]
    assert list(rule.get_ydata()) == [0.3, 0.4, 0.2, 0.1]
    assert head.get_label() == "best head (2-5)"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["all", "pronoun", "proper", "nominal"]
    assert unnamed(axes) == []


def test_every_system_has_a_mark_of_its_own():
    assert len(SYSTEM_MARKS) == len(SYSTEM_COLOURS) == len(SYSTEMS) + len(CANDIDATES)
    assert len(set(SYSTEM_MARKS)) == len(SYSTEM_MARKS)


def test_a_mark_for_every_seed_and_the_interval_of_their_mean():
    table = pd.DataFrame(
        {"probe": ["right-branching", "attention", "attention"], "encoder": ["none", "e", "e"],
         "uas_no_punct": [0.3, 0.5, 0.6]}
    )  # fmt: skip
    summary = pd.DataFrame(
        {"probe": ["attention", "right-branching"], "encoder": ["e", "none"], "mean": [0.55, 0.3],
         "low": [0.4, np.nan], "high": [0.7, np.nan]}
    )  # fmt: skip
    (axes,) = probe_scores(table, summary).axes
    (seeds,) = axes.get_lines()
    assert sorted(zip(seeds.get_xdata(), seeds.get_ydata(), strict=True)) == [(30, 0), (50, 1), (60, 1)]
    assert [text.get_text() for text in axes.texts] == ["30.0", "55.0"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["right-branching", "attention, e"]
    segments = [segment for segment in axes.collections[0].get_segments() if len(segment)]
    np.testing.assert_allclose(segments, [[[40, 1], [70, 1]]])
    assert unnamed(axes) == []
