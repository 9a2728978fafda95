"""Figures of the patterns of attention maps (Kovaleva et al. 2019, figures 1 and 2)."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from analysis.encoders.layout import Layout
from analysis.figures.colours import BLUE, GREEN, ORANGE, SKY
from analysis.figures.theme import DOUBLE
from analysis.papers.kovaleva2019.names import PATTERNS

# From the pattern with the most structure to the one with the least; they also differ in lightness.
COLOURS = dict(zip(PATTERNS, (BLUE, SKY, GREEN, ORANGE, "0.85"), strict=True))
Example = tuple[Layout, Float[np.ndarray, "token token"] | None]


def typical_heads(found: xr.Dataset) -> dict[str, tuple[int, int]]:
    """For each pattern, the head (layer, head) that shows it in most sequences; left out if no head does."""
    labels = found["pattern"]
    chosen = {}
    for number, name in enumerate(PATTERNS):
        shares = (labels == number).mean("sequence")
        if shares.max() > 0:
            place = np.unravel_index(int(shares.values.argmax()), shares.shape)
            chosen[name] = (int(place[0]), int(place[1]))
    return chosen


def pattern_examples(
    attention: Float[np.ndarray, "layer head token token"],
    layout: Layout,
    heads: Mapping[str, tuple[int, int]],
) -> Figure:
    """Maps of one sequence, a head for each pattern; ticks mark [CLS] and [SEP]. Source: Kovaleva 2019, figure 1."""
    figure, grid = plt.subplots(1, len(PATTERNS), figsize=(DOUBLE, 1.95), layout="constrained")
    special = np.flatnonzero(layout.cls | layout.sep)
    names = [layout.tokens[place] for place in special]
    for axes, pattern in zip(grid, PATTERNS, strict=True):
        if pattern not in heads:
            axes.set_title(pattern, fontsize=7.5)
            axes.text(0.5, 0.5, "no head", ha="center", va="center", transform=axes.transAxes)
            axes.set(xticks=[], yticks=[])
            continue
        one = attention[heads[pattern]]
        # Up to the mean of the rows' largest weights, so that a single bright cell does not hide the rest.
        image = axes.imshow(one, cmap="mako_r", vmin=0, vmax=one.max(axis=1).mean(), interpolation="nearest")
        axes.set_title(f"{pattern}\nhead {heads[pattern][0]}-{heads[pattern][1]}", fontsize=7.5)
        axes.set_xticks(special, labels=names, rotation=90, fontsize=6)
        axes.set_yticks(special, labels=names if axes is grid[0] else [], fontsize=6)
    bar = figure.colorbar(image, ax=grid, shrink=0.7, pad=0.01, extend="max", ticks=[0, image.get_clim()[1]])
    bar.ax.set_yticklabels(["0", "high"])
    bar.set_label("attention")
    figure.supxlabel("attended token")
    figure.supylabel("current token")
    return figure


def pattern_shares(table: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Shares of the patterns by task, before (left bar) and after fine-tuning, next to those of BERT-base.

    `table` is that of `tables.pattern_table`; a black bar spans the interval of the heterogeneous share.
    Source: Kovaleva 2019, figure 2.
    """
    tasks = [*dict.fromkeys(table["task"])]
    theirs = [*dict.fromkeys(published["task"])]
    figure, (ours, other) = plt.subplots(
        1, 2, figsize=(DOUBLE, 2.7), sharey=True, layout="constrained",
        width_ratios=[max(len(tasks), 3), len(theirs)],
    )  # fmt: skip
    _stacks(ours, table, tasks)
    _stacks(other, published, theirs)
    ours.set(title="this encoder", ylabel="share of maps", ylim=(0, 1))
    other.set_title("BERT-base, later network of the same laboratory")
    figure.supxlabel("task (left bar: pre-trained, right bar: fine-tuned)", fontsize=8)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    figure.legend(handles, [*COLOURS], ncols=len(COLOURS), loc="outside upper center", columnspacing=1.0)
    return figure


def _stacks(axes: plt.Axes, table: pd.DataFrame, tasks: Sequence[str]) -> None:
    places = np.arange(len(tasks))
    for shift, state in ((-0.21, "pretrained"), (0.21, "finetuned")):
        rows = table[table["state"] == state].set_index(["task", "pattern"])
        bottom = np.zeros(len(tasks))
        for pattern, colour in COLOURS.items():
            share = rows["share"].reindex([(task, pattern) for task in tasks]).fillna(0).to_numpy()
            axes.bar(places + shift, share, 0.36, bottom, color=colour, edgecolor="white", linewidth=0.4)
            if pattern == PATTERNS[-1] and "low" in rows:  # it is on top, so its share is read downwards
                ends = [
                    rows[end].reindex([(task, pattern) for task in tasks]).to_numpy()
                    for end in ("low", "high")
                ]
                axes.vlines(places + shift, 1 - ends[1], 1 - ends[0], color="black", linewidth=1.2)
            bottom += share
    axes.set_xticks(places, labels=tasks, rotation=45, ha="right")
