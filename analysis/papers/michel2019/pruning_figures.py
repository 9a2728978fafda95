"""Figures of pruned heads, after those of Michel 2019 (3, 5 and 6, and table 4), and of importance against ablation."""

from collections.abc import Mapping

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLUE, GREEN, ORANGE, VERMILION
from analysis.figures.theme import LAYER, SINGLE, panels, rows_of_axes
from analysis.papers.michel2019.figures import ZERO, by_label, main_metric
from analysis.papers.michel2019.tables import AGAIN, IMPORTANCE, RANDOM, SCORE

PRUNED = "heads pruned (%)"
ORDER_LOOKS = {
    IMPORTANCE: {"color": BLUE, "marker": "o"},
    AGAIN: {"color": GREEN, "marker": "^"},
    SCORE: {"color": VERMILION, "marker": "s"},
}
SPEED_LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (ORANGE, "D"))


def pruning_curves(table: pd.DataFrame, constants: Mapping[str, float]) -> Figure:
    """The task's metric over the share of pruned heads, a panel per task and a line per order.

    Bars: the paired interval of the change, around the score without pruning. Grey: random orders, a line each. Dotted:
    the score without pruning. Dashed: the constant answer, if the metric is accuracy. `table` is that of
    `pruning_table`. Source: Michel 2019, figures 3 and 6.
    """
    shown = _shares(main_metric(table))
    tasks = [*shown["task"].unique()]
    figure, grid = panels(len(tasks), 3, 1.55, PRUNED, "score on the dev sequences")
    figure.get_layout_engine().set(hspace=0.06)
    for axes, task in zip(grid, tasks, strict=True):
        rows = shown[shown["task"] == task]
        axes.axhline(rows.loc[rows["heads"] == 0, "value"].iloc[0], linestyle=":", **ZERO)
        if rows["metric"].iloc[0] == "accuracy":
            axes.axhline(constants[task], linestyle="--", **ZERO)
        for order, steps in rows[rows["order"].str.startswith(RANDOM)].groupby("order"):
            axes.plot(steps["share"], steps["value"], color="0.75", linewidth=0.8, zorder=1,
                      label="random orders" if order.endswith("0") else None)  # fmt: skip
        for place, (order, look) in enumerate(ORDER_LOOKS.items()):
            _curve(axes, rows[rows["order"] == order], look, order, shift=1.2 * (place - 1))
        axes.set_title(f"{task} ({rows['metric'].iloc[0]})")
    figure.legend(*by_label(grid), ncols=4, loc="outside upper center")
    return figure


def course_curves(table: pd.DataFrame, constants: Mapping[str, float]) -> Figure:
    """Accuracy over the share of pruned heads, a panel per task and a line per fraction of fine-tuning.

    Bars: the paired interval of the change. Dashed: the constant answer. `table` is that of `dynamics_table`. Source:
    Michel 2019, figure 5; departure: an encoder is fine-tuned; the article trains a translation model.
    """
    if table.empty:
        return no_panels("no task was fine-tuned again")
    shown = _shares(table[table["metric"] == "accuracy"])
    tasks, fractions = [*shown["task"].unique()], sorted(shown["fraction"].unique())
    figure, grid = panels(len(tasks), 2, 2.1, PRUNED, "accuracy on the dev sequences")
    colours = mpl.colormaps["viridis_r"](np.linspace(0.05, 1, len(fractions)))
    for axes, task in zip(grid, tasks, strict=True):
        axes.axhline(constants[task], linestyle="--", **ZERO)
        for place, (fraction, colour) in enumerate(zip(fractions, colours, strict=True)):
            rows = shown[(shown["task"] == task) & (shown["fraction"] == fraction)]
            look = {"color": colour, "marker": "os^Dvp<>"[place % 8]}
            _curve(axes, rows, look, f"{fraction:.0%}", shift=0.8 * (place - len(fractions) / 2))
        axes.set_title(task)
    figure.legend(*by_label(grid), ncols=6, loc="outside upper center", title="of the fine-tuning steps")
    return figure


def importance_scatter(importances: pd.DataFrame, ablation: pd.DataFrame) -> Figure:
    """Importance of every head (unit norm in each layer) against the rise of the loss without it, a panel per task."""
    keys = ["task", "seed", "layer", "head"]
    chosen = importances[(importances["granularity"] == "example") & importances["normalised"]]
    rises = ablation[ablation["metric"] == "loss"].set_index(keys)["change"].rename("rise")
    both = chosen.join(rises, on=keys)
    tasks = [*both["task"].unique()]
    figure, grid = rows_of_axes(len(tasks), 3, 1.75, 0.5, sharex=True)
    layers = both["layer"].max()
    for axes, task in zip(grid, tasks, strict=True):
        rows = both[both["task"] == task]
        axes.axhline(0, **ZERO)
        points = axes.scatter(
            rows["importance"], rows["rise"], c=rows["layer"], s=9, cmap="viridis", vmin=0, vmax=layers
        )
        axes.set_title(task)
    figure.supxlabel("importance (unit norm in each layer)")
    figure.supylabel("rise of the loss without the head (nats)")
    figure.colorbar(points, ax=grid, label=LAYER, aspect=30, pad=0.02, ticks=MaxNLocator(integer=True))
    return figure


def speedups(table: pd.DataFrame, reference: pd.DataFrame) -> Figure:
    """Speed-up without half of the heads over the batch size, with intervals over rounds, a line per encoder.

    Dashed: the bound from the arithmetic. Crosses: BERT-base on a GPU in the article. `table` is that of `speed_table`,
    `reference` that of `published.speed`. Source: Michel 2019, table 4.
    """
    figure, axes = plt.subplots(figsize=(SINGLE, 2.7), layout="constrained")
    axes.axhline(1, **ZERO)
    for (colour, marker), (model, rows) in zip(SPEED_LOOKS, table.groupby("model", sort=False), strict=False):
        ends = np.abs(rows[["low", "high"]].to_numpy().T - rows["speedup"].to_numpy())
        axes.errorbar(rows["batch"], rows["speedup"], ends, color=colour, marker=marker, markersize=4, linewidth=1,
                      capsize=2, label=model)  # fmt: skip
        axes.axhline(rows["bound"].iloc[0], color=colour, linestyle="--", linewidth=0.8)
    axes.plot(reference["batch"], 1 + reference["gain"], color="black", marker="x", linestyle="", markersize=5,
              label="BERT-base on a GPU (article)")  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(reference["batch"], labels=reference["batch"].astype(str))
    axes.set(xlabel="sequences at once (128 tokens each)", ylabel="speed-up (dashed: bound)")
    figure.legend(loc="outside upper center", ncols=1)
    return figure


def no_panels(reason: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure, axes = plt.subplots(figsize=(SINGLE, 1), layout="constrained")
    axes.text(0.5, 0.5, reason, ha="center", va="center")
    axes.axis("off")
    return figure


def _shares(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column share: pruned heads in percent."""
    return table.assign(share=100 * table["heads"] / table["heads"].max())


def _curve(axes: Axes, rows: pd.DataFrame, look: Mapping[str, object], label: str, shift: float) -> None:
    """One line with its intervals; `shift` separates the bars of several lines."""
    axes.plot(rows["share"], rows["value"], markersize=3, linewidth=1, label=label, **look)
    axes.vlines(
        rows["share"] + shift, rows["low"], rows["high"], color=look["color"], linewidth=0.7, alpha=0.7
    )
