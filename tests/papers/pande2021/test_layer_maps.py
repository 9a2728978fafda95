import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, ROLES, unnamed

from analysis.papers.pande2021.layer_maps import layer_profile, transitions_plot

TASKS = ["mrpc", "sst-2"]
STATES = ["pretrained", "finetuned"]


@pytest.fixture
def counts() -> pd.DataFrame:
    """Heads per task, state, layer and role; sst-2 has no sentence pairs, hence no block."""
    names = ["task", "state", "layer", "role"]
    index = pd.MultiIndex.from_product(
        [TASKS, STATES, range(LAYERS), [*ROLES, "multi-functional", "none"]], names=names
    )
    frame = index.to_frame(index=False)
    frame["heads"] = np.random.default_rng(1).integers(1, HEADS, len(frame))
    return frame[(frame["task"] != "sst-2") | (frame["role"] != "block")]


@pytest.fixture
def transitions(counts) -> pd.DataFrame:
    rows = counts[(counts["state"] == "finetuned") & counts["role"].isin(ROLES)]
    rng = np.random.default_rng(2)
    moves = {name: rng.integers(1, HEADS, len(rows)) for name in ("gained", "lost", "kept")}
    return rows[["task", "layer", "role"]].assign(**moves)


def drawn(figure) -> dict[str, np.ndarray]:
    """The values of every map, roles x layers, by its title; NaN where it is masked."""
    return {
        axes.get_title(): axes.images[0].get_array().filled(np.nan) for axes in figure.axes if axes.images
    }


def expected(rows: pd.DataFrame, roles: list[str], value: str) -> np.ndarray:
    grid = np.full((len(roles), LAYERS), np.nan)
    for row in rows.to_dict("records"):
        grid[roles.index(row["role"]), row["layer"]] = row[value]
    return grid


def test_profile_maps_every_task_in_both_states(counts):
    figure = layer_profile(counts)
    roles = [*ROLES, "multi-functional", "none"]
    found = drawn(figure)
    assert list(found) == ["mrpc, pre-trained", "sst-2, pre-trained", "mrpc, fine-tuned", "sst-2, fine-tuned"]
    for name, values in found.items():
        task, state = name.split(", ")
        rows = counts[(counts["task"] == task) & (counts["state"] == state.replace("-", ""))]
        np.testing.assert_array_equal(values, expected(rows, roles, "heads"))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == roles
    assert unnamed(figure) == []


def test_cells_with_heads_have_their_number_and_empty_ones_none(counts):
    counts = counts.assign(heads=counts["heads"].where(counts["layer"] > 0, 0))
    figure = layer_profile(counts[counts["state"] == "pretrained"])
    axes = figure.axes[0]
    rows = counts[(counts["state"] == "pretrained") & (counts["task"] == "mrpc") & (counts["layer"] > 0)]
    assert sorted(text.get_text() for text in axes.texts) == sorted(rows["heads"].astype(str))
    assert all(text.get_fontsize() >= 7 for text in axes.texts)


def test_missing_counts_are_grey_and_many_layers_take_wider_panels(counts):
    deep = pd.concat([counts.assign(layer=counts["layer"] + LAYERS * part) for part in range(4)])
    deep["heads"] = deep["heads"].astype("Int64").mask(deep["role"] == "cls")
    figure = layer_profile(deep)
    assert np.isnan(drawn(figure)["mrpc, fine-tuned"][ROLES.index("cls")]).all()
    assert figure.axes[0].get_gridspec().ncols == 2
    assert layer_profile(counts).axes[0].get_gridspec().ncols == 4


def test_transitions_map_gains_above_and_losses_below(transitions):
    figure = transitions_plot(transitions)
    found = drawn(figure)
    assert list(found) == ["mrpc: gained", "sst-2: gained", "mrpc: lost", "sst-2: lost"]
    for name, values in found.items():
        task, move = name.split(": ")
        rows = transitions[transitions["task"] == task]
        np.testing.assert_array_equal(values, expected(rows, ROLES, move))
    assert unnamed(figure) == []
