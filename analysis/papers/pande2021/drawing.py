"""Figures of single scores, of the attention mass, and of labels in several fine-tuning runs."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from analysis.figures import theme
from analysis.figures.colours import BLACK, BLUE, MISSING, ORANGE, VERMILION, colour

EDGES = np.geomspace(0.1, 100, 41)  # of the bins of scores
TYPICAL, NEAREST = "a typical head with the role", "the head nearest to τ"
EXAMPLES = {TYPICAL: {"color": ORANGE, "lw": 1.5}, NEAREST: {"color": BLUE, "ls": (0, (3, 1.5))}}


def score_histograms(
    panels: Mapping[str, tuple[xr.DataArray, pd.DataFrame, str]], tau: float, columns: int = 5
) -> Figure:
    """The scores of single sequences, of all heads, a typical head and the head nearest to tau, a panel per title.

    `panels` has composed scores, their role table and the role to show. The typical head has the median mean among
    those with the role.
    """
    figure, grid = theme.rows_of_axes(len(panels), columns, 1.25, 0.7, sharex=True)
    for axes, (title, (scores, table, role)) in zip(grid, panels.items(), strict=True):
        rows = table[table["role"] == role].dropna(subset="mean")
        by_head = scores.sel(role=role)
        axes.stairs(_frequencies(by_head.values), EDGES, color=MISSING, fill=True, label="all heads")
        for layer, head, label in _example_heads(rows, tau):
            values = by_head.sel(layer=layer, head=head).values
            axes.stairs(_frequencies(values), EDGES, label=label, **EXAMPLES[label])
        axes.axvline(tau, color="black", linestyle="--", linewidth=0.8, label=f"τ = {tau:g}")
        axes.set(title=title if len(rows) else f"{title}: not applicable", xscale="log", yticks=[])
    handles = {
        name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, ncols=4, loc="outside upper center")
    figure.supxlabel("sieve bias score of one sequence (1 = uniform attention; below 0.1 at the left edge)")
    figure.supylabel("frequency (highest bin = 1)")
    return figure


def _frequencies(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, " bin"]:
    """The counts of scores in the bins of EDGES, divided by the highest."""
    counts = np.histogram(values[np.isfinite(values)].clip(EDGES[0], EDGES[-1]), EDGES)[0]
    return counts / max(1, counts.max())


def _example_heads(rows: pd.DataFrame, tau: float) -> Iterator[tuple[int, int, str]]:
    """Layer, head and name of the typical head of a role and of the head nearest to tau."""
    with_role = rows[rows["assigned"]].sort_values("mean")
    typical = with_role.iloc[len(with_role) // 2 :].head(1)
    nearest = rows.loc[(rows["mean"] - tau).abs().nsmallest(1).index]
    for heads, label in ((typical, TYPICAL), (nearest, NEAREST)):
        for row in heads.itertuples():
            yield row.layer, row.head, label


def mass_lines(masses: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """The mean attention to [SEP], [CLS] and other tokens by layer, before (dashed) and after fine-tuning, by task."""
    means = masses.groupby(["task", "state", "layer"])[["sep", "cls", "other"]].mean()
    marks = {
        "sep": ("d", colour("sep"), "[SEP]"),
        "cls": ("^", colour("cls"), "[CLS]"),
        "other": ("o", "0.2", "other tokens"),
    }
    states = {"pretrained": ("--", "white", "before"), "finetuned": ("-", None, "after fine-tuning")}
    figure, grid = theme.panels(len(tasks), 4, 1.7, theme.LAYER, "proportion of attention")
    for axes, task in zip(grid, tasks, strict=True):
        for target, (mark, shade, name) in marks.items():
            for state, (dash, inside, when) in states.items():
                line = means.loc[(task, state), target]
                look = {"marker": mark, "color": shade, "markersize": 3.5, "markerfacecolor": inside or shade}
                axes.plot(line.index, line, dash, linewidth=1, label=f"{name}, {when}", **look)
        axes.set(title=task, ylim=(0, 1))
    figure.legend(*grid[0].get_legend_handles_labels(), ncols=3, loc="outside lower center")
    return figure


def run_counts(counts: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """Numbers of heads with each role: a mark for each fine-tuning run, a line for the encoder before (no seed)."""
    order = theme.in_order(counts["role"])
    tuned = counts["seed"].notna()
    looks = {
        "published": (tuned, "published", -0.15, "o", BLUE),
        "corrected": (tuned, "corrected", 0.2, "D", VERMILION),
        "published, before fine-tuning": (~tuned, "published", 0, "|", BLACK),
    }
    figure, grid = theme.panels(len(tasks), 4, 0.22 * len(order) + 0.5, "heads", "role")
    for axes, task in zip(grid, tasks, strict=True):
        for name, (rows, column, shift, mark, shade) in looks.items():
            plotted = counts[rows & (counts["task"] == task)].dropna(subset=column)
            heights = plotted["role"].map(order.index) + shift
            axes.plot(plotted[column], heights, mark, color=shade, mfc="none", markersize=4, label=name)
        axes.set(title=task, ylim=(len(order) - 0.5, -0.5))
        axes.set_yticks(range(len(order)), order)
    handles = grid[0].get_legend_handles_labels()
    figure.legend(*handles, ncols=3, loc="outside lower center", title="a mark per fine-tuning run")
    return figure
