"""Maps of heads: a number per head, and numbers of heads by role and layer."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Bool, Float
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures import theme
from analysis.figures.colours import SEQUENTIAL
from analysis.figures.theme import DOUBLE, HEAD, LAYER, STATE_NAMES, as_written

LAYER_UPWARDS = "layer (0-based, layer 0 at the bottom)"


@as_written
def head_grids(
    values: Mapping[str, Float[np.ndarray, "layer head"]],
    label: str,
    marked: Mapping[str, Bool[np.ndarray, "layer head"]] | None = None,
    columns: int = 5,
    ticks: Sequence[float | int] | None = None,
    **colours: object,
) -> Figure:
    """A layer x head map for each title, with one colour scale named `label`; a dot on the heads that are `marked`.

    `colours` are those of pcolormesh, such as cmap, vmin and norm, which give all maps one scale; `ticks` are those of
    the scale. Missing cells are hatched. A map of one column shows the means of layers.
    """
    layers, heads = np.max([grid.shape for grid in values.values()], axis=0)
    columns = theme.even_columns(len(values), columns)
    height = 0.2 + float(np.clip(DOUBLE / columns / heads * layers, 0.9, 3.4))  # cells are about square
    cell = 72 * min(0.8 * DOUBLE / columns / heads, (height - 0.2) / layers)  # the shorter side (points)
    share = len({grid.shape for grid in values.values()}) == 1
    figure, panels = theme.rows_of_axes(len(values), columns, height, 0.4, sharex=share, sharey=share)
    for axes, (title, grid) in zip(panels, values.items(), strict=True):
        mesh = theme.layer_head_mesh(axes, grid, **colours)
        if grid.shape[1] == 1:  # means of layers, which have no heads
            axes.set_xticks([])
        if marked is not None:
            rows, places = np.nonzero(marked[title])
            shades = mesh.to_rgba(grid[rows, places])[:, :3] @ [0.3, 0.6, 0.1]
            size = np.clip(0.25 * cell, 1.5, 4)  # of a dot (points)
            axes.scatter(places, rows, s=size**2, c=np.where(shades < 0.5, "white", "black"), linewidth=0)
        axes.set_title(title)
    figure.supxlabel(HEAD)
    one_row = len(values) == columns
    figure.supylabel(LAYER_UPWARDS.replace(", ", ",\n") if one_row else LAYER_UPWARDS)
    beyond = _beyond(np.concatenate([grid.ravel() for grid in values.values()]), mesh.norm)
    bar = {"aspect": 40, "pad": 0.02, "format": "{x:g}"}
    figure.colorbar(mesh, ax=panels, extend=beyond, label=label, ticks=ticks, **bar)
    return figure


def _beyond(values: Float[np.ndarray, " cell"], scale: Normalize) -> str:
    """The ends of a colour scale beyond which values lie, as `colorbar` names them."""
    below = bool(np.nanmin(values, initial=scale.vmin) < scale.vmin)
    above = bool(np.nanmax(values, initial=scale.vmax) > scale.vmax)
    return ("neither", "min", "max", "both")[below + 2 * above]


@as_written
def role_layer_maps(table: pd.DataFrame, value: str, label: str, row: str) -> Figure:
    """Numbers of heads by role and layer: a map for each task and each value of the column `row`.

    `table` has task, role, layer, `row` and `value`, the number; a role that is not applicable has no number
    and is hatched.
    """
    numbers = pd.to_numeric(table[value]).astype(float)
    titles = table["task"].astype(str) + ", " + table[row].astype(str).replace(STATE_NAMES)
    panels = [title for name in table[row].unique() for title in titles[table[row] == name].unique()]
    roles, most = theme.in_order(table["role"]), max(1.0, numbers.max())
    columns = min(4 if table["layer"].nunique() <= 8 else 2, len(panels))  # numbers stay readable
    height = 0.15 * len(roles) + 0.5
    grid = sns.FacetGrid(
        table.assign(number=numbers, panel=titles), col="panel", col_order=panels, col_wrap=columns,
        height=height, aspect=DOUBLE / columns / height,
    )  # fmt: skip

    def draw(data: pd.DataFrame, **_: object) -> None:
        wide = data.pivot(index="role", columns="layer", values="number").reindex(roles)
        texts = wide.map(lambda number: f"{number:g}" if number > 0 else "")
        theme.hatch_missing(plt.gca())
        scale = {"cmap": SEQUENTIAL, "vmin": 0, "vmax": most, "cbar": False}
        sns.heatmap(wide, annot=texts, fmt="", annot_kws={"fontsize": 7}, **scale)

    grid.map_dataframe(draw).set_axis_labels(LAYER, "").set_titles("{col_name}")
    grid.figure.set_layout_engine("constrained")  # after map_dataframe, which sets another one
    grid.figure.supylabel("role (hatched: not applicable)")
    scale = ScalarMappable(Normalize(0, most), SEQUENTIAL)
    whole = MaxNLocator(6, integer=True, min_n_ticks=1)
    grid.figure.colorbar(scale, ax=list(grid.axes.flat), aspect=40, pad=0.02, label=label, ticks=whole)
    return grid.figure
