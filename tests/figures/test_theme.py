import matplotlib as mpl
import numpy as np
from drawing import HEADS, LAYERS, ROLES, role_table

from analysis import roles
from analysis.figures import colours, theme


def test_every_role_has_its_own_colour_and_marker():
    assert [*roles.ROLES] == ROLES
    assert len({*map(colours.colour, ROLES)}) == len({*map(colours.marker, ROLES)}) == len(ROLES)
    assert colours.colour("window_3") == colours.OTHER_COLOUR
    assert theme.in_order(["none", "sep", "local", "sep"]) == ["local", "sep", "none"]
    for role in ROLES:  # a line shows on white
        red, green, blue = colours.ink(role)
        assert 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.7


def test_layer_head_agrees_with_a_lookup_of_every_cell():
    table = role_table().query("role == 'nsubj'").sample(frac=1, random_state=1)
    for value in ("mean", "assigned"):
        matrix = theme.layer_head(table, "nsubj", value)
        assert matrix.shape == (LAYERS, HEADS)
        expected = table[value].astype("Float64").to_numpy(float, na_value=np.nan)
        np.testing.assert_array_equal(matrix[table["layer"], table["head"]], expected)


def test_settings_of_the_user_do_not_act():
    """As a matplotlibrc would set them."""
    theme.style()
    expected = dict(mpl.rcParams)
    mpl.rcParams.update({"lines.linewidth": 9.0, "axes.grid": True, "figure.facecolor": "red"})
    theme.style()
    assert dict(mpl.rcParams) == expected
