"""Maps of heads: a number per head, the roles of every head, numbers of heads by role and layer."""

import itertools
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from analysis.figures.colours import MISSING, colour, ink, marker
from analysis.figures.theme import (
    DOUBLE,
    HEAD,
    LAYER,
    as_written,
    even_columns,
    fill,
    grid_size,
    in_order,
    integer_ticks,
    layer_head,
    layer_head_mesh,
    panels,
    rows_of_axes,
)
from analysis.roles import ROLES, families

ACROSS = 4  # marks side by side in the cell of a head
MARK_AREAS = {"D": 0.6, "*": 1.4, "d": 1.2}  # evens out markers that look larger or smaller
CROSS = {"marker": "x", "color": "0.7", "linewidth": 0.5}
LAYER_UPWARDS = "layer (0-based, layer 0 at the bottom)"


@as_written
def head_grids(
    values: Mapping[str, Float[np.ndarray, "layer head"]],
    label: str,
    marked: Mapping[str, Bool[np.ndarray, "layer head"]] | None = None,
    columns: int = 5,
    **colours: object,
) -> Figure:
    """A layer x head map for each title, with one colour scale named `label`; a dot on the heads that are `marked`.

    `colours` are those of pcolormesh, such as cmap, vmin and norm. Missing cells are grey.
    """
    layers, heads = np.max([each.shape for each in values.values()], axis=0)
    columns = even_columns(len(values), columns)
    height = 0.2 + float(np.clip(DOUBLE / columns / heads * layers, 0.9, 3.4))  # cells are about square
    alike = len({each.shape for each in values.values()}) == 1
    figure, grid = rows_of_axes(len(values), columns, height, 0.4, sharex=alike, sharey=alike)
    for axes, (title, each) in zip(grid, values.items(), strict=True):
        mesh = layer_head_mesh(axes, each, **colours)
        if marked is not None:
            rows, places = np.nonzero(marked[title])
            shades = mesh.to_rgba(each[rows, places])[:, :3] @ [0.3, 0.6, 0.1]
            size = min(4.0, (20 / heads) ** 2)  # points squared; smaller in narrow cells
            axes.scatter(places, rows, s=size, c=np.where(shades < 0.5, "white", "black"), linewidth=0)
        axes.set_title(title)
    figure.supxlabel(HEAD)
    figure.supylabel(LAYER_UPWARDS)
    figure.colorbar(mesh, ax=grid, extend="both", aspect=40, pad=0.02, label=label, format="{x:g}")
    return figure


@as_written
def role_layer_maps(table: pd.DataFrame, value: str, label: str, row: str) -> Figure:
    """Numbers of heads by role and layer: a map for each task and each value of the column `row`.

    `table` has task, role, layer, `row` and `value`, the number; it is grey where it is missing (untestable role).
    """
    names = table["task"].astype(str) + ", " + table[row].astype(str)
    shown = table.assign(number=pd.to_numeric(table[value]).astype(float), panel=names).sort_values(
        row,
        key=lambda column: column.map({name: place for place, name in enumerate(column.unique())}),
        kind="stable",
    )
    roles, most = in_order(shown["role"]), max(1.0, shown["number"].max())
    layers = shown["layer"].nunique()
    columns = min(4 if layers <= 8 else 2, shown["panel"].nunique())  # numbers stay readable
    height = 0.15 * len(roles) + 0.5
    grid = sns.FacetGrid(
        shown, col="panel", col_wrap=columns, height=height, aspect=DOUBLE / columns / height
    )

    def draw(data: pd.DataFrame, **_: object) -> None:
        wide = data.pivot(index="role", columns="layer", values="number").reindex(roles)
        told = wide.map(lambda number: f"{number:g}" if number > 0 else "")
        plt.gca().set_facecolor(MISSING)
        sns.heatmap(
            wide, annot=told, fmt="", cmap="mako_r", vmin=0, vmax=most, cbar=False, annot_kws={"fontsize": 7}
        )

    grid.map_dataframe(draw).set_axis_labels(LAYER, "").set_titles("{col_name}")
    grid.figure.set_layout_engine("constrained")  # after map_dataframe, which sets another one
    grid.figure.supylabel("role (grey: untestable)")
    scale = ScalarMappable(Normalize(0, most), "mako_r")
    grid.figure.colorbar(scale, ax=list(grid.axes.flat), aspect=40, pad=0.02, label=label)
    return grid.figure


@as_written
def role_map(tables: dict[str, pd.DataFrame]) -> Figure:
    """The role map: per task a grid of layers x heads, in each cell one mark per role the head has.

    Every role of the study has its own place in the cell, which the legend repeats; a grey cross there means
    untestable. Source: Pande 2021, role map.
    """
    every = pd.concat(tables.values())
    (layers, heads), roles = grid_size(every), set(every["role"])
    cell = (DOUBLE - 0.5) / min(2, len(tables)) / heads  # inches
    height = 0.2 + float(np.clip(cell * layers, 0.9, 3.4))  # cells are about square
    figure, axes = panels(len(tables), 2, height, HEAD, LAYER_UPWARDS)
    figure.set_figheight(figure.get_figheight() + 0.5)  # room for the key
    size = min(0.75 * 72 * cell / ACROSS, 9.0) ** 2  # points squared
    for panel, (task, table) in zip(axes, tables.items(), strict=True):
        _role_marks(panel, table, roles, size)
        _cell_borders(panel, layers, heads)
        panel.set_title(task)
    key = "Place of each role within the cell of a head (grey × there: untestable)"
    figure.legend(handles=_role_key(), ncols=4, loc="outside lower center", frameon=True, title=key)
    return figure


