"""Figures of attention, attribution and effective attention (no torch)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from analysis.figures import theme
from analysis.figures.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, SEQUENTIAL, VERMILION
from analysis.papers.pascual2021 import measures

# Colour, marker and label of every map, and of every pair of maps.
MAPS = {
    measures.ATTENTION: (BLUE, "o", "attention"),
    measures.LOCAL: (GREEN, "^", "local attribution"),
    measures.GLOBAL: (VERMILION, "s", "attribution"),
    measures.EFFECTIVE: (ORANGE, "D", "effective attention"),
    measures.EFFECTIVE_SUM: (PURPLE, "v", "effective, sums kept"),
}
PAIRS = {
    measures.WHOLE: (VERMILION, "s", "attention and attribution"),
    measures.VALUES: (GREEN, "^", "attention and local attribution"),
    measures.MIXING: (BLUE, "o", "local and global attribution"),
}
SYSTEMS = {
    "attention": (BLUE, "o", "best head on attention"),
    "attribution_same_head": (GREEN, "^", "same head on attribution"),
    "attribution": (VERMILION, "s", "best head on attribution"),
}
MEASURES = {measures.JSD: "Jensen-Shannon\ndivergence (bits)", "pearson": "Pearson correlation\nof rows"}


def map_panels(
    maps: Mapping[str, Float[np.ndarray, "layer head token token"]],
    heads: Mapping[str, tuple[int, int]],
    tokens: Sequence[str],
) -> Figure:
    """A row of panels for each head and a column for each map of one sequence; negative entries are white."""
    step = -(-len(tokens) // 14)  # names of tokens stay readable
    size = (theme.DOUBLE, 1.5 * len(heads) + 0.5)
    figure, grid = plt.subplots(len(heads), len(maps), figsize=size, layout="constrained", squeeze=False)
    for row, (kind, (layer, head)) in zip(grid, heads.items(), strict=True):
        for axes, values in zip(row, maps.values(), strict=True):
            weights = np.ma.masked_less(values[layer, head], 0)
            axes.imshow(weights, cmap=SEQUENTIAL, norm=PowerNorm(0.5, 0), interpolation="nearest")
            axes.set(xticks=[], yticks=[])
        row[0].set_yticks(range(0, len(tokens), step), labels=tokens[::step], fontsize=6.5, parse_math=False)
        row[0].set_ylabel(f"{kind}\nlayer {layer}, head {head}")
    for axes, name in zip(grid[0], maps, strict=True):
        axes.set_title(MAPS[name][2])
    figure.supylabel("current token")
    figure.supxlabel(
        "attended token, or input token, in the order of the rows\n"
        "colours: square root of the weight, from 0 (pale) to the largest of each panel (black); white: negative"
    )
    return figure


def discrepancy_panels(discrepancy: pd.DataFrame) -> Figure:
    """Divergence and correlation of the PAIRS by layer, with and without special tokens.

    A small mark with its interval is a task and state; the large ones, joined by a line, are their means.
    """
    by_layer = discrepancy[discrepancy["head"].isna()]
    size = (theme.DOUBLE, 4.2)
    figure, grid = plt.subplots(2, 2, figsize=size, sharex=True, sharey="row", layout="constrained")
    for row, (measure, label) in zip(grid, MEASURES.items(), strict=True):
        row[0].set_ylabel(label)
        for axes, tokens in zip(row, measures.TOKENS, strict=True):
            _draw_pairs(axes, by_layer[(by_layer["measure"] == measure) & (by_layer["tokens"] == tokens)])
    for axes, title in zip(grid[0], measures.TOKENS.values(), strict=True):
        axes.set_title(title)
    figure.supxlabel(theme.LAYER)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _draw_pairs(axes: Axes, by_layer: pd.DataFrame) -> None:
    """One measure of every pair by layer."""
    for number, (pair, (colour, mark, label)) in enumerate(PAIRS.items()):
        rows = by_layer[by_layer["pair"] == pair]
        shift = 0.12 * (number - 1)
        axes.vlines(rows["layer"] + shift, rows["low"], rows["high"], color=colour, alpha=0.5, lw=0.8)
        axes.plot(rows["layer"] + shift, rows["value"], mark, color=colour, markersize=2, alpha=0.6)
        means = rows.groupby("layer")["value"].mean()
        axes.plot(means.index + shift, means, marker=mark, color=colour, ms=4, lw=1.4, label=label)


def accuracy_by_relation(relations: pd.DataFrame) -> Figure:
    """Accuracy of the SYSTEMS on each relation with its interval, and that of the best fixed offset."""
    size = (theme.DOUBLE, 0.24 * len(relations) + 1.0)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    for number, (name, (colour, mark, label)) in enumerate(SYSTEMS.items()):
        heights = np.arange(len(relations)) + 0.22 * (number - 1)
        axes.hlines(heights, relations[f"{name}_low"], relations[f"{name}_high"], color=colour, linewidth=1)
        axes.plot(relations[name], heights, mark, color=colour, markersize=4, label=label)
    offset = {"color": "0.4", "ms": 4, "label": "best fixed offset"}
    axes.plot(relations["offset_accuracy"], relations.index, "d", **offset)
    axes.set_yticks(relations.index, labels=relations["relation"] + " (" + relations["n"].astype(str) + ")")
    axes.set(ylim=(len(relations) - 0.5, -0.5), xlim=(-0.02, 1.02), ylabel="relation (arcs)")
    axes.set_xlabel("accuracy: proportion of arcs")
    figure.legend(loc="outside upper center", ncols=4)
    return figure


def agreement_panels(survival: pd.DataFrame) -> Figure:
    """Cohen's kappa of the labels on attention and on another map: a panel per map, a mark per role, task and state."""
    roles, others = theme.in_order(survival["role"]), [name for name in MAPS if name != measures.ATTENTION]
    figure, grid = theme.rows_of_axes(len(others), len(others), 3.6, sharex=True, sharey=True)
    for axes, name in zip(grid, others, strict=True):
        colour, _, title = MAPS[name]
        runs = survival[survival["map"] == name].groupby(["task", "state"], sort=False)
        for number, ((_, state), rows) in enumerate(runs):
            heights = rows["role"].map(roles.index) + 0.7 * ((number + 0.5) / len(runs) - 0.5)
            face = colour if state == "pretrained" else "white"
            axes.hlines(heights, rows["low"], rows["high"], color=colour, alpha=0.5, linewidth=0.8)
            axes.plot(rows["kappa"], heights, "o", color=colour, markersize=3, markerfacecolor=face)
        axes.hlines(np.arange(len(roles) - 1) + 0.5, -0.35, 1.05, color="0.9", linewidth=0.5, zorder=0)
        axes.axvline(0, color=GREY, linewidth=0.7)
        axes.set(title=title, xlim=(-0.35, 1.05), ylim=(len(roles) - 0.5, -0.5))
    grid[0].set_yticks(range(len(roles)), labels=roles)
    grid[0].set_ylabel("role")
    figure.supxlabel(
        "Cohen's kappa of labels on the map and on attention (filled: pre-trained, empty: fine-tuned)"
    )
    return figure
