"""Figures of cues, and of the accuracy of models with and without them (Niven 2019)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.colours import BLACK, BLUE, GREEN, VERMILION
from analysis.figures.theme import rows_of_axes
from analysis.papers.niven2019.accuracy import CUE_HEADS
from analysis.papers.niven2019.arguments import SETUPS
from analysis.papers.niven2019.cues import NOT, WARRANTS
from analysis.papers.niven2019.published import DOUBLED, ENCODER, ORIGINAL

CHANCE = {"color": "black", "linestyle": "--", "linewidth": 0.8}
OURS = {"marker": "o", "markersize": 3.5, "linestyle": "", "color": BLUE}
PAPER = {"marker": "D", "markersize": 5, "linestyle": "", "color": VERMILION, "markerfacecolor": "white"}
BIGRAM = {"marker": "s", "markersize": 3, "linestyle": "", "color": GREEN}
RUN = {"marker": "o", "markersize": 3, "linestyle": "", "color": BLUE, "alpha": 0.8}
OPEN = {**RUN, "markerfacecolor": "none"}
UNFIT = {"marker": "x", "markersize": 3, "linestyle": "", "color": "0.55"}
MEAN = {"marker": "_", "markersize": 8, "markeredgewidth": 1.8, "linestyle": "", "color": BLACK}
PUBLISHED_ENCODER = "BERT-large"  # the article's encoder, drawn next to ours
SETUP_MARKERS = dict(zip(SETUPS, "osD^", strict=True))
RANDOM = {"marker": "_", "markersize": 7, "linestyle": "", "color": "0.6"}
NAMED = 4  # bigrams and other unigrams that each panel names


def cue_map(table: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Productivity against coverage of the cues of each split, with intervals for the cues that are named.

    `table` is that of `cues.cue_table`, `published` that of `published.niven("cues")`. The dashed line is chance.
    Source: Niven 2019, Table 2.
    """
    shown = table[table["rule"] == "expanded"]
    splits = list(dict.fromkeys(shown["split"]))
    figure, grid = rows_of_axes(len(splits), len(splits), 2.6, sharex=True, sharey=True)
    for axes, split in zip(grid, splits, strict=True):
        _cue_panel(axes, shown[shown["split"] == split])
        there = published[published["split"] == split]
        axes.plot(there["coverage"], there["productivity"], label='"not" as published (Table 2)', **PAPER)
        axes.set(title=split, xlabel="coverage (logarithmic)", xscale="log", xlim=(0.003, 1), ylim=(0, 1))
        axes.set_xticks([0.01, 0.1, 1], labels=["0.01", "0.1", "1"])
    grid[0].set_ylabel("productivity\n(proportion of points where the cue applies)")
    figure.legend(
        *grid[0].get_legend_handles_labels(), ncols=4, loc="outside lower center", handletextpad=0.3
    )
    return figure


def _cue_panel(axes: Axes, rows: pd.DataFrame) -> None:
    axes.axhline(1 / WARRANTS, label="chance", **CHANCE)
    best = rows[(rows["order"] == 2) & (rows["low"] > 1 / WARRANTS)].nlargest(NAMED, "applicability")
    strongest = rows[rows["cue"] == NOT]
    for order, look, label in ((1, OURS, "unigram"), (2, BIGRAM, "bigram")):
        named = pd.concat([strongest, best])
        cues, barred = (part[part["order"] == order] for part in (rows, named))
        axes.vlines(barred["coverage"], barred["low"], barred["high"], color=look["color"], linewidth=0.9)
        axes.plot(cues["coverage"], cues["productivity"], label=label, **look)
    for row in strongest.itertuples():
        axes.annotate(row.cue, (row.coverage, row.low), xytext=(0, -3), textcoords="offset points", ha="center",
                      va="top", fontsize=7.5)  # fmt: skip
    for place, row in enumerate(best.sort_values("productivity", ascending=False).itertuples()):
        axes.annotate(row.cue, (row.coverage, row.productivity), xytext=(0.62, 0.96 - 0.065 * place),
                      textcoords="axes fraction", fontsize=7, va="center",
                      arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "0.5"})  # fmt: skip