SURVIVAL = {"local": (-0.22, 0.2), "syntactic": (0.22, 0.2), "block": (0, -0.2)}


@as_written
def survival_map(
    published: Mapping[str, Float[np.ndarray, "layer head"]],
    controlled: Mapping[str, Float[np.ndarray, "layer head"]],
    framed: Mapping[str, tuple[str, Bool[np.ndarray, "layer head"]]],
    cls: Float[np.ndarray, "layer head"],
) -> Figure:
    """Heads whose role survives its control (filled) and heads that only the published rule labels (hollow).

    `published` and `controlled` are shares of the tasks in which a head has the label; any share above 0 counts.
    `framed` maps a title to a colour and the heads around which a frame stands. `cls` is the share of tasks with the
    role [CLS], which stands in a strip of its own, since nearly every head of some encoders has it.
    """
    layers, heads = cls.shape
    figure, (grid, strip) = plt.subplots(
        1, 2, figsize=(DOUBLE, 0.42 * layers + 1.1), width_ratios=(3, 1), layout="constrained", sharey=True
    )
    size = min(0.36 * 72 * 0.7 * DOUBLE / heads, 8.0) ** 2
    for role, (across, upwards) in SURVIVAL.items():
        for chosen, inside in ((published[role] > 0, "white"), (controlled[role] > 0, colour(role))):
            rows, places = np.nonzero(chosen)
            look = {
                "marker": marker(role),
                "facecolor": inside,
                "edgecolor": ink(role),
                "linewidth": 0.8,
            }
            grid.scatter(places + across, rows + upwards, s=size, **look)
    _cell_borders(grid, layers, heads)
    for inset, (shade, chosen) in enumerate(framed.values()):
        side = 0.92 - 0.13 * inset
        for row, place in np.argwhere(chosen):
            grid.add_patch(
                Rectangle((place - side / 2, row - side / 2), side, side, fill=False, ec=shade, lw=1.8)
            )
    grid.set(xlabel=HEAD, ylabel=LAYER_UPWARDS)
    mesh = layer_head_mesh(strip, cls, cmap="Greys", vmin=0, vmax=1)
    strip.set(title="[CLS] heads", xlabel=HEAD)
    figure.colorbar(mesh, ax=strip, label="share of the tasks", ticks=[0, 0.5, 1])
    marks = [_key(role) for role in SURVIVAL]
    marks += [Line2D([], [], linestyle="", marker="s", markersize=9, markerfacecolor="none", markeredgewidth=1.8,
                     markeredgecolor=shade, label=title) for title, (shade, _) in framed.items()]  # fmt: skip
    told = "filled: the role survives its control in some task; hollow: the published rule alone"
    figure.legend(handles=marks, ncols=len(marks), loc="outside lower center", title=told, columnspacing=1.2)
    return figure


def _role_marks(axes: Axes, table: pd.DataFrame, roles: set[str], size: float) -> None:
    """The marks of one task's role map; a role that is missing for the task is untestable there."""
    places = _places()
    middle = (len(places) - 1) / 2
    for row, names in enumerate(places):
        for column, role in enumerate(names):
            label = layer_head(table, role, "assigned") if role in roles else np.zeros((0, 0))
            mark = {"s": size * MARK_AREAS.get(marker(role), 1.0), "marker": marker(role)}
            for chosen, look in (
                (label == 1, mark | fill(role)),
                (np.isnan(label), {"s": size / 4} | CROSS),
            ):
                layers, heads = np.nonzero(chosen)
                upwards = (middle - row) / (len(places) + 0.4)
                axes.scatter(heads + (column - 1.5) / 4.4, layers + upwards, label=role, **look)


def _places() -> list[list[str]]:
    """The rows of marks in the cell of a head: coarse roles, then the others in their order."""
    coarse = [*families()]
    finer = [role for role in ROLES if role not in coarse]
    return [
        roles[start : start + ACROSS] for roles in (coarse, finer) for start in range(0, len(roles), ACROSS)
    ]


def _cell_borders(axes: Axes, layers: int, heads: int) -> None:
    """Pale lines between the cells of a grid, and its limits."""
    axes.hlines(np.arange(1, layers) - 0.5, -0.5, heads - 0.5, color="0.75", linewidth=0.6, zorder=0)
    axes.vlines(np.arange(1, heads) - 0.5, -0.5, layers - 0.5, color="0.75", linewidth=0.6, zorder=0)
    axes.set(xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5))
    integer_ticks(axes, bins=12)


def _role_key() -> list[Line2D]:
    """Legend handles in the arrangement of the marks in a cell (a legend fills its columns first)."""
    columns = itertools.zip_longest(*_places())
    return [_key(role) for column in columns for role in column]


def _key(role: str | None) -> Line2D:
    """The legend entry of one role; an empty one for a place without a role."""
    if role is None:
        return Line2D([], [], linestyle="", label=" ")
    size = 6 * MARK_AREAS.get(marker(role), 1.0) ** 0.5
    return Line2D([], [], linestyle="", label=role, marker=marker(role), markersize=size,
                  markerfacecolor=colour(role), markeredgecolor=ink(role), markeredgewidth=0.5)  # fmt: skip
