"""Counts of heads over fine-tuning runs and attention mass per layer (F13, F8)."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLUE, VERMILION, colour
from analysis.figures.theme import LAYER, in_order, panels
from analysis.papers.pande2021.layer_maps import STATE_NAMES

MASSES = {
    "sep": {"label": "[SEP]", "color": colour("sep"), "marker": "d", "markersize": 4, "linewidth": 1.0},
    "cls": {"label": "[CLS]", "color": colour("cls"), "marker": "^", "markersize": 3.5, "linewidth": 1.0},
    "other": {"label": "other tokens", "color": "0.2", "marker": "o", "markersize": 3, "linewidth": 1.0},
}
RULE_MARKS = {  # how far below the line of a role the marks of its runs are, and their look
    "published": (
        -0.15,
        {"marker": "o", "markersize": 3.5, "color": BLUE, "label": "published label, a run"},
    ),
    "audited": (
        0.2,
        {
            "marker": "D",
            "markersize": 3.5,
            "markerfacecolor": "none",
            "color": VERMILION,
            "label": "audited label, a run",
        },
    ),
}
PRETRAINED_MARK = {
    "linestyle": "none", "marker": "|", "markersize": 11, "color": "black", "label": "published label, pre-trained",
}  # fmt: skip
STATE_LINES = {"pretrained": "--", "finetuned": "-"}


def counts_over_seeds(counts: pd.DataFrame) -> Figure:
    """Heads with each role, one panel per task: a mark per fine-tuning run, published and audited labels.

    `counts` has the columns task, seed (missing: the pre-trained encoder, drawn as a line), role, published and audited
    (heads).
    """
    tasks, roles = counts["task"].unique(), in_order(counts["role"].unique())
    figure, grid = panels(len(tasks), 4, 0.22 * len(roles) + 0.5, "heads", "role")
    for axes, task in zip(grid, tasks, strict=True):
        rows = counts[counts["task"] == task]
        place = rows["role"].map(roles.index)
        runs = rows["seed"].notna()
        for label, (shift, marks) in RULE_MARKS.items():
            axes.plot(rows.loc[runs, label], place[runs] + shift, linestyle="none", **marks)
        axes.plot(rows.loc[~runs, "published"], place[~runs], **PRETRAINED_MARK)
        axes.set_title(task)
        axes.set_yticks(range(len(roles)), roles)
        axes.set_ylim(len(roles) - 0.5, -0.5)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    handles, _ = grid[0].get_legend_handles_labels()
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def mass_change(masses: pd.DataFrame) -> Figure:
    """Share of attention to [SEP], to [CLS] and to other tokens, mean over the heads of a layer, per task.

    `masses` has columns task, state, layer, head, sep, cls, other (proportions). Solid with filled marks:
    fine-tuned; dashed with open marks: pre-trained. Source: Pande 2021, Q3.
    """
    tasks = list(dict.fromkeys(masses["task"]))
    figure, axes = panels(len(tasks), 4, 1.7, LAYER, "proportion of attention")
    means = masses.groupby(["task", "state", "layer"])[list(MASSES)].mean()
    for panel, task in zip(axes, tasks, strict=True):
        for state, dash in STATE_LINES.items():
            for target, look in MASSES.items():
                if (task, state) in means.index:
                    line = means.loc[(task, state), target]
                    face = "white" if dash == "--" else look["color"]
                    panel.plot(line.index, line, dash, markerfacecolor=face, **look)
        panel.set_title(task)
        panel.set_ylim(0, 1)
        panel.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    figure.legend(handles=_mass_key(), ncols=5, loc="outside lower center")
    return figure


def _mass_key() -> list[Line2D]:
    """Legend of the attention masses: colour and mark per target, dash per state."""
    targets = [Line2D([], [], **look) for look in MASSES.values()]
    states = [Line2D([], [], color="0.2", linestyle=STATE_LINES[state], label=STATE_NAMES[state])
              for state in STATE_LINES]  # fmt: skip
    return targets + states