def setup_accuracy(table: pd.DataFrame, summary: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Test accuracy of every run by set-up, a panel per model and training set, with its mean and interval.

    `table` is that of `accuracy.accuracy_table`, `summary` that of `accuracy.summary_table` for the runs that fit,
    `published` that of `published.niven("results")`. Each run that fits is a point; the others are grey crosses, stand
    apart on the right, and do not count in the mean. Diamonds are the article's means, those of BERT-large next to our
    encoder. Training and test set are of the same kind. Source: Niven 2019, Tables 3 and 4.
    """
    table, summary = (
        part[(part["tested_on"] == part["trained_on"]) & (part["half"] == "all")] for part in (table, summary)
    )
    kinds = list(dict.fromkeys(zip(table["trained_on"], table["model"], strict=True)))
    setups = [table[(table["trained_on"] == a) & (table["model"] == b)]["setup"].nunique() for a, b in kinds]
    figure, grid = rows_of_axes(len(kinds), len(kinds), 2.5, sharey=True, width_ratios=setups)
    for axes, (trained_on, model) in zip(grid, kinds, strict=True):
        keys = {"trained_on": trained_on, "model": model}
        known = published.replace({"model": {PUBLISHED_ENCODER: ENCODER}})
        _setup_panel(axes, *(_rows(part, **keys) for part in (table, summary, known)))
        axes.set_title(f"{model}\n{trained_on}", fontsize=7.5)
    grid[0].set_ylabel("test accuracy (proportion)")
    figure.supxlabel(
        "what the model sees: all (full), warrants (W), with reason (RW) or claim (CW)", fontsize=8
    )
    figure.legend(handles=_key(), ncols=5, loc="outside upper center", handletextpad=0.3, columnspacing=1)
    return figure


def _rows(table: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows with these values."""
    return table[np.all([table[name] == value for name, value in values.items()], axis=0)]


def _setup_panel(axes: Axes, runs: pd.DataFrame, means: pd.DataFrame, published: pd.DataFrame) -> None:
    axes.axhline(0.5, **CHANCE)
    setups = [setup for setup in SETUPS if setup in set(runs["setup"])]
    for place, setup in enumerate(setups):
        own, mean, known = (_rows(part, setup=setup) for part in (runs, means, published))
        for fitted, look, shift in ((True, RUN, -0.06), (False, UNFIT, 0.34)):
            values = own.loc[own["fitted"] == fitted, "accuracy"]
            spread = np.linspace(-0.1, 0.1, len(values)) if len(values) > 1 else np.zeros(len(values))
            axes.plot(place + shift + spread, values, **look)
        axes.vlines(np.full(len(mean), place + 0.14), mean["low"], mean["high"], color=BLACK, linewidth=1)
        axes.plot(np.full(len(mean), place + 0.14), mean["mean"], **MEAN)
        axes.plot(np.full(len(known), place - 0.32), known["mean"], **PAPER)
    axes.set_xticks(range(len(setups)), labels=setups)
    axes.set_xlim(-0.6, len(setups) - 0.4)


def _key() -> list[Line2D]:
    """Legend of the marks of `setup_accuracy`."""
    marks = {
        "a run that fits": RUN,
        "has not fitted": UNFIT,
        "mean of those that fit": MEAN,
        "article's mean": PAPER,
    }
    return [
        *(Line2D([], [], label=name, **look) for name, look in marks.items()),
        Line2D([], [], label="chance", **CHANCE),
    ]


def adversarial_halves(table: pd.DataFrame) -> Figure:
    """Accuracy on the adversarial copies against that on the originals, a point per run, a panel per training set.

    `table` is that of `accuracy.accuracy_table`. On the dashed line, a run is right in half of all points; a run that
    cannot tell an original from its copy lies there. Source: Niven 2019, section 6 (which gives only the sum).
    """
    wide = table[(table["tested_on"] == DOUBLED) & (table["half"] != "all")]
    wide = wide.pivot(
        index=["model", "setup", "trained_on", "seed"], columns="half", values="accuracy"
    ).reset_index()
    sets = list(dict.fromkeys(wide["trained_on"]))[::-1]
    figure, grid = rows_of_axes(len(sets), len(sets), 2.9, sharex=True, sharey=True)
    colours = looks(list(dict.fromkeys(table["model"])))
    for axes, trained_on in zip(grid, sets, strict=True):
        axes.plot([0, 1], [1, 0], **CHANCE)
        for (model, setup), runs in wide[wide["trained_on"] == trained_on].groupby(
            ["model", "setup"], sort=False
        ):
            axes.plot(runs[ORIGINAL], runs[DOUBLED], linestyle="", marker=SETUP_MARKERS[setup], markersize=4.5,
                      color=colours[model], markerfacecolor="none")  # fmt: skip
        axes.set(title=f"trained on the {trained_on} set", xlabel="accuracy on the originals (proportion)")
    grid[0].set_ylabel("accuracy on the\nadversarial copies (proportion)")
    names = [
        Line2D([], [], linestyle="", marker="o", color=colour, label=name) for name, colour in colours.items()
    ]
    marks = [Line2D([], [], linestyle="", marker=mark, color="0.3", markerfacecolor="none", label=name)
             for name, mark in SETUP_MARKERS.items()]  # fmt: skip
    figure.legend(
        handles=[*names, *marks], ncols=7, loc="outside lower center", handletextpad=0.3, columnspacing=1
    )
    low = min(0.25, wide[[ORIGINAL, DOUBLED]].min().min() - 0.03)
    grid[0].set(xlim=(low, 1 - low), ylim=(low, 1 - low))
    return figure


def cue_heads(table: pd.DataFrame, named: int = 4) -> Figure:
    """Each head's attention to the cue after fine-tuning against before, a panel per set-up, a point per run.

    `table` is that of `heads.head_table`. Filled marks: the change is significant (p_by < 0.05). The heads with the
    highest mean over runs are named (layer-head, 0-based).
    """
    setups = list(dict.fromkeys(table["setup"]))
    figure, grid = rows_of_axes(len(setups), len(setups), 2.9)
    for axes, setup in zip(grid, setups, strict=True):
        rows = table[table["setup"] == setup].dropna(subset="finetuned")
        changed = rows["p_by"] < 0.05
        axes.axline((0, 0), slope=1, **CHANCE)
        for chosen, look, label in ((changed, RUN, "changed (p < 0.05)"), (~changed, OPEN, "undecided")):
            axes.plot(rows["pretrained"][chosen], rows["finetuned"][chosen], label=label, **look)
        means = (
            rows.groupby(["layer", "head"])[["pretrained", "finetuned"]].mean().nlargest(named, "finetuned")
        )
        for (layer, head), place in means.iterrows():
            axes.annotate(
                f"{layer}-{head}", place, xytext=(5, 0), textcoords="offset points", fontsize=7, va="center"
            )
        axes.set(title=f"set-up {setup}", xlabel="pre-trained: score of the cue")
        axes.margins(0.12)
    grid[0].set_ylabel("fine-tuned: score of the cue\n(1 = uniform attention)")
    figure.legend(
        *grid[0].get_legend_handles_labels(), ncols=2, loc="outside lower center", handletextpad=0.3
    )
    return figure


def switched_off_heads(table: pd.DataFrame) -> Figure:
    """Change of accuracy without the cue heads, by position of the cue, next to random sets; a panel per set-up.

    `table` is that of `heads.off_by_setup`. Each fine-tuning run has a diamond with its interval, and its random sets.
    """
    setups, kinds = (list(dict.fromkeys(table[name])) for name in ("setup", "points"))
    figure, grid = rows_of_axes(len(setups), len(setups), 2.7, sharey=True)
    for axes, setup in zip(grid, setups, strict=True):
        rows = table[table["setup"] == setup]
        seeds = list(dict.fromkeys(rows["seed"]))
        shifts = dict(
            zip(seeds, np.linspace(-0.25, 0.25, len(seeds)) if len(seeds) > 1 else [0.0], strict=True)
        )
        across = rows["points"].map(kinds.index) + rows["seed"].map(shifts)
        own = rows["intervention"] == CUE_HEADS
        axes.plot(across[~own], 100 * rows["change"][~own], label="a random set of the same layers", **RANDOM)
        axes.vlines(
            across[own], 100 * rows["low"][own], 100 * rows["high"][own], color=VERMILION, linewidth=1
        )
        axes.plot(
            across[own], 100 * rows["change"][own], label="the heads that look at the cue most", **PAPER
        )
        axes.axhline(0, **CHANCE)
        counts = rows.drop_duplicates("points").set_index("points")["n"]
        axes.set_xticks(range(len(kinds)), labels=[f"{kind}\nn = {counts[kind]}" for kind in kinds])
        axes.set_title(f"set-up {setup}")
    grid[0].set_ylabel("change of accuracy (percentage points)")
    figure.supxlabel('points where the warrant with "not" is right, wrong, absent; all points', fontsize=8)
    figure.legend(
        *grid[0].get_legend_handles_labels(), ncols=2, loc="outside upper center", handletextpad=0.3
    )
    return figure


def looks(names: list[str]) -> Mapping[str, str]:
    """A colour for each name, in their order."""
    return dict(zip(names, (BLUE, VERMILION, GREEN, BLACK), strict=False))
