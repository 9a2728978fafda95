"""The role map drawn small: which heads have each coarse role, four squares in the cell of a head."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.theme import DOUBLE, HEAD, LAYER, MISSING, colour, grid_size, panels, titled
from analysis.statistics.roles import COARSE, coarse_memberships

# The square of each coarse role within a cell: row (from below) and column.
PLACES = dict(zip(COARSE, ((1, 0), (1, 1), (0, 0), (0, 1)), strict=True))
EMPTY = 0.95  # grey of a square whose role the head has not
GAP = 1  # empty rows and columns of squares between cells


def small_role_map(tables: Mapping[str, pd.DataFrame], label: str = "assigned", title: str = "") -> Figure:
    """The coarse roles of every head, a panel per task in one row: a coloured square is a role that the head has.

    A head has a coarse role with it or one of its finer roles (FAMILIES); `label` is the column of the role tables that
    says so. A role that no head of a task can have is dark grey there.
    """
    layers, heads = grid_size(pd.concat(tables.values()))
    height = np.clip(DOUBLE / len(tables) * layers / heads, 0.9, 2.5)  # about square cells
    figure, axes = panels(len(tables), len(tables), height, HEAD, LAYER)
    for panel, (task, table) in zip(axes, tables.items(), strict=True):
        image = _squares(table.assign(assigned=table[label]), layers, heads)
        panel.imshow(image, origin="lower", aspect="auto", extent=(-0.5, heads - 0.5, -0.5, layers - 0.5),
                     interpolation="nearest")  # fmt: skip
        panel.set_title(task)
        panel.set_xticks(range(0, heads, max(1, heads // 4)))
        panel.set_yticks(range(0, layers, max(1, layers // 6)))
        panel.tick_params(length=0)
    keys = [Patch(color=colour(role), label=role) for role in COARSE]
    keys.append(Patch(color=MISSING, label="untestable"))
    figure.legend(handles=keys, ncols=len(keys), loc="outside lower center")
    return titled(figure, title)


def _squares(table: pd.DataFrame, layers: int, heads: int) -> Float[np.ndarray, "down across 3"]:
    """The image of one task: two by two squares for each head, a white gap after each."""
    size = 2 + GAP
    image = np.ones((size * layers, size * heads, 3))
    held = coarse_memberships(table)
    testable = table.groupby("role")["assigned"].apply(lambda label: label.notna().any())
    for role, (up, across) in PLACES.items():
        empty = to_rgb(str(EMPTY)) if testable.get(role, False) else to_rgb(MISSING)
        has = (
            held[role].unstack("head").to_numpy(dtype=bool)
            if role in held
            else np.zeros((layers, heads), bool)
        )
        image[up::size, across::size] = np.where(has[..., None], to_rgb(colour(role)), empty)
    return image
