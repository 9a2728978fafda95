import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, ROLES, role_table, unnamed
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import same_color

from analysis.figures import colours, grids, theme

ROLES_WITHOUT_BLOCK = [role for role in ROLES if role != "block"]


@pytest.fixture
def table() -> pd.DataFrame:
    return role_table()


@pytest.fixture
def change(table) -> pd.DataFrame:
    return table[["layer", "head", "role"]].assign(difference=table["mean"] - 4)


def mesh(axes) -> np.ndarray:
    """The values of a heat map, NaN where it is masked, as layers x heads."""
    (found,) = [artist for artist in axes.collections if isinstance(artist, QuadMesh)]
    return found.get_array().filled(np.nan)


def marks(axes, **wanted) -> set[tuple[int, int]]:
    """(layer, head) of the cells in which points stand; `label` selects points of one role."""
    points = [artist for artist in axes.collections if isinstance(artist, PathCollection)]
    chosen = [
        artist for artist in points if all(getattr(artist, f"get_{k}")() == v for k, v in wanted.items())
    ]
    return {(round(y), round(x)) for artist in chosen for x, y in artist.get_offsets()}


def cells(table: pd.DataFrame, role: str, chosen: pd.Series) -> set[tuple[int, int]]:
    rows = table[(table["role"] == role) & chosen.fillna(False)]
    return set(zip(rows["layer"], rows["head"], strict=True))


def panels_by_title(figure) -> dict:
    return {axes.get_title(): axes for axes in figure.axes if axes.get_title()}


def test_mean_maps_show_the_means_and_dot_the_assigned_heads(table):
    panels = panels_by_title(grids.mean_maps(table, tau=3.0))
    assert list(panels) == ROLES
    for role, axes in panels.items():
        expected = np.full((LAYERS, HEADS), np.nan)
        for row in table[table["role"] == role].itertuples():
            expected[row.layer, row.head] = row.mean
        np.testing.assert_array_equal(mesh(axes), expected)
        assert marks(axes) == cells(table, role, table["assigned"])


def test_mean_maps_share_a_logarithmic_scale_centred_at_one(table):
    figure = grids.mean_maps(table.assign(mean=table["mean"] * 2), tau=3.0)
    for axes in panels_by_title(figure).values():
        scale = axes.collections[0].norm
        assert (scale(1.0), scale(30), scale(1 / 30)) == pytest.approx((0.5, 1, 0))
    *_, bar = figure.axes
    ends = [label.get_text() for label in bar.get_yticklabels()]
    assert ends == ["1/30", "1/10", "1/3", "1", "3", "10", "30"]
    assert [3.0, 3.0] in [list(line.get_ydata()) for line in bar.lines]


@pytest.mark.parametrize(("largest", "end"), [(2.0, 3.0), (9.0, 10.0), (0.02, 100.0), (1e4, 100.0)])
def test_the_scale_holds_nearly_all_means_on_either_side(largest, end):
    assert grids._scale_end(pd.Series([1.0, 0.0, np.nan, *[largest] * 9])) == end


def test_change_map_is_centred_on_zero_and_signs_large_changes(change):
    end = change["difference"].abs().quantile(0.98)
    panels = panels_by_title(grids.change_map(change))
    for role, axes in panels.items():
        expected = theme.layer_head(change, role, "difference")
        np.testing.assert_array_equal(mesh(axes), expected)
        assert axes.collections[0].get_clim() == pytest.approx((-end, end))
        assert marks(axes) == cells(change, role, change["difference"].abs() > end / 3)


def test_change_map_of_no_change_and_missing_roles_can_be_drawn(change):
    figure = grids.change_map(change.assign(difference=np.where(change["role"] == "block", np.nan, 0.0)))
    assert all(not marks(axes) for axes in panels_by_title(figure).values())


