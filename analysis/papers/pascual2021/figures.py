"""Figures on attention and attribution: maps, discrepancy, patterns, offsets, heads, and surviving roles."""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from analysis.figures.theme import DOUBLE, HEAD, LAYER, in_order, layer_head_mesh, panels, rows_of_axes
from analysis.papers.pascual2021.names import (
    ATTENTION,
    EFFECTIVE,
    EFFECTIVE_SUM,
    GLOBAL,
    JSD,
    LOCAL,
    MIXING,
    PEARSON,
    VALUES,
    WHOLE,
)

LOOKS = {
    ATTENTION: {"color": BLUE, "marker": "o"},
    LOCAL: {"color": GREEN, "marker": "^"},
    GLOBAL: {"color": VERMILION, "marker": "s"},
    EFFECTIVE: {"color": ORANGE, "marker": "D"},
    EFFECTIVE_SUM: {"color": PURPLE, "marker": "v"},
}
NAMES = {
    ATTENTION: "attention",
    LOCAL: "local attribution",
    GLOBAL: "attribution",
    EFFECTIVE: "effective attention",
    EFFECTIVE_SUM: "effective, sums kept",
}
PAIR_LOOKS = {
    WHOLE: {"color": VERMILION, "marker": "s", "label": "attention and attribution"},
    VALUES: {"color": GREEN, "marker": "^", "label": "attention and local attribution"},
    MIXING: {"color": BLUE, "marker": "o", "label": "local and global attribution"},
}
UNITS = {JSD: "Jensen-Shannon\ndivergence (bits)", PEARSON: "Pearson correlation\nof rows"}
TOKEN_NAMES = {"all": "all tokens", "text": "without special tokens"}
SMALLEST = 0.02  # sieve bias score at which logarithmic axes start


def example_maps(
    maps: Mapping[str, Float[np.ndarray, "layer head token token"]],
    tokens: Sequence[str],
    heads: Mapping[str, tuple[int, int]],
) -> Figure:
    """A row for each head, a column for each map; every map has its own scale, with the largest entry darkest and
    negative entries white."""
    size = (DOUBLE, 1.75 * len(heads) + 0.3)
    figure, grid = plt.subplots(len(heads), len(maps), figsize=size, squeeze=False, layout="constrained")
    step = math.ceil(len(tokens) / 20)
    for row, (kind, (layer, head)) in zip(grid, heads.items(), strict=True):
        for axes, found in zip(row, maps.values(), strict=True):
            axes.imshow(
                found[layer, head], cmap="mako_r", norm=PowerNorm(0.5, 0, clip=True), interpolation="nearest"
            )
            axes.set_xticks([])
            axes.set_yticks([])
        row[0].set_yticks(range(0, len(tokens), step), labels=tokens[::step], fontsize=4.5)
        row[0].tick_params(length=0, pad=1)
        row[0].set_ylabel(f"{kind}\nlayer {layer}, head {head}")
    for axes, name in zip(grid[0], maps, strict=True):
        axes.set_title(name)
    figure.supxlabel("attended token, or token that went in (same order as the rows; square-root colours)")
    return figure


def discrepancy_by_layer(table: pd.DataFrame) -> Figure:
    """How much maps differ by layer: mean over tasks and states (line), and each of them with its interval (marks).

    Top: the divergence, bottom: the correlation; left: all tokens, right: without special tokens.
    """
    figure, grid = plt.subplots(2, 2, figsize=(DOUBLE, 4.2), sharex=True, sharey="row", layout="constrained")
    layers = table[table["head"].isna() & table["layer"].notna()]
    for row, (measure, unit) in zip(grid, UNITS.items(), strict=True):
        for axes, tokens in zip(row, TOKEN_NAMES, strict=True):
            part = layers[(layers["measure"] == measure) & (layers["tokens"] == tokens)]
            for place, (pair, look) in enumerate(PAIR_LOOKS.items()):
                _layer_lines(axes, part[part["pair"] == pair], look, 0.12 * (place - 1))
        row[0].set_ylabel(unit)
    for top, bottom, title in zip(*grid, TOKEN_NAMES.values(), strict=True):
        top.set_title(title)
        bottom.set_xlabel(LAYER)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _layer_lines(axes: Axes, part: pd.DataFrame, look: Mapping[str, str], shift: float) -> None:
    """One pair of maps: the mean line, and a thin interval for every task and state."""
    colour = look["color"]
    axes.vlines(part["layer"] + shift, part["low"], part["high"], color=colour, alpha=0.5, linewidth=0.8)
    axes.plot(part["layer"] + shift, part["value"], look["marker"], color=colour, markersize=2, alpha=0.6)
    means = part.groupby("layer")["value"].mean()
    axes.plot(means.index + shift, means, linewidth=1.4, markersize=4, **look)


