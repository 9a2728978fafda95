import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, unnamed
from drawing import role_table as drawn_table
from matplotlib.collections import LineCollection

from analysis.errors import InputError
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


def bars(figure) -> dict[float, tuple[float, float]]:
    """The ends of the vertical bars by their place, without the lines between layers; a missing bar has no ends."""
    (axes,) = figure.axes
    lines = [line for line in axes.collections if isinstance(line, LineCollection)]
    segments = [segment for line in lines if line.get_zorder() > 0 for segment in line.get_segments()]
    return {start[0]: (start[1], end[1]) for start, end in filter(len, segments)}


def test_forest_draws_mean_and_interval_of_every_head_in_layer_order(table):
    figure = forest(table.sample(frac=1, random_state=0), "local", 3.0)
    (axes,) = figure.axes
    marks = {mark.get_label().rpartition(" (")[0]: mark for mark in axes.lines if mark.get_label()[0] != "τ"}
    rows = table[table["role"] == "local"]
    assert len(rows) == LAYERS * HEADS
    for name, some in rows.groupby(label_comparison(rows)):
        expected = dict(zip(some["layer"] * HEADS + some["head"], some["mean"], strict=True))
        found = dict(zip(*marks[name].get_data(), strict=True))
        np.testing.assert_equal(found, expected)
    tested = rows.dropna(subset="mean")
    expected = {
        row.layer * HEADS + row.head: pytest.approx((row.low, row.high)) for row in tested.itertuples()
    }
    assert bars(figure) == expected


def test_forest_shows_tau_and_counts_the_labels(table):
    figure = forest(table, "local", 2.5)
    (axes,) = figure.axes
    (line,) = [line for line in axes.lines if line.get_label() == "τ = 2.5"]
    assert {*line.get_ydata()} == {2.5}
    counts = label_comparison(table[table["role"] == "local"]).value_counts()
    key = [text.get_text() for text in figure.legends[0].get_texts()]
    assert key == ["τ = 2.5", *(f"{name} ({counts.get(name, 0)})" for name in LABEL_LOOKS)]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2"]
    assert unnamed(figure) == []


def test_looks_of_the_labels_differ_without_colour():
    looks = {(look["marker"], look.get("markerfacecolor")) for look in LABEL_LOOKS.values()}
    assert len(looks) == len(LABEL_LOOKS)


def test_forest_of_an_untestable_role_and_of_heads_without_spread(table):
    assert not bars(forest(table, "block", 3.0))
    constant = table.assign(low=np.nan, high=np.nan, assigned_audited=pd.NA)
    figure = forest(constant, "local", 3, title="constant")
    assert not bars(figure)
    assert sum(np.isfinite(line.get_ydata()).sum() for line in figure.axes[0].lines[1:]) == LAYERS * HEADS - 1
    assert figure.get_suptitle() == "constant"


def test_forest_refuses_an_absent_role(table):
    with pytest.raises(InputError, match="'nothing' is not in the table: choose from local, syntactic"):
        forest(table, "nothing", 3.0)