def test_assignment_draws_one_bar_per_head_whose_height_is_its_verdict(table):
    axes = grids.assignment(table)
    centres = {(round(bar.get_x() + bar.get_width() / 2), round(bar.get_y() + bar.get_height() / 2)): bar
               for bar in axes.patches}  # fmt: skip
    assert len(centres) == len(axes.patches) == len(table)
    heights = {True: 0.8, False: 0.1, None: 0.4}
    for row in table.itertuples():
        bar = centres[row.layer * HEADS + row.head, ROLES.index(row.role)]
        verdict = None if pd.isna(row.assigned) else bool(row.assigned)
        assert bar.get_height() == pytest.approx(heights[verdict])
        assert (bar.get_hatch() is not None) == (verdict is None)
        if verdict:
            assert same_color(bar.get_facecolor(), colours.ROLE_COLOURS[row.role])
    assert [label.get_text() for label in axes.get_yticklabels()] == ROLES
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2"]


def test_role_map_marks_the_assigned_heads_of_every_role_and_crosses_the_untestable(table):
    figure = grids.role_map({"mrpc": table})
    (axes,) = figure.axes
    for role in ROLES:
        found = [artist for artist in axes.collections if artist.get_label() == role]
        assigned, untestable = found
        expected = cells(table, role, table["assigned"]), cells(table, role, table["assigned"].isna())
        for artist, heads in zip((assigned, untestable), expected, strict=True):
            assert {(round(y), round(x)) for x, y in artist.get_offsets()} == heads
            assert len(artist.get_offsets()) == len(heads)


def test_role_map_gives_every_role_its_own_place_inside_the_cell_and_in_the_key(table):
    always = table.assign(assigned=pd.array([True] * len(table), dtype="boolean"))
    (axes,) = grids.role_map({"mrpc": always}).axes
    shown = [
        artist for artist in axes.collections if len(artist.get_offsets()) and artist.get_label() in ROLES
    ]
    places = {artist.get_label(): np.asarray(artist.get_offsets())[0] for artist in shown}
    assert len({tuple(place) for place in places.values()}) == len(places) == len(ROLES)
    assert all((np.abs(place) < 0.5).all() for place in places.values())
    by_place = sorted(places, key=lambda role: (round(places[role][0], 3), -places[role][1]))
    key = [text.get_text() for text in axes.figure.legends[0].get_texts() if text.get_text().strip()]
    assert key == by_place  # a legend fills its columns first, from the top


def test_role_map_crosses_a_role_that_only_another_task_has(table):
    without = table[table["role"] != "block"]
    figure = grids.role_map({"mrpc": table.fillna({"assigned": True}), "sst-2": without})
    pair, single = figure.axes
    assert (pair.get_title(), single.get_title()) == ("mrpc", "sst-2")
    everywhere = {(layer, head) for layer in range(LAYERS) for head in range(HEADS)}
    assert marks(single, label="block") == everywhere
    assert [len(artist.get_offsets()) for artist in single.collections if artist.get_label() == "block"] == [
        0,
        LAYERS * HEADS,
    ]


def test_role_map_of_few_roles_draws_no_crosses_for_roles_that_were_not_studied():
    table = role_table(["local", "sep"]).fillna({"assigned": False})
    (axes,) = grids.role_map({"qnli": table}).axes
    assert marks(axes) == cells(table, "local", table["assigned"]) | cells(table, "sep", table["assigned"])


@pytest.mark.parametrize("heads", [5, 12, 16])
def test_marks_of_the_role_map_do_not_overlap_their_neighbours(heads):
    index = pd.MultiIndex.from_product([ROLES, range(6), range(heads)], names=["role", "layer", "head"])
    table = index.to_frame(index=False).assign(assigned=pd.array([True] * len(index), dtype="boolean"))
    figure = grids.role_map({task: table for task in ("mrpc", "qqp", "sst-2", "qnli")})
    figure.canvas.draw()
    axes = figure.axes[0]
    pixels = 72 / figure.dpi * (axes.transData.transform((1, 0)) - axes.transData.transform((0, 0)))[0]
    width = max(
        np.sqrt(artist.get_sizes()[0]) for artist in axes.collections if artist.get_label() == "local"
    )
    assert width < pixels / 4.4


def test_every_grid_names_its_axes(table, change):
    drawn = [
        grids.mean_maps(table, 3.0),
        grids.change_map(change),
        grids.assignment(table),
        grids.role_map({"mrpc": table}),
    ]
    assert [unnamed(figure) for figure in drawn] == [[]] * len(drawn)
