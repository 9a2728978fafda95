"""Figures of cues, of the accuracy of runs, and of heads that attend to the cue (no torch)."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.colours import BLACK, BLUE, GREEN, VERMILION
from analysis.figures.theme import rows_of_axes
from analysis.papers.niven2019.accuracy import CHANCE, CUE_HEADS, own_test
from analysis.papers.niven2019.arguments import DOUBLED, ENCODER, NEGATED, NOT, ORIGINAL

DASHED = {"color": BLACK, "linestyle": "--", "linewidth": 0.8}
MEAN = {"color": BLACK, "marker": "_", "markersize": 12, "linestyle": ""}
DIAMOND = {"color": VERMILION, "marker": "D", "markersize": 5, "markerfacecolor": "white", "linestyle": ""}
TRAINING_SETS = {ORIGINAL: "original", DOUBLED: "adversarial", NEGATED: "negated claims"}  # as titles
CUES = {1: ("o", BLUE, "word"), 2: ("s", GREEN, "pair of words")}


def label_points(
    axes: Axes, points: pd.DataFrame, near: Callable[[float, float], bool], step: float, **look: object
) -> None:
    """Writes the names of points (x, y, name) beside them, in their order.

    A name that would touch an earlier one, because `near` says so of both x, moves by `step`; a dotted line leads to
    it.
    """
    places: list[tuple[float, float]] = []
    for x, y, name in points.itertuples(index=False):
        levels = [y, *(level + step for across, level in places if near(across, x))]
        places.append((x, max(levels) if step > 0 else min(levels)))
        axes.plot([x, x], [y, places[-1][1]], ":", color="0.5", linewidth=0.9)
        axes.annotate(name, places[-1], textcoords="offset points", fontsize=6.5, **look)


def cue_panels(cues: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Productivity over coverage of every cue, a panel per split; a diamond is "not" as published.

    "not" and the four most frequent pairs of words that are productive beyond chance have their name and interval.
    """
    splits = [*cues["split"].unique()]
    figure, grid = rows_of_axes(len(splits), 2, 2.2, 0.4, sharex=True, sharey=True)
    for axes, split in zip(grid, splits, strict=True):
        rows = cues[cues["split"] == split]
        for order, (mark, colour, kind) in CUES.items():
            plotted = rows[rows["order"] == order]
            axes.plot(plotted["coverage"], plotted["productivity"], mark, color=colour, ms=3.5, label=kind)
        pairs = rows[(rows["order"] == 2) & (rows["low"] > CHANCE)].nlargest(4, "applicability")
        named = pd.concat([pairs, rows[rows["cue"] == NOT]])
        ends = {"color": "0.5", "linewidth": 0.9, "zorder": 0, "label": "95 % interval"}
        axes.vlines(named["coverage"], named["low"], named["high"], **ends)
        names = named.sort_values("coverage", ascending=False)[["coverage", "high", "cue"]]
        label_points(axes, names, lambda first, x: first < 2.5 * x, 0.09, xytext=(1, 1), va="bottom")
        axes.axhline(CHANCE, **DASHED, label="chance")
        if len(values := published[published["split"] == split]):
            axes.plot(values["coverage"], values["productivity"], **DIAMOND, label='"not" in the paper')
        axes.set(title=split, xscale="log", xlim=(0.003, 1.2), ylim=(0, 1.35), yticks=np.linspace(0, 1, 6))
    grid[0].set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    figure.legend(*grid[0].get_legend_handles_labels(), ncols=5, loc="outside upper center")
    figure.supxlabel("coverage (logarithmic)")
    figure.supylabel("productivity (proportion of points)")
    return figure


