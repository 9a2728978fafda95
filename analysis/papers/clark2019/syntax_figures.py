"""Figures of attention heads as parsers and resolvers of coreference, and of probes (Clark et al. 2019, 4 and 5)."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from analysis.errors import InputError
from analysis.figures.diagrams import attention_lines
from analysis.figures.theme import BLACK, BLUE, BROWN, DOUBLE, GREEN, ORANGE, SKY, VERMILION, titled
from analysis.papers.clark2019.attachment import DIRECTIONS, HeadExample
from analysis.texts.chains import KINDS

OFFSET = {"marker": "D", "markersize": 4, "color": VERMILION, "markerfacecolor": "white", "linestyle": ""}
BEYOND = {"marker": "o", "markersize": 4.5, "color": BLUE, "linestyle": ""}
UNDECIDED = {**BEYOND, "markerfacecolor": "white"}
SYSTEM_MARKS = ("v", "^", "s", "D", "P", "o", "X", "*")
SYSTEM_COLOURS = ("0.75", "0.55", ORANGE, BROWN, BLACK, BLUE, SKY, GREEN)
SEED = {"marker": "o", "markersize": 3, "color": BLUE, "linestyle": "", "alpha": 0.8}
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
    the relation are vermilion, and such an arc of the gold tree has a dotted black line. Raises InputError without an
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
        attention_lines(axes, example.attention, example.forms, {start for start, _ in example.arcs}, longest)
        gold = [[(0, start), (1, end)] for start, end in example.arcs]
        axes.add_collection(LineCollection(gold, colors=BLACK, linewidths=0.5, linestyles=":"))
        axes.set_title(f"{example.relation}: {example.layer}-{example.head}\n{ARROWS[example.direction]}")
    figure.supxlabel("left: attending word; right: attended word; dotted: gold arc of the relation")
    figure.supylabel("word of the sentence, from the first down")
    return titled(figure, title)


def coreference_accuracy(table: pd.DataFrame, title: str = "") -> Figure:
    """Accuracy of the rules and the best attention heads by kind of mention, with the interval of all anaphors.

    `table` is that of `antecedents.held_out_systems`.
    """
    figure, axes = plt.subplots(figsize=(DOUBLE, 2.8), layout="constrained")
    places = np.arange(1 + len(KINDS))
    shifts = np.linspace(-0.32, 0.32, len(table))
    looks = zip(SYSTEM_MARKS, SYSTEM_COLOURS, strict=True)
    for row, shift, (marker, colour) in zip(table.to_dict("records"), shifts, looks, strict=False):
        head = "" if pd.isna(row["layer"]) else f" ({row['layer']}-{row['head']})"
        heights = [row[ALL], *(row[kind] for kind in KINDS)]
        axes.plot(places + shift, heights, marker=marker, color=colour, linestyle="", markersize=5,
                  label=row["system"] + head)  # fmt: skip
        axes.vlines(shift, row["low"], row["high"], color=colour, linewidth=0.9)
    axes.set_xticks(places, labels=[ALL, *KINDS])
    axes.set(xlabel=f"kind of mention ({table['n'].max()} anaphors of the held-out half)", ylim=(0, 1))
    axes.set_ylabel("antecedent found\n(proportion of anaphors)")
    figure.legend(ncols=2, loc="outside lower center", handletextpad=0.3)
    return titled(figure, title)


def probe_scores(table: pd.DataFrame, summary: pd.DataFrame, title: str = "") -> Figure:
    """Unlabelled attachment score without punctuation of each probe, with the mean over seeds written beside.

    Right: how far each seed is from its mean, and the t interval of the mean (bars), on a scale of its own. `table` is
    that of `probing.probe_table`, `summary` that of `probing.over_seeds`.
    """
    keys = ["probe", "encoder"]
    ordered = summary.sort_values("mean", kind="stable").reset_index(drop=True)
    figure, (scores, spread) = plt.subplots(
        1,
        2,
        figsize=(DOUBLE, 0.29 * len(ordered) + 0.9),
        sharey=True,
        width_ratios=(3, 2),
        layout="constrained",
    )
    down = np.arange(len(ordered))
    seeds = table.merge(ordered[[*keys, "mean"]].assign(down=down), on=keys)
    scores.plot(100 * seeds["uas_no_punct"], seeds["down"], label="a seed", **SEED)
    highest = 100 * seeds.groupby("down")["uas_no_punct"].max()
    beside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
    for place, mean in zip(down, 100 * ordered["mean"], strict=True):
        scores.annotate(f"{mean:.1f}", (highest[place], place), **beside)
    reach = 100 * (ordered["high"] - ordered["mean"])
    spread.barh(down, 2 * reach, left=-reach, height=0.5, color="0.85", label="t interval of the mean")
    spread.use_sticky_edges = False
    spread.axvline(0, color="0.6", linewidth=0.6)
    spread.plot(100 * (seeds["uas_no_punct"] - seeds["mean"]), seeds["down"], **SEED)
    names = [
        row.probe if row.encoder == "none" else f"{row.probe}, {row.encoder}" for row in ordered.itertuples()
    ]
    scores.set_yticks(down, labels=[textwrap.fill(name, 36) for name in names])
    scores.set(
        xlim=(0, 108),
        ylim=(-0.6, len(ordered) - 0.4),
        xlabel="unlabelled attachment score\nwithout punctuation (%)",
    )
    scores.set_ylabel("probe, encoder")
    spread.set_xlabel("minus the mean (points)")
    figure.legend(ncols=2, loc="outside lower center", handletextpad=0.3)
    return titled(figure, title)
