"""What the curves show is what the tables hold."""

import numpy as np
import pandas as pd
import pytest
from drawing import LAYERS, ROLES, unnamed
from matplotlib.collections import QuadMesh

from analysis.papers.pande2021 import curves

TASKS = ["mrpc", "sst-2"]


@pytest.fixture
def sweep() -> pd.DataFrame:
    """Counts and Jaccard indices over four thresholds; sst-2 has no block."""
    index = pd.MultiIndex.from_product([TASKS, ROLES, [1.0, 2.0, 3.0, 4.0]], names=["task", "role", "tau"])
    frame = index.to_frame(index=False).assign(testable=20)
    frame["heads"] = np.random.default_rng(0).integers(0, 20, len(frame))
    frame["jaccard"] = np.random.default_rng(1).random(len(frame))
    return frame[(frame["task"] != "sst-2") | (frame["role"] != "block")]


@pytest.fixture
def stability() -> pd.DataFrame:
    index = pd.MultiIndex.from_product([TASKS, ROLES, [20, 50, 100]], names=["task", "role", "size"])
    rng = np.random.default_rng(2)
    return index.to_frame(index=False).assign(jaccard=rng.random(60), jaccard_sd=0.05)


@pytest.fixture
def controls() -> pd.DataFrame:
    names = ["real", "uniform head", "shuffled"]
    index = pd.MultiIndex.from_product([TASKS, names, ROLES], names=["task", "control", "role"])
    return index.to_frame(index=False).assign(published=np.arange(60) % 17)


def lines(axes) -> list[np.ndarray]:
    """Heights of the lines with data, from the first to the last drawn."""
    return [np.asarray(line.get_ydata(), float) for line in axes.get_lines() if len(line.get_ydata()) > 2]


def test_tau_curves_draw_one_quantity_an_axis(sweep):
    figure = curves.tau_curves(sweep, tau=3)
    assert [axes.get_title() for axes in figure.axes] == 2 * ROLES
    shares = sweep.assign(share=sweep["heads"] / 20)
    for place, axes in enumerate(figure.axes):
        value = "share" if place < len(ROLES) else "jaccard"
        rows = shares[shares["role"] == axes.get_title()]
        drawn = [line for line in lines(axes) if len(line)]
        expected = [rows.loc[rows["task"] == task, value] for task in TASKS if (rows["task"] == task).any()]
        for found, wanted in zip(drawn, expected, strict=True):
            np.testing.assert_allclose(found, wanted)
        assert [3, 3] in [list(line.get_xdata()) for line in axes.get_lines()]
        assert not axes.collections
    names = [(part.get_supxlabel(), part.get_supylabel().replace("\n", " ")) for part in figure.subfigs]
    assert names == [
        ("threshold τ (score)", "proportion of heads with the role"),
        ("threshold τ (score)", "Jaccard index with the heads at the default τ"),
    ]


def test_layer_maps_show_the_mean_over_tasks(sweep):
    layers = pd.concat([sweep.assign(layer=layer) for layer in range(LAYERS)])
    figure = curves.tau_layer_maps(layers.assign(heads=layers["heads"] + layers["layer"]), tau=3)
    (mesh,) = [each for each in figure.axes[0].collections if isinstance(each, QuadMesh)]
    means = sweep[sweep["role"] == ROLES[0]].groupby("tau")["heads"].mean()
    expected = [means + layer for layer in range(LAYERS)]
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(LAYERS, 4), expected)
    assert unnamed(figure) == []


def test_stability_curves_draw_the_jaccard_index_and_its_spread(stability):
    figure = curves.stability_curves(stability)
    assert [axes.get_title() for axes in figure.axes] == ROLES
    axes = figure.axes[3]
    rows = stability[stability["role"] == ROLES[3]]
    for task, drawn in zip(TASKS, lines(axes), strict=True):
        np.testing.assert_allclose(drawn, rows.loc[rows["task"] == task, "jaccard"])
    spread = axes.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([np.ptp(segment[:, 1]) for segment in spread], 0.1)
    assert [text.get_text() for text in figure.axes[-1].get_xticklabels()] == ["20", "50", "100"]
    assert unnamed(figure) == []


def test_controls_stand_side_by_side_in_every_role(controls):
    figure = curves.control_counts(controls)
    assert [axes.get_title() for axes in figure.axes] == TASKS
    for axes, task in zip(figure.axes, TASKS, strict=True):
        drawn = axes.get_lines()
        assert len(drawn) == 3
        for line, (_, rows) in zip(
            drawn, controls[controls["task"] == task].groupby("control", sort=False), strict=True
        ):
            np.testing.assert_array_equal(line.get_xdata(), rows["published"])
            np.testing.assert_array_equal(np.round(line.get_ydata()), range(len(ROLES)))
        assert len({line.get_marker() for line in drawn}) == 3
    assert unnamed(figure) == []


def test_looks_differ_without_colour():
    for name in ("linestyle", "marker"):
        assert len({look[name] for look in curves.LOOKS}) == len(curves.LOOKS)
