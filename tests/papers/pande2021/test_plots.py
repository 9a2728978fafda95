import numpy as np
import pandas as pd
import pytest
import xarray as xr
from drawing import HEADS, LAYERS, ROLES, bar_heights, role_table, unnamed
from matplotlib.collections import PathCollection
from matplotlib.patches import StepPatch
from scipy.stats import skew

from analysis.papers.pande2021 import plots

TASKS = ["mrpc", "sst-2"]
STATES = ["pretrained", "finetuned"]


@pytest.fixture
def scores() -> xr.DataArray:
    """Right-skewed scores of 30 sequences; `dobj` is missing from half of them, `block` from all."""
    values = np.random.default_rng(0).lognormal(0, 1, (30, len(ROLES), LAYERS, HEADS)).astype(np.float32)
    values[::2, ROLES.index("dobj")] = np.nan
    values[:, ROLES.index("block")] = np.nan
    values[0, 0, 0, 0] = 0  # has no place on a logarithmic axis
    names = {"role": ROLES, "layer": range(LAYERS), "head": range(HEADS)}
    return xr.DataArray(values, dims=["sequence", "role", "layer", "head"], coords=names)


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


@pytest.fixture
def masses() -> pd.DataFrame:
    index = pd.MultiIndex.from_product([TASKS, STATES, range(LAYERS), range(HEADS)])
    frame = index.to_frame(index=False, name=["task", "state", "layer", "head"])
    frame[["sep", "cls", "other"]] = np.random.default_rng(3).dirichlet(np.ones(3), len(frame))
    return frame


def panel(figure, row: int, column: int, columns: int = 2):
    return figure.axes[row * columns + column]


def test_distributions_mark_the_means_and_name_the_strongest_head(scores):
    left, _ = plots.score_distributions(scores, tau=3.0).axes
    pooled, strongest = [
        artist.get_offsets() for artist in left.collections if isinstance(artist, PathCollection)
    ][-2:]
    for row, (role, label) in enumerate(zip(ROLES, left.get_yticklabels(), strict=True)):
        values = scores.sel(role=role).values.reshape(30, -1).astype(float)
        if role == "block":
            assert label.get_text() == "block (no score)"
            assert not np.isfinite(pooled[row][0])
            continue
        best = np.nanmean(values, axis=0)
        assert label.get_text() == f"{role} ({best.argmax() // HEADS}, {best.argmax() % HEADS})"
        assert pooled[row][0] == pytest.approx(np.nanmean(values), rel=1e-5)
        assert strongest[row][0] == pytest.approx(best.max(), rel=1e-5)


def test_distributions_show_the_skewness_of_every_head(scores):
    _, right = plots.score_distributions(scores, tau=3.0).axes
    for row, role in enumerate(["local", "syntactic"]):
        skewness = skew(scores.sel(role=role).values.reshape(30, -1).astype(float), bias=False)
        box = [
            line for line in right.lines if np.abs(np.subtract(line.get_ydata(), row)).max(initial=0) < 0.3
        ]
        ends = np.concatenate([line.get_xdata() for line in box])
        assert [ends.min(), ends.max()] == pytest.approx([skewness.min(), skewness.max()], rel=1e-4)


def test_distributions_draw_tau_and_a_logarithmic_axis(scores):
    left, right = plots.score_distributions(scores, tau=2.5).axes
    assert left.get_xscale() == "log"
    assert right.get_xscale() == "linear"
    assert [2.5, 2.5] in [list(line.get_xdata()) for line in left.lines]


def test_profile_draws_bars_after_and_a_line_before_fine_tuning(counts):
    figure = plots.layer_profile(counts)
    rows = [*ROLES, "multi-functional", "none"]
    for row, role in enumerate(rows):
        for column, task in enumerate(TASKS):
            axes = panel(figure, row, column)
            chosen = counts[(counts["role"] == role) & (counts["task"] == task)].sort_values("layer")
            bars = [bar.get_height() for bar in axes.patches if not isinstance(bar, StepPatch)]
            steps = [
                patch.get_data().values.tolist() for patch in axes.patches if isinstance(patch, StepPatch)
            ]
            if chosen.empty:
                assert (bars, steps) == ([], [])
                assert [text.get_text() for text in axes.texts] == ["untestable"]
                continue
            assert bars == chosen[chosen["state"] == "finetuned"]["heads"].tolist()
            assert steps == [chosen[chosen["state"] == "pretrained"]["heads"].tolist()]


def test_profile_of_one_task_and_state_draws_bars_only(counts):
    one = counts[(counts["task"] == "mrpc") & (counts["state"] == "pretrained")]
    figure = plots.layer_profile(one, title="one")
    assert figure.get_suptitle() == "one"
    assert len(figure.axes) == len(ROLES) + 2
    assert bar_heights(figure.axes[0]) == one[one["role"] == "local"].sort_values("layer")["heads"].tolist()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["pre-trained"]


def test_profile_leaves_out_missing_counts(counts):
    counts = counts.astype({"heads": float})
    counts.loc[counts["role"] == "cls", "heads"] = np.nan
    figure = plots.layer_profile(counts)
    assert [text.get_text() for text in panel(figure, ROLES.index("cls"), 0).texts] == ["untestable"]


def test_transitions_point_up_for_gains_and_down_for_losses(transitions):
    figure = plots.transitions_plot(transitions)
    for row, role in enumerate(ROLES):
        for column, task in enumerate(TASKS):
            chosen = transitions[(transitions["role"] == role) & (transitions["task"] == task)]
            expected = [*chosen["gained"], *-chosen["lost"]]
            assert bar_heights(panel(figure, row, column)) == expected
    figure.canvas.draw()
    assert all("−" not in label.get_text() for label in figure.axes[0].get_yticklabels())


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


def test_p_values_stand_in_layer_order_and_the_histogram_counts_them_all():
    table = role_table()
    left, right = plots.p_values(table, alpha=0.05).axes
    drawn = {(round(x), y) for artist in left.collections for x, y in artist.get_offsets()}
    tested = table[table["p"].notna()]
    assert drawn == {(row.layer * HEADS + row.head, row.p) for row in tested.itertuples()}
    assert sum(bar.get_width() for bar in right.patches) == len(tested)
    assert all([0.05, 0.05] in [list(line.get_ydata()) for line in axes.lines] for axes in (left, right))
    assert [label.get_text() for label in left.get_xticklabels()] == ["0", "1", "2"]
    assert left.get_xticks().tolist() == [0, HEADS, 2 * HEADS]


def test_every_plot_names_its_axes(scores, counts, transitions, masses, runs):
    drawn = [
        plots.score_distributions(scores, 3.0),
        plots.layer_profile(counts),
        plots.transitions_plot(transitions),
        plots.counts_over_seeds(runs),
        plots.mass_change(masses),
        plots.p_values(role_table(), 0.05),
    ]
    assert [unnamed(figure) for figure in drawn] == [[]] * len(drawn)