def accuracy_panels(runs: pd.DataFrame, summary: pd.DataFrame, released: pd.DataFrame) -> Figure:
    """Test accuracy of every run by set-up, a panel per training set and model; means are of the trained runs.

    `released` is the table `seeds` of `accuracy.published`: beside the encoder stands BERT-large.
    """
    panels = own_test(runs).groupby(["trained_on", "model"], sort=False)
    widths = panels["setup"].nunique().clip(lower=2).to_list()
    figure, grid = rows_of_axes(len(panels), min(len(panels), 5), 2.5, sharey=True, width_ratios=widths)
    summary, released = own_test(summary), released.replace({"BERT-large": ENCODER})
    for axes, (key, rows) in zip(grid, panels, strict=True):
        setups = [*rows["setup"].unique()]
        look = {"hue": "trained", "hue_order": [True, False], "palette": [BLUE, "0.7"], "size": 3}
        sns.swarmplot(rows, x="setup", y="accuracy", order=setups, dodge=True, legend=False, ax=axes, **look)
        ours = summary.set_index(["trained_on", "model", "setup"]).loc[[(*key, setup) for setup in setups]]
        axes.plot(range(len(setups)), ours["trained_mean"], **MEAN, label="mean")
        axes.vlines(range(len(setups)), ours["low"], ours["high"], color=BLACK, linewidth=1)
        seeds = released[(released["trained_on"] == key[0]) & (released["model"] == key[1])]
        seeds = seeds[seeds["setup"].isin(setups)]
        if len(seeds):
            across = seeds["setup"].map(setups.index) + 0.38
            axes.plot(
                across, seeds["accuracy"], ".", color=VERMILION, alpha=0.5, ms=3, label="run of the authors"
            )
            means = seeds["accuracy"].groupby(across).mean()
            axes.plot(means.index, means, **DIAMOND, label="their mean (encoder: BERT-large)")
        axes.plot([], [], "o", color=BLUE, markersize=3, label="run")
        if not rows["trained"].all():
            axes.plot([], [], "o", color="0.7", markersize=3, label="run that did not train")
        axes.axhline(CHANCE, **DASHED, label="chance")
        axes.set_title(f"{key[1]}\n{TRAINING_SETS[key[0]]}", fontsize=7.5)
        axes.set(xlabel="", ylabel="", xlim=(-0.5, len(setups) - 0.3))
    grid[0].set_ylabel("test accuracy (proportion)")
    entries = [axes.get_legend_handles_labels() for axes in grid]
    entries = {label: handle for handles in entries for handle, label in zip(*handles, strict=True)}
    figure.legend(entries.values(), entries.keys(), ncols=6, loc="outside upper center", columnspacing=1)
    figure.supxlabel("input: full, warrants alone (W), with the reason (RW), with the claim (CW)", fontsize=8)
    return figure


def head_panels(heads: pd.DataFrame) -> Figure:
    """Score of the cue before and after fine-tuning, a panel per set-up and a mark for each head and run.

    The four heads with the highest scores after fine-tuning have their names, at their highest point.
    """
    heads = heads.dropna(subset="finetuned")
    setups = [*heads["setup"].unique()]
    figure, grid = rows_of_axes(len(setups), 2, 2.7)
    for axes, setup in zip(grid, setups, strict=True):
        rows = heads[heads["setup"] == setup].sort_values("finetuned", ascending=False)
        changed = rows["p_by"] < 0.05
        marks = ("x", "0.6", "inconclusive", rows[~changed]), ("o", BLUE, "changed (p < .05)", rows[changed])
        for mark, colour, label, part in marks:
            axes.plot(part["pretrained"], part["finetuned"], mark, color=colour, ms=3, label=label)
        tops = rows.drop_duplicates(["layer", "head"]).head(4)
        tops = tops.assign(name=tops["layer"].astype(str) + "-" + tops["head"].astype(str))
        width, step = 0.12 * np.ptp(axes.get_xlim()), -0.06 * np.ptp(axes.get_ylim())
        names = tops[["pretrained", "finetuned", "name"]]
        near = partial(np.isclose, rtol=0, atol=width)
        label_points(axes, names, near, step, xytext=(4, 0), va="center")
        axes.axline((0, 0), slope=1, **DASHED, label="no change")
        axes.margins(x=0.1)
        axes.set(title=f"set-up {setup}", xlabel="score of the cue before fine-tuning")
    if setups:
        grid[0].set_ylabel("score of the cue after fine-tuning\n(1 = uniform attention)")
        figure.legend(*grid[0].get_legend_handles_labels(), ncols=3, loc="outside upper center")
    return figure


def ablation_panels(ablations: pd.DataFrame) -> Figure:
    """Change of accuracy by where the cue stands: a diamond with its interval for each run, dashes for random sets."""
    panels = ablations.groupby("setup", sort=False)
    figure, grid = rows_of_axes(len(panels), len(panels), 2.7, sharey=True)
    for axes, (setup, rows) in zip(grid, panels, strict=True):
        points, seeds = [*rows["points"].unique()], [*rows["seed"].unique()]
        shift = rows["seed"].map(seeds.index) - (len(seeds) - 1) / 2
        across = rows["points"].map(points.index) + 0.2 * shift
        change, low, high = (100 * rows[name] for name in ("change", "low", "high"))
        cue, label = rows["intervention"] == CUE_HEADS, "random set of heads of the same layers"
        axes.plot(across[~cue], change[~cue], "_", color="0.6", label=label)
        axes.vlines(across[cue], low[cue], high[cue], color=VERMILION, linewidth=1)
        axes.plot(across[cue], change[cue], **DIAMOND, label="heads that attend to the cue most")
        axes.axhline(0, **DASHED)
        counts = rows.groupby("points")["n"].first()
        axes.set_xticks(range(len(points)), [f"{kind}\nn = {counts[kind]}" for kind in points])
        axes.set_title(f"set-up {setup}")
    grid[0].set_ylabel("change of accuracy (points)")
    figure.supxlabel(
        "where the cue stands: in the right warrant, in the wrong one, or in neither or both (absent)"
    )
    figure.legend(*grid[0].get_legend_handles_labels(), ncols=2, loc="outside upper center")
    return figure
