"""Figures of removed heads, after figures 1 and 2 and tables 3 and 6 of Michel 2019."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from analysis.figures.theme import DOUBLE, HEAD, LAYER, integer_ticks, layer_head_mesh, panels
from analysis.papers.michel2019.tables import EVERY
from analysis.papers.michel2019.transfer import Effects
from analysis.texts.tasks import task_named

ZERO = {"color": "black", "linewidth": 0.6}
FOUND = {"color": "0.9", "linewidth": 0}
CHOSEN_LOOKS = {
    "dev": {"marker": "D", "color": BLUE, "label": "best on these sequences"},
    "train": {"marker": "o", "color": VERMILION, "label": "chosen on training examples"},
}
RUN_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)


def head_maps(changes: pd.DataFrame, alpha: float = 0.05) -> Figure:
    """Change of the task's metric when each head is removed: a layer x head map per task (points).

    `changes` has columns task, metric, layer, head, change, p, p_by, one seed. A dot marks p < `alpha`, a ring
    p_by < `alpha`.
    """
    shown = main_metric(changes)
    tasks = [*shown["task"].unique()]
    cap = 100 * float(shown["change"].abs().max()) or 1.0
    figure, grid = panels(len(tasks), 3, 1.35, HEAD, LAYER)
    for axes, task in zip(grid, tasks, strict=True):
        rows = shown[shown["task"] == task]
        wide = rows.pivot(index="layer", columns="head", values="change")
        mesh = layer_head_mesh(axes, 100 * wide.to_numpy(), cmap="vlag_r", vmin=-cap, vmax=cap)
        for column, look in (("p", {"s": 5, "color": "black"}), ("p_by", {"s": 34, **RING})):
            marked = rows[rows[column] < alpha]
            axes.scatter(marked["head"], marked["layer"], **look)
        axes.set_title(f"{task}: {rows['metric'].iloc[0]} {100 * rows['baseline'].iloc[0]:.1f}")
    label = f"change without the head (points)\ndot: p < {level(alpha)}; ring: corrected"
    figure.colorbar(mesh, ax=grid, aspect=30, pad=0.02, label=label)
    return figure


def level(alpha: float) -> str:
    """A level of significance in print, such as .05."""
    return f"{alpha:g}".removeprefix("0")


RING = {"facecolor": "none", "edgecolor": "black", "linewidth": 0.8}


def head_histograms(changes: pd.DataFrame) -> Figure:
    """How many heads change the task's metric by how much (points), a panel per task and a line per fine-tuning run.

    In the grey band, the paired test on this sample misses a loss in more than one case of five.
    Source: Michel 2019, figure 1.
    """
    shown = main_metric(changes)
    tasks = [*shown["task"].unique()]
    figure, grid = panels(len(tasks), 3, 1.25, "change when one head is off (points)", "heads")
    reach = max(100 * shown["change"].abs().max(), 0.5)
    edges = np.linspace(-1, 1, 26) * reach * 1.04  # an odd number of bins, so that 0 is the middle of one
    for axes, task in zip(grid, tasks, strict=True):
        rows = shown[shown["task"] == task]
        axes.axvspan(-100 * rows["least"].median(), 0, **FOUND)
        axes.axvline(0, **ZERO)
        for colour, (seed, of_run) in zip(RUN_COLOURS, rows.groupby("seed"), strict=False):
            counts, _ = np.histogram(100 * of_run["change"], bins=edges)
            axes.stairs(counts, edges, color=colour, linewidth=1.1, label=f"seed {seed}")
        axes.set_title(f"{task} ({rows['metric'].iloc[0]})")
        axes.set_xlim(edges[0], edges[-1])
    figure.legend(*by_label(grid), ncols=6, loc="outside upper center")
    return figure


def one_head_layers(table: pd.DataFrame) -> Figure:
    """Change of the task's metric when a layer keeps one head (points), a panel per task.

    Grey: each head of the layer in turn. Marks with paired intervals: the best head there, and the head chosen on
    training examples. `table` is that of `all_but_one_table`. Source: Michel 2019, tables 3 and 6.
    """
    shown = main_metric(table)
    tasks = [*shown["task"].unique()]
    figure, grid = panels(len(tasks), 3, 1.4, LAYER, "change with one head left (points)")
    for axes, task in zip(grid, tasks, strict=True):
        rows = shown[shown["task"] == task].assign(points=lambda found: 100 * found["change"])
        every = rows[rows["chosen_on"] == EVERY]
        axes.axhline(0, **ZERO)
        axes.plot(every["layer"] - 0.3, every["points"], linestyle="", marker="_", color="0.6", markersize=5,
                  label="every head")  # fmt: skip
        for place, (name, look) in zip((0.0, 0.25), CHOSEN_LOOKS.items(), strict=True):
            chosen = rows[rows["chosen_on"] == name]
            ends = np.abs(100 * chosen[["low", "high"]].to_numpy().T - chosen["points"].to_numpy())
            axes.errorbar(chosen["layer"] + place, chosen["points"], ends, linestyle="", markersize=3.5,
                          elinewidth=0.9, **look)  # fmt: skip
        axes.set_title(f"{task} ({rows['metric'].iloc[0]})")
        integer_ticks(axes)
    figure.legend(*by_label(grid), ncols=3, loc="outside upper center")
    return figure


def effect_scatter(found: Sequence[Effects], table: pd.DataFrame) -> Figure:
    """Change of the loss on two data sets, a point per head: between data sets, and between halves of one (grey).

    `table` is that of `transfer_table`. Source: Michel 2019, figure 2.
    """
    columns = max(len(found), 1)
    size = (min(DOUBLE, 2.9 * columns), 2.6)
    figure, grid = plt.subplots(1, columns, figsize=size, squeeze=False, layout="constrained")
    for axes, each, row in zip(grid.flat, found, table.itertuples(), strict=False):
        axes.axhline(0, color="0.8", linewidth=0.6)
        axes.axvline(0, color="0.8", linewidth=0.6)
        axes.scatter(each.a, each.b, s=9, color=GREY if "," in each.data_a else BLUE)
        axes.set(xlabel=f"change of the loss on\n{each.data_a} (nats)", ylabel=f"on {each.data_b} (nats)")
        axes.set_title(f"{each.model} model: r = {row.r:.2f} [{row.low:.2f}, {row.high:.2f}]")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(4))
    if not found:
        grid[0, 0].text(0.5, 0.5, "no two data sets of one question", ha="center", va="center")
        grid[0, 0].axis("off")
    return figure


def main_metric(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the first metric of their task."""
    return table[table["metric"] == table["task"].map(lambda task: task_named(task).metrics[0])]


def by_label(grid: Sequence[Axes]) -> tuple[list[Line2D], list[str]]:
    """Handles and labels of all panels; each label occurs once."""
    found = {
        label: handle
        for axes in grid
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    return [*found.values()], [*found]
