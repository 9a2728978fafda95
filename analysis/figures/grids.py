"""Maps of heads: a number per head, numbers of heads by role and layer, and all heads of an encoder in one picture."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Bool, Float
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from analysis.figures import theme
from analysis.figures.colours import MATCHING_HEADS, SEQUENTIAL, colour, ink, marker
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
    the scale. Missing cells are hatched.
    """
    layers, heads = np.max([grid.shape for grid in values.values()], axis=0)
    columns = theme.even_columns(len(values), columns)
    height = 0.2 + float(np.clip(DOUBLE / columns / heads * layers, 0.9, 3.4))  # cells are about square
    cell = 72 * min(0.8 * DOUBLE / columns / heads, (height - 0.2) / layers)  # the shorter side (points)
    share = len({grid.shape for grid in values.values()}) == 1
    figure, panels = theme.rows_of_axes(len(values), columns, height, 0.4, sharex=share, sharey=share)
    for axes, (title, grid) in zip(panels, values.items(), strict=True):
        mesh = theme.layer_head_mesh(axes, grid, **colours)
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
    figure.colorbar(
        mesh, ax=panels, extend=beyond, aspect=40, pad=0.02, label=label, format="{x:g}", ticks=ticks
    )
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
        sns.heatmap(
            wide,
            annot=texts,
            fmt="",
            cmap=SEQUENTIAL,
            vmin=0,
            vmax=most,
            cbar=False,
            annot_kws={"fontsize": 7},
        )

    grid.map_dataframe(draw).set_axis_labels(LAYER, "").set_titles("{col_name}")
    grid.figure.set_layout_engine("constrained")  # after map_dataframe, which sets another one
    grid.figure.supylabel("role (hatched: not applicable)")
    scale = ScalarMappable(Normalize(0, most), SEQUENTIAL)
    grid.figure.colorbar(scale, ax=list(grid.axes.flat), aspect=40, pad=0.02, label=label)
    return grid.figure


# Where the mark of a role stands in the cell of a head.
PLACES = {"local": (-0.22, 0.2), "syntactic": (0.22, 0.2), "block": (0, -0.2)}
# How full it is by the strictest count that the head is in, and the name of this count.
FILLS = {
    "assigned": ("none", "published rule"),
    "exceeds_control": ("left", "exceeds the control"),
    "assigned_controlled": ("full", "exceeds it by τ − 1"),
}


@as_written
def head_summary(
    table: pd.DataFrame,
    effect: Float[np.ndarray, "layer head"],
    label: str,
    framed: Bool[np.ndarray, "layer head"],
    frame: str,
) -> Figure:
    """The heads of one encoder: colour for the ablation effect, marks for roles that have a control, frames.

    `table` is the role table of one task and state; `effect` (NaN: not measured) is named `label`, and `frame` says
    what the `framed` heads are.
    """
    layers, heads = effect.shape
    axes = theme.canvas(DOUBLE, 0.42 * layers + 1.3)
    top = np.nanmax(effect, initial=1e-6)
    mesh = theme.layer_head_mesh(
        axes, effect, cmap="Greys", vmin=0, vmax=2 * top
    )  # pale, so that marks stand out
    axes.figure.colorbar(mesh, ax=axes, label=label, format="{x:g}").ax.set_ylim(0, top)
    for role, (across, upwards) in PLACES.items():
        rows = table[(table["role"] == role) & table["assigned"].eq(True)]
        for row in rows.to_dict("records"):
            strictest = [fill for count, (fill, _) in FILLS.items() if row[count] is True][-1]
            place = row["head"] + across, row["layer"] + upwards
            axes.plot(*place, ms=6.5, fillstyle=strictest, **_look(role))
    grid = {"color": "0.75", "linewidth": 0.6, "zorder": 0}
    axes.hlines(np.arange(1, layers) - 0.5, -0.5, heads - 0.5, **grid)
    axes.vlines(np.arange(1, heads) - 0.5, -0.5, layers - 0.5, **grid)
    for layer, head in np.argwhere(framed):
        axes.add_patch(
            Rectangle((head - 0.46, layer - 0.46), 0.92, 0.92, fill=False, ec=MATCHING_HEADS, lw=1.8)
        )
    axes.set(xlabel=HEAD, ylabel=LAYER_UPWARDS, xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5))
    theme.integer_ticks(axes, bins=12)
    key = [Line2D([], [], label=role, **_look(role)) for role in PLACES]
    look = {"color": "0.3", "linestyle": "", "marker": "o", "markerfacecoloralt": "white"}
    key += [Line2D([], [], fillstyle=fill, label=name, **look) for fill, name in FILLS.values()]
    key += [
        Line2D([], [], linestyle="", marker="s", ms=9, mfc="none", mec=MATCHING_HEADS, mew=1.8, label=frame)
    ]
    axes.figure.legend(handles=key, ncols=4, loc="outside lower center", title="roles after fine-tuning")
    return axes.figure


def _look(role: str) -> dict[str, object]:
    """The mark of a role, whose empty part is white."""
    look = {"marker": marker(role), "color": colour(role), "markeredgecolor": ink(role)}
    return look | {"markerfacecoloralt": "white", "linestyle": ""}
