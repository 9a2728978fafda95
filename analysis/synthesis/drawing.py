"""Figures across the papers: sets of heads beside random sets, and how far measures of importance agree."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures import theme
from analysis.figures.colours import colour, ink, marker


def set_effects(excess: pd.DataFrame, names: dict[str, str]) -> Figure:
    """The excess effect of the heads of each role (marks) and of random sets (dashes), a panel for each task.

    `excess` has task, role, own (whether the set is the role's) and excess; `names` has the text beside every role.
    """
    order = theme.in_order(excess["role"])[::-1]
    figure, grid = theme.rows_of_axes(excess["task"].nunique(), 4, 2.9, sharey=True)
    for axes, (task, rows) in zip(grid, excess.groupby("task", sort=False), strict=True):
        random = rows[~rows["own"]]
        axes.axvline(0, color="black", linewidth=0.6)
        axes.plot(random["excess"], random["role"].map(order.index), "|", color="0.7", markersize=5)
        for row in rows[rows["own"]].itertuples():
            look = {"color": ink(row.role), "markerfacecolor": colour(row.role), "markersize": 5.5}
            axes.plot(row.excess, order.index(row.role), marker(row.role), **look)
        axes.set(title=task, yticks=range(len(order)), xlabel="excess fall in AUC")
        axes.set_yticklabels([names[role] for role in order])
        axes.locator_params(axis="x", nbins=4)
    random_set = Line2D([], [], color="0.7", marker="|", linestyle="", label="random set of heads")
    role_set = Line2D([], [], color="0.3", marker="o", linestyle="", label="heads of the role")
    figure.legend(handles=[random_set, role_set], ncols=2, loc="outside upper center")
    return figure


def rank_correlations(pairs: pd.DataFrame) -> Figure:
    """The rank correlations of measures with their intervals: below the diagonal over all heads, above within layers.

    `pairs` are the means over tasks of `agreement.importance_agreement`.
    """
    names = [*dict.fromkeys([*pairs["first"], *pairs["second"]])]
    values = np.full((len(names), len(names)), np.nan)
    axes = theme.canvas(theme.DOUBLE, 0.5 * len(names) + 1.2)
    for row in pairs.itertuples():
        place = names.index(row.second), names.index(row.first)
        place = place if row.statistic == "spearman" else place[::-1]
        values[place] = row.value
        shade = "white" if abs(row.value) > 0.65 else "black"
        text = f"{row.value:.2f}" + (f"\n[{row.low:.2f}, {row.high:.2f}]" if np.isfinite(row.low) else "")
        axes.text(place[1], place[0], text, ha="center", va="center", fontsize=7, color=shade)
    theme.hatch_missing(axes)
    mesh = axes.imshow(np.ma.masked_invalid(values), cmap="vlag", vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(names)), [name.replace(" ", "\n", 1).replace(", ", ",\n") for name in names])
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("below the diagonal over all heads, above it within layers")
    axes.figure.colorbar(mesh, ax=axes, label="rank correlation")
    return axes.figure
