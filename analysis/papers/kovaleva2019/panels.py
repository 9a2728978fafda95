"""What the paper's figures draw: shares of patterns, and maps of heads."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Shaped
from matplotlib.figure import Figure

from analysis.figures.colours import BLUE, GREEN, MISSING, ORANGE, SKY
from analysis.figures.theme import DOUBLE, HEAD, LAYER, STATE_NAMES, as_written, layer_head_mesh, rows_of_axes
from analysis.papers.kovaleva2019.names import HETEROGENEOUS, PATTERNS, STATES
from analysis.statistics.layers import head_grid

Grids = dict[str, Shaped[np.ndarray, "layer head"]]  # by title
PATTERN_COLOURS = [BLUE, SKY, GREEN, ORANGE, MISSING]


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
    figure.legend(
        handles, labels, ncols=5, loc="outside upper center", columnspacing=0.8, handlelength=1.2, fontsize=7
    )
    return figure


@as_written
def feature_maps(features: pd.DataFrame, names: Sequence[str], bert_layers: pd.DataFrame | None) -> Figure:
    """Mean attention of every head to a feature, before and after fine-tuning: a row of maps for each of `names`.

    `features` is the table `kovaleva_features` of one task, `bert_layers` the published layer means of BERT-base, which
    stand beside as two columns, if any; NA where there are none. Source: Kovaleva 2019, figure 6.
    """
    columns = 2 if bert_layers is None else 3
    figure, grid = plt.subplots(
        len(names), columns, figsize=(DOUBLE, 1.55 * len(names)), squeeze=False, layout="constrained",
        width_ratios=(6, 6, 2)[:columns],
    )  # fmt: skip
    for row, name in zip(grid, names, strict=True):
        rows = features[features["feature"] == name]
        maps = {STATE_NAMES[state]: head_grid(rows[rows["state"] == state], "mean") for state in STATES}
        if bert_layers is not None:
            layers = bert_layers[bert_layers["feature"] == name].pivot(
                index="layer", columns="state", values="mean"
            )
            maps["BERT-base"] = layers.reindex(columns=[*STATES]).to_numpy(float)
        top = np.nanmax(np.concatenate([values.ravel() for values in maps.values()]))
        for axes, (title, values) in zip(row, maps.items(), strict=True):
            if len(values):
                mesh = layer_head_mesh(axes, values, vmin=0, vmax=top)
            else:
                axes.set_axis_off()
                axes.text(0.5, 0.5, "NA", ha="center", va="center", transform=axes.transAxes)
            axes.set_title(f"{name}, {title}")
            if title == "BERT-base":
                axes.set_xticks([0, 1], ["before", "after"])
        row[0].set_ylabel(LAYER)
        figure.colorbar(mesh, ax=row, aspect=12, pad=0.01, format="{x:.2g}", label="mean attention")
    figure.supxlabel(HEAD)
    return figure
