import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, ROLES, unnamed
from drawing import role_table as drawn_table
from matplotlib.collections import LineCollection

from analysis.figures.intervals import LABEL_LOOKS, forest
from analysis.statistics.significance import label_comparison


@pytest.fixture
def table() -> pd.DataFrame:
    """Both labels in all combinations, intervals of different lengths, and heads without either."""
    table = drawn_table().assign(low=lambda rows: rows["mean"] - 0.1, high=lambda rows: rows["mean"] + 0.3)
    published, audited = np.random.default_rng(2).random((2, len(table))) < 0.5
    missing = table["mean"].isna()
    labels = {"assigned": published, "assigned_audited": audited}
    return table.assign(
        **{name: pd.Series(label, dtype="boolean").mask(missing) for name, label in labels.items()}
    )


def bars(axes) -> list[tuple[float, float]]:
    """The ends of the intervals, from the lowest row up; a missing bar has no ends."""
    lines = [artist for artist in axes.collections if isinstance(artist, LineCollection)]
    segments = [segment for line in lines for segment in line.get_segments()]
    found = {start[1]: (start[0], end[0]) for start, end in filter(len, segments)}
    return [found[height] for height in sorted(found)]


@pytest.mark.parametrize("nearest", [4, LAYERS * HEADS])
def test_a_panel_per_role_sorts_the_heads_nearest_to_tau(table, nearest):
    figure = forest(table.sample(frac=1, random_state=0), 3.0, nearest)
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert list(panels) == ROLES
    for role, axes in panels.items():
        rows = table[table["role"] == role].dropna(subset="mean")
        if role == "block":
            assert [text.get_text() for text in axes.texts] == ["untestable"]
            continue
        distance = (rows["mean"] - 3).abs()
        shown = rows[distance <= sorted(distance)[min(nearest, len(rows)) - 1]].sort_values("mean")
        names = [f"{row.layer}-{row.head}" for row in shown.itertuples()]
        assert [label.get_text() for label in axes.get_yticklabels()] == names
        assert bars(axes) == [pytest.approx((row.low, row.high)) for row in shown.itertuples()]
        drawn = {point for line in axes.lines[1:] for point in zip(*line.get_data(), strict=True)}
        assert drawn == {(mean, place) for place, mean in enumerate(shown["mean"])}


def test_colour_and_mark_tell_the_labels_apart(table):
    axes = forest(table, 3.0).axes[0]
    rows = table[table["role"] == "local"].dropna(subset="mean")
    near = rows.loc[(rows["mean"] - 3).abs().sort_values().index[:10]]
    counts = label_comparison(near).value_counts()
    for name, line in zip(LABEL_LOOKS, axes.lines[1:], strict=True):
        assert len(line.get_xdata()) == counts.get(name, 0)


def test_forest_shows_tau_and_names_its_axes(table):
    figure = forest(table, 2.5)
    for axes in figure.axes:
        if axes.get_title() != "block":
            assert {*axes.lines[0].get_xdata()} == {2.5}
            assert axes.get_xlim()[0] < 2.5 < axes.get_xlim()[1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["τ = 2.5", *LABEL_LOOKS]
    assert unnamed(figure) == []


def test_looks_of_the_labels_differ_without_colour():
    looks = {(look["marker"], look.get("markerfacecolor")) for look in LABEL_LOOKS.values()}
    assert len(looks) == len(LABEL_LOOKS)


def test_forest_of_heads_without_spread(table):
    constant = table.assign(low=np.nan, high=np.nan, assigned_audited=pd.NA)
    figure = forest(constant, 3, LAYERS * HEADS)
    axes = figure.axes[0]
    assert bars(axes) == []
    assert sum(np.isfinite(line.get_xdata()).sum() for line in axes.lines[1:]) == LAYERS * HEADS - 1
