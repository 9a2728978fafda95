"""Figures of the synthesis: sets against random sets, coefficients, gates, agreement, survival of roles."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.figures.colours import BLUE, MISSING, ORANGE, SKY, VERMILION, colour, ink
from analysis.figures.theme import DOUBLE, HEAD, LAYER, canvas, in_order, layer_head_mesh, panels
from analysis.synthesis import agreement, sets
from analysis.synthesis.regression import RAW

GATE_COLOURS = {"facilitating": BLUE, "irrelevant": "white", "interfering": VERMILION, "mixed": "0.75"}
UNITS = {"loss": "change of the loss (nats)", "accuracy": "change of the accuracy (share)"}
LOOKS = {"audited": {"marker": "o", "offset": -0.18}, "controlled": {"marker": "D", "offset": 0.18}}
MAP_COLOURS = (BLUE, ORANGE, SKY, VERMILION)


def _nothing(reason: str) -> Figure:
    """A figure with the reason why there is nothing to show."""
    axes = canvas(DOUBLE, 0.5)
    axes.axis("off")
    axes.text(0.5, 0.5, reason, ha="center", va="center", transform=axes.transAxes)
    return axes.figure


def sets_plot(table: pd.DataFrame) -> Figure:
    """Change with all heads of a role off, pooled over tasks, beside the range of random sets; a panel per metric.

    `table` is that of `sets_table`. Filled marks: p < .05 after Holm. A grey bar is the 95 % range of random sets.
    """
    rows = table[(table["task"] == sets.POOLED)].dropna(subset="change")
    if rows.empty:
        return _nothing("no role has a set that random sets can be held against")
    roles = in_order(rows["role"])[::-1]
    figure, grid = plt.subplots(
        1, 2, figsize=(DOUBLE, 0.26 * len(roles) + 1.1), sharey=True, layout="constrained"
    )
    for axes, metric in zip(grid, sets.CHANGED, strict=True):
        axes.axvline(0, color="black", linewidth=0.6)
        for row in rows[rows["metric"] == metric].itertuples():
            height = roles.index(row.role) - LOOKS[row.label]["offset"]
            axes.hlines(height, row.random_low, row.random_high, color="0.75", linewidth=5)
            axes.plot(row.random, height, "|", color="0.35", markersize=6)
            look = {"markerfacecolor": colour(row.role) if row.p_holm < 0.05 else "white"}
            axes.plot(
                row.change, height, LOOKS[row.label]["marker"], color=ink(row.role), markersize=4.5, **look
            )
        axes.set_xlabel(UNITS[metric])
        axes.locator_params(axis="x", nbins=5)
    grid[0].set_yticks(range(len(roles)), labels=roles)
    grid[0].set_ylabel("role")
    figure.legend(handles=_sets_key(), ncols=4, loc="outside lower center")
    return figure


def _sets_key() -> list:
    point = {"color": "black", "linestyle": "", "markersize": 4.5}
    return [
        Line2D([], [], marker="o", **point, label="role's heads, audited (filled: p < .05, Holm)"),
        Line2D([], [], marker="D", **point, markerfacecolor="white", label="controlled"),
        Line2D([], [], color="0.75", linewidth=5, label="random sets, 95 %"),
        Line2D([], [], marker="|", color="0.35", linestyle="", label="their mean"),
    ]


def regression_plot(table: pd.DataFrame) -> Figure:
    """Coefficients of role scores with their intervals, for each role alone and for the model with several roles.

    `table` is that of `regression_table`. Filled marks: p < .05 after Holm in the permutation within layers.
    """
    rows = table[table["variant"] == RAW].dropna(subset="estimate")
    if rows.empty:
        return _nothing("no heads were removed one by one")
    roles = in_order(rows["term"])[::-1]
    axes = canvas(DOUBLE, 0.26 * len(roles) + 1.2)
    axes.axvline(0, color="black", linewidth=0.6)
    for row in rows.itertuples():
        height = roles.index(row.term) + (0.15 if row.model == "alone" else -0.15)
        filled = row.model == "alone" and row.p_holm < 0.05
        axes.hlines(height, row.low, row.high, color=ink(row.term), linewidth=1.2)
        look = {"markerfacecolor": colour(row.term) if filled else "white", "markersize": 4.5}
        axes.plot(row.estimate, height, "o" if row.model == "alone" else "s", color=ink(row.term), **look)
    axes.set_yticks(range(len(roles)), labels=roles)
    axes.set(
        ylabel="role",
        xlabel="slope within layers: change of the loss (sd) for one sd of log(1 + score), 95 % over heads",
    )
    point = {"color": "black", "linestyle": "", "markersize": 4.5}
    keys = [
        Line2D([], [], marker="o", **point, label="alone (filled: permutation p < .05, Holm)"),
        Line2D([], [], marker="s", **point, markerfacecolor="white", label="with the other coarse roles"),
    ]
    axes.figure.legend(handles=keys, ncols=2, loc="outside lower center")
    return axes.figure


def gates_map(table: pd.DataFrame) -> Figure:
    """The class of every head: a map of layers x heads per task. If the table has a column `role`, a dot marks heads
    with an audited role other than a delimiter's.

    `table` has task, layer, head and gate_class for one run per task; heads without a class are left out.
    """
    table = table.dropna(subset="gate_class")
    tasks = table["task"].unique()
    figure, axes = panels(len(tasks), 4, 1.5, HEAD, LAYER)
    names = [*GATE_COLOURS]
    colours, norm = (
        ListedColormap([*GATE_COLOURS.values()]),
        BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names)),
    )
    for panel, task in zip(axes, tasks, strict=True):
        rows = table[table["task"] == task]
        codes = rows.assign(code=rows["gate_class"].map(names.index)).pivot(
            index="layer", columns="head", values="code"
        )
        layer_head_mesh(
            panel, codes.to_numpy(float), cmap=colours, norm=norm, edgecolor=MISSING, linewidth=0.3
        )
        if "role" in rows:
            held = rows[rows["role"].astype(bool)]
            panel.plot(held["head"], held["layer"], ".", color="black", markersize=3)
        panel.set_title(task)
    keys = [Patch(facecolor=shade, edgecolor="0.6", label=name) for name, shade in GATE_COLOURS.items()]
    keys.append(Line2D([], [], marker=".", linestyle="", color="black", label="has a role beside delimiters"))
    figure.legend(handles=keys, ncols=len(keys), loc="outside lower center")
    return figure


def agreement_map(table: pd.DataFrame) -> Figure:
    """Rank correlations of all pairs of measures with their intervals: over all heads below, within layers above."""
    rows = table[table["kind"] == agreement.IMPORTANCE]
    if rows.empty:
        return _nothing("no two measures were made in the same run")
    names = [*dict.fromkeys([*rows["first"], *rows["second"]])]
    values = np.full((len(names), len(names)), np.nan)
    axes = canvas(DOUBLE, 0.5 * len(names) + 1.2)
    for row in rows[rows["statistic"].isin(["spearman", "spearman within layers"])].itertuples():
        place = names.index(row.second), names.index(row.first)
        place = place if row.statistic == "spearman" else place[::-1]
        values[place] = row.value
        shade = "white" if abs(row.value) > 0.65 else "black"
        text = f"{row.value:.2f}\n[{row.low:.2f}, {row.high:.2f}]"
        axes.text(place[1], place[0], text, ha="center", va="center", fontsize=7, color=shade)
    axes.set_facecolor(MISSING)
    mesh = axes.imshow(np.ma.masked_invalid(values), cmap="vlag", vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(
        range(len(names)), labels=[name.replace(", ", ",\n").replace(" ", "\n", 1) for name in names]
    )
    axes.set_yticks(range(len(names)), labels=names)
    axes.tick_params(length=0)
    axes.set_xlabel("below the diagonal over all heads, above it within layers")
    axes.figure.colorbar(mesh, ax=axes, label="rank correlation")
    return axes.figure


def survival_plot(table: pd.DataFrame) -> Figure:
    """Kappa of each role's labels between attention and other maps, mean over tasks, with intervals."""
    rows = table[(table["kind"] == agreement.ROLES) & (table["task"] == agreement.POOLED)].dropna(
        subset="value"
    )
    if rows.empty:
        return _nothing("roles on other maps were not measured")
    roles, maps = in_order(rows["role"])[::-1], [*rows["second"].unique()]
    axes = canvas(DOUBLE, 0.24 * len(roles) + 1.2)
    for place in (0.0, 0.6):
        axes.axvline(place, color="0.6", linewidth=0.6, linestyle="-" if place == 0 else "--")
    for number, (other, shade) in enumerate(zip(maps, MAP_COLOURS, strict=False)):
        own = rows[rows["second"] == other]
        heights = np.array([roles.index(role) for role in own["role"]]) + 0.2 * ((len(maps) - 1) / 2 - number)
        axes.hlines(heights, own["low"], own["high"], color=shade, linewidth=1.2)
        axes.plot(
            own["value"], heights, "os^D"[number], color=shade, markersize=4.5, label=other.replace("_", " ")
        )
    axes.set_yticks(range(len(roles)), labels=roles)
    axes.set(ylabel="role", xlabel="Cohen's kappa with the labels on attention (dashed: substantial, 0.6)")
    axes.figure.legend(ncols=len(maps) or 1, loc="outside lower center")
    return axes.figure
