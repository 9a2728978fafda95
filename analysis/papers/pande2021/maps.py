"""Figures of all heads in all tasks: role maps, sets of coarse roles, mean scores."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures import theme
from analysis.figures.colours import BLUE, colour
from analysis.roles import PUBLISHED_ROLES, RELATIONS, ROLES
from analysis.statistics.roles import COARSE, coarse_memberships, local_and_syntactic

GROUND = "delimiter"  # most heads have this role, so it is the ground of their cells
CELL = (  # the place of each role in the cell of a head
    ("local", "syntactic", "block", GROUND),
    RELATIONS,
    ("cls", "sep", *(role for role in ROLES if role not in PUBLISHED_ROLES)),
)
WIDEST = max(map(len, CELL))


@theme.as_written
def role_maps(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """The role map (Pande 2021): layers x heads for each title, in a head's cell a mark for each of its roles.

    A role has the same place in all cells as in the legend; the cells of delimiter heads are grey.
    """
    depth = max(table["layer"].max() for table in tables.values()) + 1
    figure, panels = theme.rows_of_axes(len(tables), 2, 0.22 * depth + 0.5, 0.6)
    for axes, (title, table) in zip(panels, tables.items(), strict=True):
        layers, heads = table[["layer", "head"]].max() + 1
        with_role = table[table["assigned"].fillna(False).astype(bool)].set_index("role")
        grey = with_role[with_role.index == GROUND]
        axes.bar(grey["head"], 1, 1, grey["layer"] - 0.5, color="0.9", zorder=0)
        for row, roles in enumerate(CELL):
            for column, role in enumerate(roles):
                marked = with_role[(with_role.index == role) & (role != GROUND)]
                x = marked["head"] + (column + 0.5) / WIDEST - 0.5
                axes.scatter(x, marked["layer"] + 0.3 * (1 - row), 7, colour(role), "s", linewidths=0)
        axes.set(title=title, xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5))
        theme.integer_ticks(axes, bins=4)
        axes.vlines(np.arange(1, heads) - 0.5, -0.5, layers - 0.5, color="0.6", lw=0.4)
        axes.hlines(np.arange(1, layers) - 0.5, -0.5, heads - 0.5, color="0.6", lw=0.4)
    looks = {role: {"color": colour(role), "ms": 4, "label": role} for roles in CELL for role in roles}
    looks[GROUND] |= {"color": "0.9", "ms": 8}
    drawn = {role for table in tables.values() for role in table.loc[table["assigned"].eq(True), "role"]}
    looks = {role: look for role, look in looks.items() if role in drawn}  # the released maps lack `match`
    names = [roles[column] if column < len(roles) else "" for column in range(WIDEST) for roles in CELL]
    marks = [Line2D([], [], ls="", marker="s", **looks.get(role, {"ms": 0, "label": " "})) for role in names]
    figure.legend(
        handles=marks, ncols=WIDEST, loc="outside upper center", title="places in the cell of a head"
    )
    figure.supxlabel(theme.HEAD)
    figure.supylabel(f"{theme.LAYER}, layer 0 at the bottom")
    return figure


@theme.as_written
def role_sets(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """The share of the heads with exactly each set of coarse roles: a panel for each task, a bar for each encoder.

    `tables` has the labels of an encoder in one state, with a column task, by its name. The titles have the number of
    local heads, and how many of them are syntactic by the pooled role.
    """
    encoders = {
        name: coarse_memberships(table.drop(columns="state", errors="ignore"))
        for name, table in tables.items()
    }
    shares = {name: heads.groupby("task").value_counts(normalize=True) for name, heads in encoders.items()}
    shares = 100 * pd.DataFrame(shares).unstack("task").fillna(0)
    shares = shares.loc[shares.mean(axis=1).sort_values().index]  # the most frequent set is on top
    tasks = [*dict.fromkeys(next(iter(tables.values()))["task"])]
    height, columns = 0.17 * len(shares) + 0.4, len(tasks) + 1
    figure, (dots, *panels) = theme.rows_of_axes(columns, columns, height, 0.8, sharey=True)
    for place, members in enumerate(shares.index):
        present = np.flatnonzero(members)
        dots.plot(range(len(members)), [place] * len(members), "o", color="0.88", ms=4)
        dots.plot(present, [place] * len(present), "o-", color="0.15", ms=4, lw=1.2)
    dots.set(yticks=[], ylabel="set of coarse roles", xlim=(-0.5, len(COARSE) - 0.5))
    dots.set_xticks(range(len(COARSE)), COARSE, rotation=90)
    for axes, task in zip(panels, tasks, strict=True):
        lines = [task]
        for place, (name, table) in enumerate(tables.items()):
            heights, width = np.arange(len(shares)) + 0.2 - 0.4 * place, 0.8 / len(tables)
            axes.barh(heights, shares[name, task], width, color=(BLUE, "0.6")[place], label=name)
            heads = local_and_syntactic(table[table["task"] == task])
            lines.append(f"{name}: {heads['both']} of {heads['local']}")
        axes.set_title("\n".join(lines))
        axes.set_xlim(0, shares.max(axis=None))
    figure.supxlabel("heads with exactly these roles (%)")
    legend = panels[0].get_legend_handles_labels()
    figure.legend(
        *legend, ncols=2, loc="outside upper center", title="titles: local heads that are syntactic"
    )
    return figure


@theme.as_written
def mean_maps(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """The mean scores of all heads: for each title a picture with a row of maps per task and a column per role."""
    figure, panels = theme.rows_of_axes(len(tables), 1, 2.6)
    for axes, (title, table) in zip(panels, tables.items(), strict=True):
        roles, tasks = theme.in_order(table["role"]), [*dict.fromkeys(table["task"])][::-1]
        layers, heads = table[["layer", "head"]].max() + 1
        maps = np.full((len(tasks), layers, len(roles), heads), np.nan)
        places = table["task"].map(tasks.index), table["layer"], table["role"].map(roles.index), table["head"]
        maps[places] = table["mean"].clip(1e-3)  # for the logarithm
        picture = maps.reshape(len(tasks) * layers, -1)
        mesh = theme.layer_head_mesh(axes, picture, cmap="vlag", norm=LogNorm(1 / 30, 30))
        axes.set_title(title)
        axes.set_xticks((np.arange(len(roles)) + 0.5) * heads - 0.5, roles)
        axes.set_yticks((np.arange(len(tasks)) + 0.5) * layers - 0.5, tasks)
        axes.vlines(np.arange(1, len(roles)) * heads - 0.5, *axes.get_ylim(), color="black", lw=0.6)
        axes.hlines(np.arange(1, len(tasks)) * layers - 0.5, *axes.get_xlim(), color="black", lw=0.6)
    figure.supylabel("task; in each map layers upwards, heads across")
    label = "mean sieve bias score, logarithmic\n(1 = uniform attention)"
    figure.colorbar(mesh, ax=panels, aspect=40, pad=0.02, extend="both", format="{x:g}", label=label)
    return figure
