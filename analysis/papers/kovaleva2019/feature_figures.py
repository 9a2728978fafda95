"""Figures of attention to features, and of disabled layers (Kovaleva et al. 2019, figures 6, 7 and 9)."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLACK, BLUE, BROWN, GREEN, ORANGE, PURPLE, SKY, VERMILION
from analysis.figures.theme import HEAD, LAYER, rows_of_axes
from analysis.papers.kovaleva2019.names import FEATURES

TASK_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BROWN, "0.4")
DASHES = {"pretrained": (0, (3, 1.5)), "finetuned": "-"}
ROW_LIMIT = 0.5  # of the colour scale of figure 7, as in the article


def feature_layers(table: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Mean attention to each feature by layer, before (dashed) and after fine-tuning, a colour per task.

    `table` is that of `tables.feature_table`, mode aligned. Black: BERT-base on QQP, with its layers stretched to the
    number of this encoder. Source: Kovaleva 2019, figure 6.
    """
    rows = table[table["mode"] == "aligned"]
    means = rows.groupby(["feature", "task", "state", "layer"])["mean"].mean().unstack("layer")
    figure, grid = rows_of_axes(len(FEATURES), 3, 1.3, 0.7, sharex=True)
    tasks, last = [*dict.fromkeys(rows["task"])], rows["layer"].max()
    for axes, feature in zip(grid, FEATURES, strict=True):
        for colour, task in zip(TASK_COLOURS, tasks, strict=False):
            for state, dash in DASHES.items():
                if (feature, task, state) in means.index:
                    line = means.loc[feature, task, state]
                    axes.plot(line.index, line, color=colour, linestyle=dash, linewidth=1.1)
        for state, part in published[published["feature"] == feature].groupby("state"):
            across = part["layer"] * last / part["layer"].max()
            axes.plot(across, part["mean"], color=BLACK, linestyle=DASHES[state], linewidth=0.9)
        axes.set(title=feature, ylim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    figure.supxlabel(LAYER)
    figure.supylabel("mean attention of all tokens to the feature")
    named = [
        plt.Line2D([], [], color=colour, label=task)
        for colour, task in zip(TASK_COLOURS, tasks, strict=False)
    ]
    states = [plt.Line2D([], [], color="0.4", linestyle=dash, label=state) for state, dash in DASHES.items()]
    theirs = [plt.Line2D([], [], color=BLACK, label="BERT-base, qqp (published)")]
    figure.legend(handles=[*named, *states, *theirs], ncols=5, loc="outside upper center")
    return figure


def cls_rows(table: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Largest attention of [CLS] in the last layer to each feature, a panel per task (fine-tuned), a column per head.

    `table` is that of `tables.cls_table`. The scale ends at ROW_LIMIT. Source: Kovaleva 2019, figure 7.
    """
    rows = table[table["state"] == "finetuned"]
    panels = {task: part for task, part in rows.groupby("task", sort=False)} | {
        "qqp (BERT-base, published)": published
    }
    figure, grid = rows_of_axes(len(panels), 4, 1.75, 0.5, sharey=True)
    for axes, (name, part) in zip(grid, panels.items(), strict=True):
        values = part.pivot(index="feature", columns="head", values="mean").reindex(FEATURES)
        axes.set_facecolor("0.85")
        mesh = axes.pcolormesh(
            np.ma.masked_invalid(values.to_numpy(float)), cmap="mako_r", vmin=0, vmax=ROW_LIMIT
        )
        axes.set_yticks(np.arange(len(FEATURES)) + 0.5, labels=FEATURES)
        axes.set_xticks(np.arange(0, values.shape[1], 3) + 0.5, labels=range(0, values.shape[1], 3))
        axes.set_title(name, fontsize=7.5)
    grid[0].invert_yaxis()
    figure.supxlabel(f"{HEAD} of the last layer; grey: no value")
    figure.colorbar(
        mesh,
        ax=grid,
        label="attention of [CLS]",
        extend="max",
        shrink=0.8,
        pad=0.01,
        aspect=30,
    )
    return figure


def disabled_layers(table: pd.DataFrame) -> Figure:
    """Change of each task's metric, in points, when all heads of a layer attend equally to all tokens.

    `table` has columns task, seed, layer, metric, baseline, change, low, high; a mark per seed, with its interval.
    Source: Kovaleva 2019, figure 9.
    """
    tasks = [*dict.fromkeys(table["task"])]
    figure, grid = rows_of_axes(len(tasks), 3, 1.6, 0.5, sharex=True)
    for axes, task in zip(grid, tasks, strict=True):
        part = table[table["task"] == task]
        seeds = [*dict.fromkeys(part["seed"])]
        for seed, shift, colour in zip(
            seeds, _shifts(len(seeds)), sns.color_palette("colorblind"), strict=False
        ):
            rows = part[part["seed"] == seed]
            across = rows["layer"].astype(float) + shift
            axes.vlines(across, 100 * rows["low"], 100 * rows["high"], color=colour, linewidth=1.0)
            axes.plot(across, 100 * rows["change"], "o", markersize=3, color=colour, label=f"seed {seed}")
        axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
        axes.set_title(f"{task}: {part['metric'].iloc[0]}", fontsize=7.5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    figure.supxlabel(LAYER)
    figure.supylabel("change of the metric (points)")
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=6, loc="outside upper center")
    return figure


def _shifts(count: int) -> Sequence[float]:
    return (np.arange(count) - (count - 1) / 2) * 0.15
