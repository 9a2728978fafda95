import numpy as np
import pandas as pd
from headtables import ALL_ROLES, role_table
from matplotlib.collections import PathCollection

from analysis.figures import grids, theme

TABLE = role_table()


def cells(role: str) -> set[tuple[int, int]]:
    """(layer, head) of the heads that have a role."""
    rows = TABLE[(TABLE["role"] == role) & TABLE["assigned"].fillna(False)]
    return set(zip(rows["layer"], rows["head"], strict=True))


def panels_by_title(figure) -> dict:
    return {axes.get_title(): axes for axes in figure.axes if axes.get_title()}


def test_head_grids_show_the_numbers_and_dot_the_marked_heads():
    means = {role: theme.layer_head(TABLE, role, "mean") for role in ALL_ROLES}
    labels = {role: theme.layer_head(TABLE, role, "assigned") == 1 for role in ALL_ROLES}
    figure = grids.head_grids(means, "mean score", labels, cmap="vlag", vmin=0, vmax=5)
    panels = panels_by_title(figure)
    assert list(panels) == ALL_ROLES
    assert (
        panels[ALL_ROLES[-1]].collections[0].colorbar.extend == "max"
    )  # no mean is below 0, some are above 5
    for role, axes in panels.items():
        np.testing.assert_array_equal(axes.collections[0].get_array().filled(np.nan), means[role])
        assert axes.get_ylim() == (-0.5, len(means[role]) - 0.5)  # layer 0 at the bottom
        assert axes.collections[0].get_clim() == (0, 5)
        points = [artist for artist in axes.collections if isinstance(artist, PathCollection)]
        dots = {(round(y), round(x)) for artist in points for x, y in artist.get_offsets()}
        assert dots == cells(role)


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
        assert written == ["1", "2", "1", "2"]  # nothing for 0 heads and for a role that cannot be tested
