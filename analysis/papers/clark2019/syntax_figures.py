"""Figures of attention heads as parsers and resolvers of coreference, and of probes (Clark et al. 2019, 4 and 5)."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from analysis.errors import InputError
from analysis.figures.colours import BLACK, BLUE, BROWN, GREEN, ORANGE, SKY, VERMILION
from analysis.figures.diagrams import attention_lines
from analysis.figures.theme import DOUBLE, rows_of_axes
from analysis.papers.clark2019.illustrations import TO_ANTECEDENT, HeadExample
from analysis.scores.attachment import DIRECTIONS
from analysis.texts.chains import KINDS

OFFSET = {"marker": "D", "markersize": 4, "color": VERMILION, "markerfacecolor": "white", "linestyle": ""}
BEYOND = {"marker": "o", "markersize": 4.5, "color": BLUE, "linestyle": ""}
UNDECIDED = {**BEYOND, "markerfacecolor": "white"}
SYSTEM_MARKS = ("v", "^", "s", "D", "P", "o", "X", "*")
SYSTEM_COLOURS = ("0.75", "0.55", ORANGE, BROWN, BLACK, BLUE, SKY, GREEN)
SEED = {"marker": "o", "markersize": 3, "color": BLUE, "linestyle": ""}
ARROWS = dict(zip(DIRECTIONS, ("dep→head", "head→dep"), strict=True)) | {TO_ANTECEDENT: "mention→antecedent"}
ALL = "all"


def dependency_accuracy(table: pd.DataFrame, alpha: float = 0.05) -> Figure:
    """Accuracy of the best attention head (with interval) and the best fixed offset, a row per relation.

    `table` is that of `attachment.dependency_table`. Filled marks: p_adjusted < `alpha`. Next to each relation are its
    arcs, the head (layer-head, 0-based) and its direction.
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
    return figure


def head_arcs(examples: Sequence[HeadExample]) -> Figure:
    """Attention of one head between the words of one sentence or excerpt, a panel per relation.

    Lines run from the attending word (left) to the attended word (right); darker lines mean more attention. Lines from
    words that attend in the arcs of the relation are vermilion; arcs of the gold annotation have a dotted black line.
    Raises InputError without an example. Source: Clark 2019, Figure 5.
    """
    if not examples:
        raise InputError("no relation has an example: give more sentences or lower the minimum of arcs")
    longest = max(len(example.forms) for example in examples)
    figure, grid = rows_of_axes(len(examples), 3, 0.155 * longest + 0.5, 0.3)
    for axes, example in zip(grid, examples, strict=True):
        asked = {start for start, _ in example.arcs}
        attention_lines(axes, example.attention, example.forms, asked, longest)
        gold = [[(0, start), (1, end)] for start, end in example.arcs]
        axes.add_collection(LineCollection(gold, colors=BLACK, linewidths=0.8, linestyles=":", zorder=3))
        axes.set_title(f"{example.relation}: {example.layer}-{example.head}\n{ARROWS[example.direction]}")
    figure.supxlabel("left: attending word; right: attended word; dotted: gold arc; [CLS] and [SEP] masked")
    figure.supylabel("word of the sentence, from the first down")
    return figure


def coreference_accuracy(table: pd.DataFrame) -> Figure:
    """Accuracy of the rules and the best attention heads by kind of mention, with intervals.

    `table` is that of `antecedents.held_out_systems`.
    """
    figure, axes = plt.subplots(figsize=(DOUBLE, 3.0), layout="constrained")
    places = np.arange(1 + len(KINDS))
    shifts = np.linspace(-0.32, 0.32, len(table))
    looks = zip(SYSTEM_MARKS, SYSTEM_COLOURS, strict=True)
    for row, shift, (marker, colour) in zip(table.to_dict("records"), shifts, looks, strict=False):
        head = "" if pd.isna(row["layer"]) else f" ({row['layer']}-{row['head']})"
        heights = [row[ALL], *(row[kind] for kind in KINDS)]
        low, high = ([row[side], *(row[f"{side}_{kind}"] for kind in KINDS)] for side in ("low", "high"))
        axes.vlines(places + shift, low, high, color=colour, linewidth=1.0)
        axes.plot(places + shift, heights, marker=marker, color=colour, linestyle="", markersize=5,
                  label=row["system"] + head)  # fmt: skip
    axes.vlines(places[1:] - 0.5, 0, 1, color="0.85", linewidth=0.6, zorder=0)
    axes.set_xticks(places, labels=[ALL, *KINDS])
    axes.set(
        xlabel=f"kind of mention ({table['n'].max()} anaphors; heads chosen on the other half)", ylim=(0, 1)
    )
    axes.set_ylabel("antecedent found\n(proportion of anaphors)")
    figure.legend(ncols=2, loc="outside lower center", handletextpad=0.3)
    return figure


def probe_scores(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """Unlabelled attachment score without punctuation of each probe: seeds, their mean and its t interval.

    The figure states the mean. `table` is that of `probing.probe_table`, `summary` that of `probing.over_seeds`.
    """
    keys = ["probe", "encoder"]
    ordered = summary.sort_values("mean", kind="stable").reset_index(drop=True)
    figure, axes = plt.subplots(figsize=(DOUBLE, 0.29 * len(ordered) + 0.9), layout="constrained")
    down = np.arange(len(ordered))
    seeds = table.merge(ordered[keys].assign(down=down), on=keys)
    low, mean, high = (100 * ordered[name] for name in ("low", "mean", "high"))
    axes.hlines(down, low, high, color="0.6", linewidth=3.5, label="t interval of the mean")
    axes.plot(100 * seeds["uas_no_punct"], seeds["down"], label="a seed", **SEED)
    for place, score in zip(down, mean, strict=True):
        beside = max(score, high[place] if pd.notna(high[place]) else score)
        axes.annotate(f"{score:.1f}", (beside, place), xytext=(6, 0), textcoords="offset points", va="center",
                      fontsize=7.5)  # fmt: skip
    names = [
        row.probe if row.encoder == "none" else f"{row.probe}, {row.encoder}" for row in ordered.itertuples()
    ]
    axes.set_yticks(down, labels=[textwrap.fill(name, 44) for name in names])
    axes.set(xlim=(0, 100), ylim=(-0.6, len(ordered) - 0.4), ylabel="probe, encoder")
    axes.set_xlabel("unlabelled attachment score without punctuation (%), mean over seeds beside")
    axes.grid(axis="x", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    figure.legend(ncols=2, loc="outside lower center", handletextpad=0.3)
    return figure
