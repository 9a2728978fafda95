import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, unnamed
from matplotlib.colors import to_rgb
from studies import error_of

from analysis.figures.intervals import CHANGE_LOOKS, change_intervals
from analysis.statistics.comparison import CHANGES

MARGIN = 0.5


@pytest.fixture
def table() -> pd.DataFrame:
    """Changes of LAYERS x HEADS heads in two tasks, every class in turn, one untestable; sst-2 has no block."""
    index = pd.MultiIndex.from_product(
        [["mrpc", "sst-2"], ["local", "block"], range(LAYERS), range(HEADS)],
        names=["task", "role", "layer", "head"],
    )
    rows = index.to_frame(index=False)
    rng = np.random.default_rng(0)
    rows["difference"] = rng.normal(0, 2, len(rows))
    rows["low"] = rows["difference"] - rng.uniform(0.1, 0.5, len(rows))
    rows["high"] = rows["difference"] + rng.uniform(0.1, 0.5, len(rows))
    rows["change"] = pd.Series(np.resize([*CHANGES, None], len(rows)), dtype="string")
    missing = (rows["task"] == "sst-2") & (rows["role"] == "block")
    rows.loc[missing, ["difference", "low", "high", "change"]] = pd.NA
    return rows


def drawn_marks(axes) -> set[tuple[str, int, float]]:
    """Class, place and height of every mark."""
    found = {(line.get_label(), x, y) for line in axes.lines for x, y in zip(*line.get_data(), strict=True)}
    return {mark for mark in found if mark[0] in CHANGE_LOOKS and np.isfinite(mark[2])}


def drawn_bars(axes) -> set[tuple[float, float, float]]:
    """Place and ends of every interval; the pale lines between layers run from 0 to 1."""
    lines = [segment for artist in axes.collections for segment in artist.get_segments()]
    return {(x, low, high) for (x, low), (_, high) in lines if (low, high) != (0, 1) and np.isfinite(low)}


def test_every_head_has_its_mark_and_its_interval(table):
    figure = change_intervals(table, "local", MARGIN)
    assert [axes.get_title() for axes in figure.axes] == ["mrpc", "sst-2"]
    for axes in figure.axes:
        rows = table[(table["task"] == axes.get_title()) & (table["role"] == "local")]
        place = rows["layer"] * HEADS + rows["head"]
        classes = rows["change"].fillna("untestable")
        assert drawn_marks(axes) == {*zip(classes, place, rows["difference"], strict=True)}
        assert drawn_bars(axes) == {*zip(place, rows["low"], rows["high"], strict=True)}


def test_line_of_no_change_and_band_of_the_margin(table):
    for axes in change_intervals(table, "local", MARGIN).axes:
        assert [0, 0] in [list(line.get_ydata()) for line in axes.lines]
        (band,) = axes.patches
        assert (band.get_y(), band.get_height()) == (-MARGIN, 2 * MARGIN)


def test_axis_is_linear_within_the_margin_and_shows_it(table):
    figure = change_intervals(table, "local", MARGIN)
    figure.canvas.draw()
    axes = figure.axes[0]
    at = axes.transData.transform([(0, score) for score in (-0.5, -0.25, 0, 0.25, 0.5, 2, 8)])[:, 1]
    steps = np.diff(at)
    np.testing.assert_allclose(steps[:4], steps[0])
    assert steps[5] == pytest.approx(steps[4], rel=0.1)
    assert {"-0.5", "0", "0.5", "2"} <= {
        label.get_text().replace("−", "-") for label in axes.get_yticklabels()
    }


def test_task_without_the_role_reads_untestable(table):
    texts = [
        [text.get_text() for text in axes.texts] for axes in change_intervals(table, "block", MARGIN).axes
    ]
    assert texts == [[], ["untestable"]]


def test_one_task_without_a_column_task(table):
    (axes,) = change_intervals(table[table["task"] == "mrpc"].drop(columns="task"), "block", MARGIN).axes
    assert len(drawn_marks(axes)) == LAYERS * HEADS


def test_classes_differ_without_colour():
    looks = [(look["marker"], look.get("markerfacecolor", "full")) for look in CHANGE_LOOKS.values()]
    assert len({marker for marker, _ in looks}) == len(looks)
    assert {*CHANGE_LOOKS} == {*CHANGES, "untestable"}
    lightness = [np.dot(to_rgb(look["color"]), [0.2126, 0.7152, 0.0722]) for look in CHANGE_LOOKS.values()]
    assert max(lightness) < 0.75  # shows on white


def test_legend_axes_and_title_are_named(table):
    figure = change_intervals(table, "local", MARGIN)
    assert unnamed(figure) == []
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*CHANGE_LOOKS, "within the margin"]
    assert figure.get_suptitle() == "role local"


def test_unknown_role_is_refused(table):
    assert "role 'dobj' is not in the table: choose from local, block" in error_of(
        change_intervals, table, "dobj", MARGIN
    )
