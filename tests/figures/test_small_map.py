import numpy as np
import pandas as pd
from drawing import HEADS, LAYERS, role_table, unnamed
from matplotlib.colors import to_rgb

from analysis.figures.small_map import EMPTY, GAP, PLACES, small_role_map
from analysis.figures.theme import MISSING, colour
from analysis.statistics.roles import FAMILIES

SIZE = 2 + GAP


def test_a_square_for_every_coarse_role_of_every_head():
    table = role_table()
    (axes,) = small_role_map({"mrpc": table}).axes
    image = np.asarray(axes.images[0].get_array())
    assert image.shape == (SIZE * LAYERS, SIZE * HEADS, 3)
    assigned = table["assigned"].fillna(False).astype(bool)
    for role, (up, across) in PLACES.items():
        holders = table[assigned & table["role"].isin(FAMILIES[role])]
        held = {(row.layer, row.head) for row in holders.itertuples()}
        for layer in range(LAYERS):
            for head in range(HEADS):
                square = image[SIZE * layer + up, SIZE * head + across]
                missing = to_rgb(MISSING) if role == "block" else to_rgb(str(EMPTY))
                expected = to_rgb(colour(role)) if (layer, head) in held else missing
                np.testing.assert_allclose(square, expected)


def test_another_label_and_several_tasks():
    table = role_table().assign(assigned_controlled=pd.array([False] * len(role_table()), dtype="boolean"))
    figure = small_role_map({"mrpc": table, "qnli": table}, "assigned_controlled", title="controlled")
    assert [axes.get_title() for axes in figure.axes] == ["mrpc", "qnli"]
    image = np.asarray(figure.axes[1].images[0].get_array())
    assert {tuple(colour) for colour in image.reshape(-1, 3)} == {(1.0, 1.0, 1.0), to_rgb(str(EMPTY))}
    assert figure.get_suptitle() == "controlled"
    assert unnamed(figure) == []
