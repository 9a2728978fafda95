"""Figures of attention heads as parsers and resolvers of coreference, and of probes (Clark et al. 2019, 4 and 5)."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from .antecedents import HALF
from .attachment import DIRECTIONS, HeadExample
from .errors import InputError
from .mentions import KINDS
from .theme import DOUBLE, titled

BLUE, RED = "#0072B2", "#D55E00"
OFFSET = {"marker": "D", "markersize": 4, "color": RED, "markerfacecolor": "white", "linestyle": ""}
BEYOND = {"marker": "o", "markersize": 4.5, "color": BLUE, "linestyle": ""}
UNDECIDED = {**BEYOND, "markerfacecolor": "white"}
SYSTEM_MARKS = ("v", "^", "s", "D", "P", "o")
SYSTEM_COLOURS = ("0.75", "0.55", "#E69F00", "#8C510A", "black", BLUE)
ARROWS = dict(zip(DIRECTIONS, ("dep→head", "head→dep"), strict=True))
ALL = "all"


def dependency_accuracy(table: pd.DataFrame, alpha: float = 0.05, title: str = "") -> Figure:
    """Accuracy of the best attention head (with interval) and the best fixed offset, a row per relation.

    `table` is that of `attachment.dependency_table`. Filled marks: p_adjusted < `alpha`. Beside each relation stand
    its arcs, the head (layer-head, 0-based) and its direction.
    """
    figure, axes = plt.subplots(figsize=(DOUBLE, 0.19 * len(table) + 0.9), layout="constrained")
    down = np.arange(len(table))
    axes.hlines(down, table["low"], table["high"], color=BLUE, linewidth=0.9)
    decided = (table["p_adjusted"] < alpha).to_numpy()
    for chosen, look, label in (
        (decided, BEYOND, f"best head, differs from the offset (adjusted p < {alpha:g})"),
        (~decided, UNDECIDED, "best head, undecided"),
    ):
        axes.plot(table["accuracy"].to_numpy()[chosen], down[chosen], label=label, **look)
    axes.plot(table["offset_accuracy"], down, label="best fixed offset", **OFFSET)
    names = [
        f"{row.relation} (n = {row.n}), head {row.layer}-{row.head} {ARROWS[row.direction]}, offset {row.offset:+d}"
        for row in table.itertuples()
    ]
    axes.set_yticks(down, labels=names)
    axes.set(ylim=(len(table) - 0.5, -0.5), xlim=(-0.02, 1.02))
    axes.set(xlabel="accuracy (proportion of arcs of the held-out half)", ylabel="relation")
    axes.grid(axis="x", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    figure.legend(ncols=3, loc="outside lower center", handletextpad=0.3)
    return titled(figure, title)


def head_arcs(examples: Sequence[HeadExample], title: str = "") -> Figure:
    """Attention of one head between the words of one sentence, a panel per relation; darker lines are more attention.

    Lines run from the attending word (left) to the attended (right); those of the words that attend in the arcs of
    the relation are red, and such an arc of the gold tree has a dotted black line. Raises InputError without an
    example. Source: Clark 2019, Figure 5.
    """
    if not examples:
        raise InputError("no relation has an example: give more sentences or lower the minimum of arcs")
    columns = min(len(examples), 4)
    rows = -(-len(examples) // columns)
    longest = max(len(example.forms) for example in examples)
    size = (DOUBLE, rows * (0.155 * longest + 0.5) + 0.3)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for surplus in grid.flat[len(examples) :]:
        surplus.remove()
    for axes, example in zip(grid.flat, examples, strict=False):
        _arcs(axes, example, longest)
    figure.supxlabel("left: attending word; right: attended word; dotted: gold arc of the relation")
    figure.supylabel("word of the sentence, from the first down")
    return titled(figure, title)


def _arcs(axes: Axes, example: HeadExample, longest: int) -> None:
    """One sentence twice, side by side, with a line for every pair of its words."""
    size = len(example.forms)
    attending, attended = (places.ravel() for places in np.indices((size, size)))
    asked = {start for start, _ in example.arcs}
    weight = np.clip(example.attention[attending, attended], 0, 1)
    red, blue = (to_rgb(each) for each in (RED, BLUE))
    colours = [
        (*(red if start in asked else blue), share) for start, share in zip(attending, weight, strict=True)
    ]
    lines = [[(0, start), (1, end)] for start, end in zip(attending, attended, strict=True)]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=1.4))
    gold = [[(0, start), (1, end)] for start, end in example.arcs]
    axes.add_collection(LineCollection(gold, colors="black", linewidths=0.5, linestyles=":"))
    for place, form in enumerate(example.forms):
        own = RED if place in asked else "black"
        axes.text(-0.05, place, form, ha="right", va="center", fontsize=6.5, color=own)
        axes.text(1.05, place, form, ha="left", va="center", fontsize=6.5)
    axes.set(xlim=(-1.1, 2.1), ylim=(longest - 0.5, -0.7))
    axes.axis("off")
    axes.set_title(f"{example.relation}: {example.layer}-{example.head}\n{ARROWS[example.direction]}")


def coreference_accuracy(table: pd.DataFrame, scored_on: str = HALF, title: str = "") -> Figure:
    """Accuracy of the rules and the best attention head by kind of mention, with the interval of all anaphors.

    `table` is that of `antecedents.antecedent_table`, of which the rows `scored_on` are shown.
    """
    shown = table[table["scored_on"] == scored_on]
    figure, axes = plt.subplots(figsize=(DOUBLE, 2.8), layout="constrained")
    places = np.arange(1 + len(KINDS))
    shifts = np.linspace(-0.3, 0.3, len(shown))
    for row, shift, marker, colour in zip(
        shown.to_dict("records"), shifts, SYSTEM_MARKS, SYSTEM_COLOURS, strict=False
    ):
        head = "" if pd.isna(row["layer"]) else f" ({row['layer']}-{row['head']})"
        heights = [row[ALL], *(row[kind] for kind in KINDS)]
        axes.plot(places + shift, heights, marker=marker, color=colour, linestyle="", markersize=5,
                  label=row["system"] + head)  # fmt: skip
        axes.vlines(shift, row["low"], row["high"], color=colour, linewidth=0.9)
    axes.set_xticks(places, labels=[ALL, *KINDS])
    axes.set(xlabel=f"kind of mention ({scored_on}: {shown['n'].max()} anaphors)", ylim=(0, 1))
    axes.set_ylabel("antecedent found\n(proportion of anaphors)")
    figure.legend(ncols=3, loc="outside lower center", handletextpad=0.3)
    return titled(figure, title)


def probe_scores(table: pd.DataFrame, summary: pd.DataFrame, title: str = "") -> Figure:
    """Unlabelled attachment score without punctuation of each probe: marks are seeds, bars their t interval.

    `table` is that of `probing.probe_table`, `summary` that of `probing.over_seeds`.
    """
    keys = ["probe", "encoder", "root_alignment"]
    ordered = summary.sort_values("mean", kind="stable").reset_index(drop=True)
    figure, axes = plt.subplots(figsize=(DOUBLE, 0.26 * len(ordered) + 0.9), layout="constrained")
    down = np.arange(len(ordered))
    axes.hlines(down, ordered["low"], ordered["high"], color="0.6", linewidth=3, label="interval over seeds")
    seeds = table.merge(ordered[keys].assign(down=down), on=keys)
    axes.plot(seeds["uas_no_punct"], seeds["down"], "o", markersize=3.5, color=BLUE, label="a seed")
    names = [", ".join(filter(None, _names(row))) for row in ordered[keys].itertuples(index=False)]
    axes.set_yticks(down, labels=names)
    axes.set(xlim=(0, 1), ylim=(-0.6, len(ordered) - 0.4))
    axes.set(
        xlabel="unlabelled attachment score without punctuation (proportion of words)",
        ylabel="probe, encoder",
    )
    axes.grid(axis="x", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    figure.legend(ncols=2, loc="outside lower center", handletextpad=0.3)
    return titled(figure, title)


def _names(row: tuple) -> list[str]:
    encoder = "" if row.encoder == "none" else row.encoder
    return [row.probe, encoder, f"{row.root_alignment} alignment" if row.root_alignment == "original" else ""]
