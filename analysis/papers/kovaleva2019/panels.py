"""What the paper's figures draw: grids of heads, and attention to features over layers."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Shaped
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.colours import BLUE, GREEN, MISSING, ORANGE, PURPLE, SKY, VERMILION
from analysis.figures.theme import STATE_NAMES, as_written, rows_of_axes
from analysis.papers.kovaleva2019.names import CLS, HETEROGENEOUS, NEGATION, PATTERNS, SEP, STATES
from analysis.statistics.layers import head_grid

Grids = dict[str, Shaped[np.ndarray, "layer head"]]  # by title
PATTERN_COLOURS = [BLUE, SKY, GREEN, ORANGE, MISSING]
COLOURS = (BLUE, VERMILION, GREEN, PURPLE)
STYLES = {
    "pretrained": {"linestyle": "--"},
    "finetuned": {"linestyle": "-"},
    "BERT-base, pretrained": {"linestyle": "", "marker": "D", "mfc": "white"},
    "BERT-base, finetuned": {"linestyle": "", "marker": "D"},
}
NAMES = STATE_NAMES | {f"BERT-base, {state}": f"BERT-base, {name}" for state, name in STATE_NAMES.items()}
GROUPS = {
    "special tokens, punctuation": (CLS, SEP, "punctuation"),
    "parts of speech, negation": ("noun", "verb", "pronoun", NEGATION),
    "arguments of verbs": ("subject", "object"),
}


def head_panels(table: pd.DataFrame, value: str, by: Sequence[str]) -> Grids:
    """A column of a table as layers x heads for each combination of the columns `by`, which give the title."""
    groups = table.groupby([*by], sort=False)
    return {", ".join(map(str, names)): head_grid(rows, value) for names, rows in groups}


def link_panels(links: pd.DataFrame, bert_heads: pd.DataFrame | None, alpha: float) -> tuple[Grids, Grids]:
    """Attention to frame links by title, and the heads whose attention exceeds their control's (`p_by` below `alpha`).

    `links` is the table `kovaleva_links`; beside each direction stands its control. BERT-base's published values, if
    any, come first.
    """
    links = links.assign(title=links["direction"].str.replace("_", " "), exceeds=links["p_by"] < alpha)
    grids = {} if bert_heads is None else {"BERT-base (published)": head_grid(bert_heads, "link")}
    for title, rows in links.groupby("title", sort=False):
        grids |= {title: head_grid(rows, "mean"), f"{title},\ncontrol": head_grid(rows, "control")}
    dots = {name: np.zeros_like(grid, bool) for name, grid in grids.items()}
    return grids, dots | {name: grid > 0 for name, grid in head_panels(links, "exceeds", ["title"]).items()}


@as_written
def pattern_bars(shares: Mapping[str, pd.DataFrame], precision: Mapping[str, float]) -> Figure:
    """The share of maps with each pattern as stacked bars, by task and state; a panel for each encoder.

    `precision` is that of the first encoder's labels, by pattern. Columns `low` and `high`, if there, give a black bar:
    the interval of the heterogeneous share, read downwards.
    """
    widths = [max(3, rows["task"].nunique()) for rows in shares.values()]
    figure, grid = rows_of_axes(len(shares), 2, 3.3, sharey=True, width_ratios=widths)
    for axes, (title, rows) in zip(grid, shares.items(), strict=True):
        rows = rows.sort_values(["task", "state"], ascending=[True, False])  # pretrained before finetuned
        rows = rows.assign(bar=rows["task"] + ", " + rows["state"].map(STATE_NAMES))
        bars = rows.pivot(index="bar", columns="pattern", values="share")[[*PATTERNS]]
        bars = bars.loc[rows["bar"].unique()]
        bars.plot.bar(stacked=True, width=0.85, color=PATTERN_COLOURS, legend=False, ax=axes)
        axes.set(title=title, xlabel="", ylabel="share of maps", ylim=(0, 1))
        if "low" in rows:
            ends = rows[rows["pattern"] == HETEROGENEOUS]
            axes.vlines(range(len(ends)), 1 - ends["high"], 1 - ends["low"], color="black", linewidth=1.2)
    handles, names = grid[0].get_legend_handles_labels()
    labels = [f"{name}\n({precision[name]:.0%} right by eye)" for name in names]
    figure.legend(handles, labels, ncols=5, loc="outside upper center", columnspacing=1.0)
    return figure


@as_written
def feature_lines(features: pd.DataFrame, bert_layers: pd.DataFrame, bert_features: pd.DataFrame) -> Figure:
    """Mean attention of a layer to each feature, at most four features a panel: mean and range over tasks.

    `features` is the table `kovaleva_features`; the others hold published values of BERT-base by layer and over all
    layers. BERT-base's layers are stretched to the depth of this encoder. Source: Kovaleva 2019, figure 6.
    """
    by_task = features.groupby(["feature", "state", "task", "layer"])["mean"].mean().unstack("layer")
    last = by_task.columns[-1]
    ticks = np.arange(0, last + 1, max(1, last // 4))
    figure, grid = rows_of_axes(len(GROUPS), 3, 2.1, 0.4)
    for axes, (title, names) in zip(grid, GROUPS.items(), strict=True):
        for name, colour in zip(names, COLOURS, strict=False):
            for state in STATES:
                rows, label = by_task.loc[(name, state)], name if state == "finetuned" else None
                axes.plot(rows.mean(), color=colour, label=label, **STYLES[state])
                axes.fill_between(rows.columns, rows.min(), rows.max(), color=colour, alpha=0.12, linewidth=0)
            bert = bert_layers.query("feature == @name and state == 'pretrained'")
            depth = bert["layer"] * last / bert["layer"].max()
            axes.plot(depth, bert["mean"], "D:", color=colour, mfc="white", ms=3, lw=0.7)
            for state, value in bert_features.loc[bert_features["feature"] == name, [*STATES]].items():
                face = {"mfc": "white"} if state == "pretrained" else {}
                axes.plot([last + 1] * len(value), value, "D", color=colour, ms=4, **face)
        axes.set(title=title, ylim=(0, 1.3 * axes.get_ylim()[1]))  # room for the legend
        axes.set_xticks([*ticks, last + 1], [*ticks, "BERT"])
        axes.legend(fontsize=6.5, loc="upper center", ncols=2)
    handles = [
        Line2D([], [], color="black", ms=4, label=NAMES[name], **style) for name, style in STYLES.items()
    ]
    figure.legend(handles=handles, ncols=4, loc="outside upper center")
    figure.supxlabel(
        "layer (0-based; dotted: BERT-base before fine-tuning, at equal depth; BERT: mean over its layers)"
    )
    figure.supylabel("mean attention")
    return figure
