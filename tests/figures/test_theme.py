import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, ROLES, role_table
from matplotlib import pyplot as plt

from analysis.errors import InputError
from analysis.figures import colours, theme


def test_every_role_has_its_own_colour_and_marker():
    assert list(colours.ROLE_COLOURS) == list(theme.ROLE_MARKERS) == ROLES
    assert len(set(colours.ROLE_COLOURS.values())) == len(set(theme.ROLE_MARKERS.values())) == len(ROLES)
    assert colours.colour("window_3") == colours.OTHER_COLOUR


def test_known_roles_come_in_the_order_of_the_figures_and_others_last():
    assert theme.in_order(["none", "sep", "local", "sep"]) == ["local", "sep", "none"]


def test_style_sets_a_readable_and_reproducible_theme():
    with mpl.rc_context():
        theme.style()
        assert mpl.rcParams["axes.labelsize"] == 8.0
        assert mpl.rcParams["svg.fonttype"] == "none"
        assert mpl.rcParams["svg.hashsalt"] is not None


def test_layer_head_agrees_with_a_lookup_of_every_cell():
    table = role_table().sample(frac=1, random_state=1)
    for value in ("mean", "assigned"):
        matrix = theme.layer_head(table, "nsubj", value)
        assert matrix.shape == (LAYERS, HEADS)
        for row in table[table["role"] == "nsubj"].to_dict("records"):
            expected = np.nan if pd.isna(row[value]) else float(row[value])
            assert matrix[row["layer"], row["head"]] == pytest.approx(expected, nan_ok=True)


def test_layer_head_of_an_absent_role_is_missing_everywhere():
    matrix = theme.layer_head(role_table(["local"]), "sep", "mean")
    assert matrix.shape == (LAYERS, HEADS)
    assert np.isnan(matrix).all()


def test_layer_head_refuses_a_table_of_two_tasks():
    with pytest.raises(InputError, match="select one task"):
        theme.layer_head(pd.concat([role_table(), role_table()]), "local", "mean")


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (3, 2), (4, 2)])
def test_panels_name_the_lowest_axes_and_remove_the_surplus(count, rows):
    figure, axes = theme.panels(count, 2, 1.0, "head", "layer")
    assert len(axes) == len(figure.axes) == count
    assert [panel.get_xlabel() for panel in axes] == [""] * (count - min(2, count)) + ["head"] * min(2, count)
    assert figure.get_supylabel() == "layer"
    assert figure.get_figwidth() == theme.DOUBLE
    assert figure.get_figheight() == pytest.approx(rows * 1.0 + 0.6)


def test_mesh_has_layer_zero_at_the_bottom_and_hides_missing_cells():
    _, axes = plt.subplots()
    values = np.array([[0.0, 1.0, np.nan], [3.0, 4.0, 5.0]])
    mesh = theme.layer_head_mesh(axes, values)
    np.testing.assert_array_equal(mesh.get_array().mask, np.isnan(values))
    np.testing.assert_array_equal(mesh.get_array().filled(np.nan), values)
    assert axes.get_ylim() == (-0.5, 1.5)
    assert axes.get_xlim() == (-0.5, 2.5)
    assert all(tick == round(tick) for tick in [*axes.get_xticks(), *axes.get_yticks()])


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")
