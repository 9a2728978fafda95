import numpy as np
import pandas as pd
import pytest
from drawing import ROLES, role_table, unnamed
from matplotlib.collections import PathCollection, QuadMesh

from analysis.figures import grids, theme


@pytest.fixture
def table() -> pd.DataFrame:
    return role_table()


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


def test_head_grids_show_the_numbers_and_dot_the_marked_heads(table):
    means = {role: theme.layer_head(table, role, "mean") for role in ROLES}
    held = {role: theme.layer_head(table, role, "assigned") == 1 for role in ROLES}
    figure = grids.head_grids(means, "mean score", held, cmap="vlag", vmin=0, vmax=5)
    panels = panels_by_title(figure)
    assert list(panels) == ROLES
    for role, axes in panels.items():
        np.testing.assert_array_equal(mesh(axes), means[role])
        assert axes.collections[0].get_clim() == (0, 5)
        assert marks(axes) == cells(table, role, table["assigned"])
    assert unnamed(figure) == []


def test_role_layer_maps_write_the_number_of_heads():
    rows = [("mrpc", state, role, layer, layer + (role == "sep")) for state in ("before", "after")
            for role in ("local", "sep") for layer in range(3)]  # fmt: skip
    counts = pd.DataFrame(rows, columns=["task", "state", "role", "layer", "heads"])
    counts["heads"] = counts["heads"].astype("Int64").mask(counts["role"].eq("sep") & counts["layer"].eq(2))
    figure = grids.role_layer_maps(counts, "heads", "heads with the role", row="state")
    panels = panels_by_title(figure)
    assert list(panels) == ["mrpc, before", "mrpc, after"]
    for axes in panels.values():
        written = [text.get_text() for text in axes.texts if text.get_text()]
        assert written == ["1", "2", "1", "2"]  # nothing for 0 heads and for an untestable role


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
