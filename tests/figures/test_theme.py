import numpy as np
from drawing import HEADS, LAYERS, ROLES, role_table
from matplotlib import pyplot as plt

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


def test_mesh_has_layer_zero_at_the_bottom_and_hides_missing_cells():
    _, axes = plt.subplots()
    values = np.array([[0.0, 1.0, np.nan], [3.0, 4.0, 5.0]])
    mesh = theme.layer_head_mesh(axes, values)
    np.testing.assert_array_equal(mesh.get_array().filled(np.nan), values)
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 2.5), (-0.5, 1.5))