def discrepancy_heads(table: pd.DataFrame) -> Figure:
    """Correlation and divergence between attention and attribution for every head, mean over tasks and states."""
    figure, grid = plt.subplots(2, 2, figsize=(DOUBLE, 3.4), sharex=True, sharey=True, layout="constrained")
    heads = table[table["head"].notna()]
    scales = {PEARSON: {"cmap": "vlag", "vmin": -1, "vmax": 1}, JSD: {"cmap": "mako_r", "vmin": 0}}
    for row, (measure, colours) in zip(grid, scales.items(), strict=True):
        part = heads[heads["measure"] == measure]
        means = part.groupby(["tokens", "layer", "head"])["value"].mean()
        colours = colours if "vmax" in colours else colours | {"vmax": means.max()}
        for axes, tokens in zip(row, TOKEN_NAMES, strict=True):
            mesh = layer_head_mesh(axes, means.loc[tokens].unstack("head").to_numpy(), **colours)
        figure.colorbar(mesh, ax=row, label=UNITS[measure], pad=0.02)
    for axes, title in zip(grid[0], TOKEN_NAMES.values(), strict=True):
        axes.set_title(title)
    figure.supxlabel(HEAD)
    figure.supylabel("layer (0-based, layer 0 at the bottom)")
    return figure


