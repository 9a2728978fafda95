"""The look of every figure: page widths, colours and marks of the roles, axes of layers and heads."""

import math
import sys
from collections.abc import Iterable

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

from analysis.errors import InputError

SINGLE, DOUBLE = 3.3, 6.9  # inches: one and two columns of a printed page

# The palette of Okabe and Ito, which every figure takes its colours from; brown and wine complete the ten, and differ
# from their neighbours in lightness too.
BLACK, ORANGE, SKY, GREEN, YELLOW = "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
BROWN, WINE = "#8C510A", "#882255"
GREY = "#777777"
ROLE_COLOURS = {
    "local": BLUE,
    "syntactic": GREEN,
    "delimiter": VERMILION,
    "nsubj": YELLOW,
    "dobj": PURPLE,
    "amod": ORANGE,
    "advmod": BROWN,
    "block": BLACK,
    "cls": SKY,
    "sep": WINE,
}
ROLE_MARKERS = {
    "local": "s",
    "syntactic": "o",
    "delimiter": "D",
    "nsubj": "^",
    "dobj": "v",
    "amod": ">",
    "advmod": "<",
    "block": "P",
    "cls": "*",
    "sep": "d",
}
OTHER_COLOUR, OTHER_MARKER = "0.45", "o"
MISSING = "0.85"
LAYER, HEAD = "layer (0-based)", "head (0-based)"
SCORE = "sieve bias score (1 = uniform attention)"


def style() -> None:
    """Set the theme of every later figure: 8 pt text, SVG text kept as text, reproducible SVG ids.

    In a notebook, figures then have twice the pixels.
    """
    sizes = dict.fromkeys(
        ["font.size", "axes.labelsize", "axes.titlesize", "figure.labelsize", "figure.titlesize"], 8.0
    )
    smaller = dict.fromkeys(["xtick.labelsize", "ytick.labelsize", "legend.fontsize"], 7.5)
    widths = ["axes.linewidth", "xtick.major.width", "ytick.major.width", "hatch.linewidth"]
    lines = dict.fromkeys(widths, 0.6)
    ticks = {"xtick.major.size": 3.0, "ytick.major.size": 3.0, "axes.titlepad": 4.0, "legend.frameon": False}
    files = {"svg.fonttype": "none", "svg.hashsalt": "heads", "figure.dpi": 96, "savefig.dpi": 300}
    fonts = {"font.sans-serif": ["DejaVu Sans"]}  # comes with matplotlib: figures are equal on every machine
    sns.set_theme(context="paper", style="ticks", palette="colorblind")
    mpl.rcParams.update(sizes | smaller | lines | ticks | files | fonts | {"legend.title_fontsize": 8.0})
    _sharpen_notebooks()


def _sharpen_notebooks() -> None:
    """Figures in a notebook have twice the pixels of their size on the page; nothing outside of a notebook."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("retina")


def in_order(roles: Iterable[str]) -> list[str]:
    """The distinct roles in the order of every figure; others come last, as they appear."""
    found = list(dict.fromkeys(roles))
    known = [role for role in ROLE_COLOURS if role in found]
    return known + [role for role in found if role not in known]


def colour(role: str) -> str:
    """The colour of a role, grey for one without a colour of its own."""
    return ROLE_COLOURS.get(role, OTHER_COLOUR)


def ink(role: str) -> tuple[float, ...]:
    """The colour of a role for lines and outlines: light colours are darkened so that they show on white."""
    red_green_blue = np.array(mpl.colors.to_rgb(colour(role)))
    light = red_green_blue @ [0.2126, 0.7152, 0.0722] > 0.7  # Rec. 709: how light it prints in grey
    return tuple((0.6 if light else 1.0) * red_green_blue)


def fill(role: str) -> dict[str, object]:
    """Colours of a role's bars and marks, with a thin outline."""
    return {"facecolor": colour(role), "edgecolor": ink(role), "linewidth": 0.4}


def titled(figure: Figure, title: str) -> Figure:
    """The figure with a title, where there is one."""
    if title:
        figure.suptitle(title)
    return figure


def canvas(axes: Axes | None, width: float = SINGLE, height: float = 2.4) -> Axes:
    """The axes given, else those of a new figure (inches)."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if axes is None else axes


def panels(count: int, columns: int, height: float, across: str, upwards: str) -> tuple[Figure, list[Axes]]:
    """A double-column figure of `count` panels with common axes, filled row by row.

    `height` is that of a row (inches); `across` and `upwards` name the axes.
    """
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(DOUBLE, rows * height + 0.6), sharex=True, sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for surplus in grid.flat[count:]:
        surplus.remove()
    for lowest in grid.flat[max(count - columns, 0) : count]:
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel(across)
    figure.supylabel(upwards)
    return figure, list(grid.flat[:count])


def grid_size(table: pd.DataFrame) -> tuple[int, int]:
    """Layers and heads of a role table."""
    return int(table["layer"].max()) + 1, int(table["head"].max()) + 1


def layer_head(table: pd.DataFrame, role: str, value: str) -> Float[np.ndarray, "layer head"]:
    """Column `value` of one role as layers x heads; NaN where it is missing.

    Raises InputError when the table holds a head more than once (several tasks or states).
    """
    rows = table[table["role"] == role]
    if rows.duplicated(["layer", "head"]).any():
        raise InputError(f"role {role}: the table has a head more than once; select one task and state first")
    wide = rows.astype({value: "Float64"}).pivot(index="layer", columns="head", values=value)
    layers, heads = grid_size(table)
    return wide.reindex(index=range(layers), columns=range(heads)).to_numpy(dtype=float, na_value=np.nan)


def integer_ticks(axes: Axes, bins: int = 6) -> None:
    """Whole numbers on both axes, about `bins` of them."""
    axes.xaxis.set_major_locator(MaxNLocator(bins, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(bins, integer=True))


def layer_head_mesh(axes: Axes, values: Float[np.ndarray, "layer head"], **colours: object) -> QuadMesh:
    """A heat map of layers (layer 0 at the bottom) x heads on `axes`; missing cells are grey."""
    edges = [np.arange(size + 1) - 0.5 for size in values.shape]
    axes.set_facecolor(MISSING)
    mesh = axes.pcolormesh(edges[1], edges[0], np.ma.masked_invalid(values), **colours)
    integer_ticks(axes, bins=4)
    return mesh
