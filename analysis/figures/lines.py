"""Curves with error bars: a panel per group, a line per series."""

import itertools
import math

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, WINE
from analysis.figures.theme import DOUBLE, as_written, even_columns

# Series differ in colour, dash and mark, to be told apart in grey.
COLOURS = (BLACK, BLUE, VERMILION, GREY, GREEN, ORANGE, WINE)
DASHES = ("-", "--", "-.", ":", (0, (6, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
LOOKS = [
    {"color": colour, "linestyle": dash, "marker": mark}
    for colour, dash, mark in zip(COLOURS, DASHES, "os^DvPX", strict=True)
]

# How the measures in the log of fine-tuning are named above their panels, with the units.
MEASURES = {
    "training loss": "training loss (nats, or squared error)",
    "accuracy": "dev accuracy (proportion)",
    "f1": "dev F1",
}


@as_written
def curves(
    table: pd.DataFrame,
    x: str,
    y: str,
    series: str,
    column: str,
    columns: int | None = None,
    height: float = 1.5,
    sharey: bool | str = True,
    log: bool = False,
) -> sns.FacetGrid:
    """`y` over `x`, a line per value of `series`, a panel per value of `column`, in order of appearance.

    Columns `low` and `high` of the table, if there, are the ends of error bars. At most `columns` panels stand in a
    row, each `height` inches high. `log`: a logarithmic axis with a tick at every x.
    """
    panels = table[column].nunique()
    columns = columns and even_columns(panels, columns)
    grid = sns.FacetGrid(
        table, col=column, col_wrap=columns, height=height, sharey=sharey,
        aspect=DOUBLE / (columns or panels) / height,
    )  # fmt: skip
    looks = dict(zip(dict.fromkeys(table[series]), itertools.cycle(LOOKS), strict=False))

    def draw(data: pd.DataFrame, **_: object) -> None:
        for name, look in looks.items():
            line = data[data[series] == name]
            # An interval at a low level can leave out its estimate: matplotlib draws no negative length.
            ends = None
            if "low" in line:
                ends = (line[y] - line["low"]).clip(0), (line["high"] - line[y]).clip(0)
            plt.gca().errorbar(line[x], line[y], ends, label=str(name), markersize=2.8, markerfacecolor="white",
                               linewidth=1, elinewidth=0.6, **look)  # fmt: skip

    grid.map_dataframe(draw)
    grid.figure.set_layout_engine("constrained")  # after map_dataframe, which sets another one
    if log:
        ticks = sorted(set(table[x]))
        grid.set(xscale="log", xticks=ticks, xticklabels=[f"{tick:,}" for tick in ticks])
        grid.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        grid.tick_params(axis="x", rotation=90)
    grid.set_titles("{col_name}")
    name_series(grid)
    return grid


def name_series(grid: sns.FacetGrid, title: str | None = None) -> None:
    """Writes the legend above the panels: all that the first panel names. It takes the place of an earlier one."""
    for earlier in [*grid.figure.legends]:
        earlier.remove()
    handles, names = grid.axes.flat[0].get_legend_handles_labels()
    rows = math.ceil(sum(len(name) + 8 for name in names) / 110)  # characters, with line and gap
    columns = math.ceil(len(names) / rows)
    grid.figure.legend(handles, names, title=title, ncols=columns, loc="outside upper center")


def training_curves(history: pd.DataFrame) -> Figure:
    """Every measure of the log of fine-tuning over epochs, a panel per measure and a line per run.

    `history` has columns seed, epoch, measure, value (loss in nats, scores as proportions or correlations).
    """
    runs = history.assign(
        run="seed " + history["seed"].astype(str), measure=history["measure"].replace(MEASURES)
    )
    grid = curves(runs, "epoch", "value", series="run", column="measure", height=1.9, sharey=False)
    grid.set(xlim=(0.8 * history["epoch"].min(), 1.05 * history["epoch"].max())).set_axis_labels("epoch", "")
    for axes in grid.axes.flat:
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    return grid.figure
