import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, ROLES, unnamed

from analysis.papers.pande2021 import plots

TASKS = ["mrpc", "sst-2"]
STATES = ["pretrained", "finetuned"]


@pytest.fixture
def masses() -> pd.DataFrame:
    index = pd.MultiIndex.from_product([TASKS, STATES, range(LAYERS), range(HEADS)])
    frame = index.to_frame(index=False, name=["task", "state", "layer", "head"])
    frame[["sep", "cls", "other"]] = np.random.default_rng(3).dirichlet(np.ones(3), len(frame))
    return frame


@pytest.fixture
def runs() -> pd.DataFrame:
    """Heads per task, run and role under both rules; the pre-trained encoder has no seed."""
    index = pd.MultiIndex.from_product([TASKS, [None, 0, 1, 2], ROLES], names=["task", "seed", "role"])
    frame = index.to_frame(index=False)
    rng = np.random.default_rng(4)
    return frame.assign(published=rng.integers(5, 9, len(frame)), audited=rng.integers(1, 5, len(frame)))


def test_counts_over_seeds_mark_every_run_and_the_pretrained_encoder(runs):
    figure = plots.counts_over_seeds(runs)
    for axes, task in zip(figure.axes, TASKS, strict=True):
        rows = runs[runs["task"] == task]
        published, audited, pretrained = (line.get_xdata() for line in axes.lines)
        assert sorted(published) == sorted(rows["published"][rows["seed"].notna()])
        assert sorted(audited) == sorted(rows["audited"][rows["seed"].notna()])
        assert sorted(pretrained) == sorted(rows["published"][rows["seed"].isna()])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ROLES
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(set(names)) == 3


def test_mass_lines_are_means_over_heads(masses):
    figure = plots.mass_change(masses)
    for task, axes in zip(TASKS, figure.axes, strict=True):
        assert axes.get_title() == task
        drawn = [(line.get_linestyle(), line.get_label(), line.get_ydata()) for line in axes.lines]
        expected = []
        for state, dash in (("pretrained", "--"), ("finetuned", "-")):
            for column, name in (("sep", "[SEP]"), ("cls", "[CLS]"), ("other", "other tokens")):
                rows = masses[(masses["task"] == task) & (masses["state"] == state)]
                expected.append((dash, name, rows[column].to_numpy().reshape(LAYERS, HEADS).mean(axis=1)))
        for found, wanted in zip(drawn, expected, strict=True):
            assert found[:2] == wanted[:2]
            np.testing.assert_allclose(found[2], wanted[2])


def test_mass_of_one_state_draws_its_lines_only(masses):
    figure = plots.mass_change(masses[masses["state"] == "finetuned"])
    assert {line.get_linestyle() for axes in figure.axes for line in axes.lines} == {"-"}


def test_every_plot_names_its_axes(masses, runs):
    drawn = [
        plots.counts_over_seeds(runs),
        plots.mass_change(masses),
    ]
    assert [unnamed(figure) for figure in drawn] == [[]] * len(drawn)
