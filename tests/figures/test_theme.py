import matplotlib as mpl
import numpy as np
from headtables import ALL_ROLES, HEADS, LAYERS, role_table

from analysis import roles
from analysis.figures import colours, theme
from analysis.figures.words import finding, share


def test_every_role_has_its_own_colour_and_marker():
    assert [*roles.ROLES] == ALL_ROLES
    assert len({*map(colours.colour, ALL_ROLES)}) == len({*map(colours.marker, ALL_ROLES)}) == len(ALL_ROLES)
    assert colours.colour("window_3") == colours.OTHER_COLOUR
    fixed = [colours.SKY, colours.WINE, colours.MATCHING_HEADS]
    assert [colours.colour(role) for role in ("cls", "sep", "match")] == fixed
    in_order = theme.in_order("match sep none block nsubj sep".split())
    assert in_order == "nsubj sep block match none".split()
    for role in ALL_ROLES:  # a line shows on white
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
    theme.style()
    expected = dict(mpl.rcParams)
    mpl.rcParams.update({"lines.linewidth": 9.0, "axes.grid": True, "figure.facecolor": "red"})
    theme.style()
    assert dict(mpl.rcParams) == expected


def test_missing_cells_are_hatched_and_quantities_begin_near_white():
    axes = theme.canvas(3, 3)
    mesh = theme.layer_head_mesh(axes, np.array([[0.0, 1], [2, np.nan]]), vmin=0)
    assert axes.patch.get_hatch()
    assert mesh.to_rgba(0.0)[:3] > (0.95, 0.95, 0.95)
    assert np.isnan(mesh.get_array().filled(np.nan)[1, 1])


def test_percentages_and_missing_numbers_in_findings():
    nan = float("nan")
    text = finding(f"47% of 5 %, {nan:.0%} and {nan:+.1f} of the nano-heads, {nan:.0f} %").data
    assert text == "**Finding.** 47 % of 5 %, – and – of the nano-heads, –"
    assert (share(27, 47), share(0, 0)) == ("27 of 47 (57%)", "0 of 0")