def pattern_layers(table: pd.DataFrame, tau: float) -> Figure:
    """The highest mean score of a head in each layer, on attention and on attribution, a panel per pattern.

    Thin lines: each task and state; thick: their mean. Dotted: `tau`.
    """
    names = _patterns(table)
    figure, grid = panels(len(names), 5, 1.25, LAYER, "highest mean score of a head (1 = uniform)")
    maps = (ATTENTION, LOCAL, GLOBAL)
    best = table.groupby(["pattern", "task", "state", "layer"])[[*maps]].max()
    for axes, pattern in zip(grid, names, strict=True):
        for name in maps:
            lines = best.loc[pattern, name].unstack("layer")
            axes.plot(lines.columns, lines.T, color=LOOKS[name]["color"], linewidth=0.5, alpha=0.4)
            axes.plot(lines.columns, lines.mean(), markersize=3.5, linewidth=1.4, **LOOKS[name])
        axes.axhline(tau, color="black", linestyle=":", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_title(pattern)
    _legend(figure, maps)
    return figure


def pattern_scatter(table: pd.DataFrame, tau: float) -> Figure:
    """The mean score of every head on attention (x) and on attribution (y), a panel per pattern.

    Colours are layers, lower ones lighter; marks show all tasks and states. On the line, both scores are equal.
    """
    names = _patterns(table)
    figure, grid = panels(len(names), 5, 1.3, "score on attention", "mean score on attribution (1 = uniform)")
    for axes, pattern in zip(grid, names, strict=True):
        part = table[table["pattern"] == pattern]
        across, upwards = (np.maximum(part[name], SMALLEST) for name in (ATTENTION, GLOBAL))
        marks = axes.scatter(across, upwards, c=part["layer"], cmap="mako_r", s=5, linewidth=0, vmin=-1)
        ends = [SMALLEST, max(across.max(), upwards.max())]
        axes.plot(ends, ends, color=GREY, linewidth=0.7)
        for line in (axes.axvline, axes.axhline):
            line(tau, color="black", linestyle=":", linewidth=0.8)
        axes.set(xscale="log", yscale="log", title=pattern)
    bar = figure.colorbar(marks, ax=grid, label=LAYER, aspect=40, pad=0.02)
    bar.ax.set_ylim(0)
    bar.locator = MaxNLocator(integer=True)
    return figure


def _patterns(table: pd.DataFrame) -> list[str]:
    """The patterns that have scores, roles first."""
    there = table.dropna(subset=[ATTENTION, GLOBAL])["pattern"].unique()
    return in_order(there)


def offset_strips(table: pd.DataFrame) -> Figure:
    """Mean mass at every offset, a strip of layers x offsets for each map, averaged over tasks and states."""
    maps = [name for name in (ATTENTION, LOCAL, GLOBAL) if name in set(table["map"])]
    means = table.groupby(["map", "layer", "offset"])["mass"].mean()
    figure, grid = plt.subplots(1, len(maps), figsize=(DOUBLE, 1.9), sharey=True, layout="constrained")
    top = means.max()
    for axes, name in zip(grid, maps, strict=True):
        wide = means.loc[name].unstack("offset")
        edges = [np.append(index - 0.5, index.max() + 0.5) for index in (wide.columns, wide.index)]
        mesh = axes.pcolormesh(*edges, wide, cmap="mako_r", norm=PowerNorm(0.5, 0, top))
        axes.set(title=NAMES[name], xlabel="offset (tokens)")
    grid[0].set_ylabel(LAYER)
    figure.colorbar(mesh, ax=grid, label="mean mass\n(square-root scale)", pad=0.02)
    return figure


def kappa_by_role(table: pd.DataFrame) -> Figure:
    """Agreement of labels with those on attention, a panel per map; marks are tasks and states with their intervals.

    Filled: pre-trained, empty: fine-tuned. A role that no head has on either map has no agreement.
    """
    maps = [name for name in LOOKS if name != ATTENTION and name in set(table["map"])]
    roles = in_order(table["role"])
    figure, grid = rows_of_axes(len(maps), len(maps), 3.6, sharex=True, sharey=True)
    groups = table[["task", "state"]].drop_duplicates().reset_index(drop=True)
    for axes, name in zip(grid, maps, strict=True):
        for number, (task, state) in groups.iterrows():
            part = table[(table["map"] == name) & (table["task"] == task) & (table["state"] == state)]
            heights = part["role"].map(roles.index) + 0.7 * ((number + 0.5) / len(groups) - 0.5)
            colour = LOOKS[name]["color"]
            axes.hlines(heights, part["low"], part["high"], color=colour, alpha=0.5, linewidth=0.8)
            face = colour if state == "pretrained" else "white"
            axes.plot(
                part["kappa"],
                heights,
                linestyle="",
                marker="o",
                markersize=3,
                color=colour,
                markerfacecolor=face,
            )
        for border in np.arange(len(roles) - 1) + 0.5:
            axes.axhline(border, color="0.9", linewidth=0.5, zorder=0)
        axes.axvline(0, color=GREY, linewidth=0.7)
        axes.set(title=NAMES[name], xlim=(-0.35, 1.05))
    grid[0].set_yticks(range(len(roles)), labels=roles)
    grid[0].set_ylim(len(roles) - 0.5, -0.5)
    grid[0].set_ylabel("role")
    figure.supxlabel(
        "Cohen's kappa of labels on the map and on attention (filled: pre-trained, empty: fine-tuned)"
    )
    return figure


def dependency_changes(table: pd.DataFrame) -> Figure:
    """Accuracy by relation of the best head on attention, the same head on attribution and the best head there.

    A diamond marks the best fixed offset.
    """
    looks = {
        "attention": LOOKS[ATTENTION] | {"label": "best head on attention"},
        "attribution_same_head": LOOKS[LOCAL] | {"label": "same head on attribution"},
        "attribution": LOOKS[GLOBAL] | {"label": "best head on attribution"},
    }
    size = (DOUBLE, 0.24 * len(table) + 1.0)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    for number, (name, look) in enumerate(looks.items()):
        heights = np.arange(len(table)) + 0.22 * (number - 1)
        axes.hlines(heights, table[f"{name}_low"], table[f"{name}_high"], color=look["color"], linewidth=1)
        axes.plot(table[name], heights, linestyle="", markersize=4, **look)
    axes.plot(
        table["offset_accuracy"], range(len(table)), "d", color="0.4", markersize=4, label="best fixed offset"
    )
    axes.set_yticks(range(len(table)), labels=[f"{row.relation} ({row.n})" for row in table.itertuples()])
    axes.set(ylim=(len(table) - 0.5, -0.5), xlim=(-0.02, 1.02), ylabel="relation (arcs)")
    axes.set_xlabel("proportion of arcs found")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _legend(figure: Figure, maps: Sequence[str]) -> None:
    handles = [Line2D([], [], markersize=4, label=NAMES[name], **LOOKS[name]) for name in maps]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(maps))
