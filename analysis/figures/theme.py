"""The look of every figure: page widths, marks of the roles, axes of layers and heads."""

import itertools
import math
import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import MISSING, SEQUENTIAL
from analysis.roles import ROLES, families

LOOK = Path(__file__).with_name("study.mplstyle")  # sizes of text and lines; reproducible files
SINGLE, DOUBLE = 3.3, 6.9  # inches: one and two columns of a printed page

STATE_NAMES = {"pretrained": "pre-trained", "finetuned": "fine-tuned"}  # as figures write them
LAYER, HEAD = "layer (0-based)", "head (0-based)"
HEADS_BY_LAYER = "layer (0-based; heads in order within each layer)"

# Decorates a drawer whose labels may hold `$`, as word pieces do, which begins no formula. Axes that exist already
# parse their title and the names of their axes: there, pass `parse_math=False`.
as_written = mpl.rc_context({"text.parse_math": False})


def style() -> None:
    """Set the theme of every later figure: 8 pt text.

    Settings of the user (matplotlibrc) do not act. In a notebook, figures then have twice the pixels.
    """
    mpl.rcdefaults()
    sns.set_theme(context="paper", style="ticks", palette="colorblind")
    mpl.rcParams.update(mpl.rc_params_from_file(LOOK, use_default_template=False))
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("retina")


def in_order(roles: Iterable[str]) -> list[str]:
    """The distinct roles in the order of every figure, by family; others come last, as they appear."""
    distinct = list(dict.fromkeys(roles))
    by_family = dict.fromkeys(itertools.chain(*families().values(), ROLES))
    known = [role for role in by_family if role in distinct]
    return known + [role for role in distinct if role not in known]


def canvas(width: float, height: float) -> Axes:
    """The axes of a new figure (inches)."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def even_columns(count: int, columns: int) -> int:
    """The number of columns, at most `columns`, that makes rows about equally long: 2 and 2 panels, not 3 and 1."""
    return math.ceil(count / math.ceil(count / columns))


def panels(count: int, columns: int, height: float, across: str, upwards: str) -> tuple[Figure, list[Axes]]:
    """A double-column figure of `count` panels (see `rows_of_axes`) with common axes named `across` and `upwards`."""
    figure, axes = rows_of_axes(count, columns, height, 0.6, sharex=True, sharey=True)
    for lowest in axes[-even_columns(count, columns) :]:
        lowest.set_xlabel(across)
    figure.supylabel(upwards)
    return figure, axes


def rows_of_axes(
    count: int, columns: int, height: float, rest: float = 0.0, **options: object
) -> tuple[Figure, list[Axes]]:
    """A double-column figure of `count` axes, filled row by row; `options` are those of `plt.subplots`.

    At most `columns` stand in a row (see `even_columns`). `height` is that of a row, `rest` that of all else (inches).
    """
    if not count:
        figure = plt.figure(figsize=(DOUBLE, 0.8), layout="constrained")
        figure.text(0.5, 0.9, "nothing was measured", ha="center", va="top")
        return figure, []
    columns = even_columns(count, columns)
    rows = math.ceil(count / columns)
    size = (DOUBLE, rows * height + rest)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)
    for surplus in grid.flat[count:]:
        surplus.remove()
    axes = list(grid.flat[:count])
    for lowest in axes[-columns:]:  # shared axes would have no numbers above a removed panel
        lowest.tick_params(labelbottom=True)
    return figure, axes


@as_written
def empty(reason: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    axes = canvas(SINGLE, 1)
    axes.set_axis_off()  # a notebook does not show a figure without axes
    axes.text(0.5, 0.5, reason, ha="center", va="center")
    return axes.figure


def heads_by_layer(axes: Axes, layers: int, heads: int) -> None:
    """The horizontal axis of all heads: a tick in the middle of each layer, pale lines between layers."""
    axes.vlines(np.arange(1, layers) * heads - 0.5, 0, 1, transform=axes.get_xaxis_transform(),
                color="0.75", linewidth=0.5, zorder=0)  # fmt: skip
    axes.set_xlim(-0.5, layers * heads - 0.5)
    axes.set_xticks((np.arange(layers) + 0.5) * heads - 0.5, labels=map(str, range(layers)))
    axes.tick_params(axis="x", length=0)


def head_grid(table: pd.DataFrame, column: str) -> Float[np.ndarray, "layer head"]:
    """A column of a table with one row per head, as layers x heads; NaN if it is missing."""
    return table.pivot(index="layer", columns="head", values=column).to_numpy(float, na_value=np.nan)


def layer_head(table: pd.DataFrame, role: str, value: str) -> Float[np.ndarray, "layer head"]:
    """Column `value` of one role, in the table of one task and state, as layers x heads; NaN if it is missing."""
    return head_grid(table[table["role"] == role], value)


def integer_ticks(axes: Axes, bins: int = 6) -> None:
    """Whole numbers on both axes, about `bins` of them."""
    axes.xaxis.set_major_locator(MaxNLocator(bins, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(bins, integer=True))


def layer_head_mesh(axes: Axes, values: Float[np.ndarray, "layer head"], **colours: object) -> QuadMesh:
    """A heat map of layers (layer 0 at the bottom) x heads on `axes`; missing cells are hatched.

    `colours` are those of pcolormesh; without a `cmap`, the map is SEQUENTIAL.
    """
    edges = [np.arange(size + 1) - 0.5 for size in values.shape]
    hatch_missing(axes)
    mesh = axes.pcolormesh(edges[1], edges[0], np.ma.masked_invalid(values), **{"cmap": SEQUENTIAL} | colours)
    integer_ticks(axes, bins=4)
    return mesh


def hatch_missing(axes: Axes) -> None:
    """Makes the ground of axes grey with hatches, which shows where a map has no cell."""
    axes.patch.set(facecolor=MISSING, edgecolor="white", hatch="/////", linewidth=0)
