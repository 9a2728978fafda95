"""Where the labels of a head differ: published, audited, controlled (F10)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.colours import BLACK
from analysis.figures.theme import DOUBLE, canvas, in_order
from analysis.statistics.roles import LABELS

MARKS = {
    True: {"marker": "o", "s": 26, "facecolor": BLACK, "edgecolor": BLACK, "linewidth": 0.8},
    False: {"marker": "o", "s": 26, "facecolor": "white", "edgecolor": BLACK, "linewidth": 0.8},
    None: {"marker": "x", "s": 14, "color": "0.6", "linewidth": 0.8},
}
MOST_NAMES = 3  # heads that a cell names; more are counted
ROLE_WIDTH, LABEL_WIDTH = 0.85, 0.72  # inches: of the column of roles, of that of a label
ROW, HEADING = 0.19, 0.34  # inches


def differing_labels(table: pd.DataFrame) -> pd.DataFrame:
    """Where the labels of LABELS that a table has are not the same, a row per role and combination of labels.

    `table` is that of `role_table` with a column task, of one state. The index holds the role and the labels (True,
    False or None where untestable), the columns are the tasks, the values the heads, named layer-head and joined by
    commas; "" where there is none.
    """
    labels = [label for label in LABELS if label in table]
    known = table[labels].astype(object).where(table[labels].notna(), None)
    differs = known.nunique(axis=1, dropna=False) > 1
    rows = known.assign(role=table["role"], task=table["task"], head=head_names(table))[differs]
    rows["pattern"] = list(rows[labels].itertuples(index=False, name=None))
    cells = rows.groupby(["role", "pattern", "task"], sort=False)["head"].agg(", ".join)
    wide = cells.unstack("task", fill_value="").reindex(columns=table["task"].unique(), fill_value="")
    order = [pair for role in in_order(table["role"]) for pair in wide.index if pair[0] == role]
    names = ["role", *(LABELS[label] for label in labels)]
    columns = pd.DataFrame([(role, *pattern) for role, pattern in order], columns=names, dtype=object)
    return wide.loc[order].set_axis(pd.MultiIndex.from_frame(columns))


def head_names(table: pd.DataFrame) -> pd.Series:
    """The name of each row's head, layer-head (both 0-based)."""
    return table["layer"].astype(str) + "-" + table["head"].astype(str)


def label_differences(table: pd.DataFrame) -> Figure:
    """The heads whose labels differ, as a small table: a row per role and combination of labels, a column per task.

    `table` is that of `differing_labels`. A full circle is the label, an empty one none, a cross untestable. Few heads
    are named, layer-head; more are counted.
    """
    labels, tasks = list(table.index.names[1:]), list(table.columns)
    start = ROLE_WIDTH + LABEL_WIDTH * len(labels)
    places = start + (DOUBLE - start) / len(tasks) * np.arange(len(tasks))
    axes = canvas(DOUBLE, ROW * max(len(table), 1) + HEADING)
    axes.set(xlim=(0, DOUBLE), ylim=(ROW * max(len(table), 1), -HEADING))
    axes.axis("off")
    _headings(axes, labels, tasks, places)
    for row, (index, cells) in enumerate(zip(table.index, table.to_numpy(), strict=True)):
        role, *pattern = index
        height = ROW * (row + 0.5)
        if row == 0 or table.index[row - 1][0] != role:
            axes.axhline(ROW * row, color="0.75", linewidth=0.6)
            axes.text(0, height, role, va="center")
        for column, label in enumerate(pattern):
            look = MARKS[None if pd.isna(label) else bool(label)]
            axes.scatter(ROLE_WIDTH + LABEL_WIDTH * (column + 0.4), height, **look)
        for place, names in zip(places, cells, strict=True):
            axes.text(place, height, shortened(names), va="center", fontsize=7.5)
    if table.empty:
        axes.text(0, ROW / 2, "the labels are the same everywhere", va="center")
    return axes.figure


def shortened(names: str) -> str:
    """A few heads by name, more by number."""
    count = len(names.split(", "))
    return names if count <= MOST_NAMES else f"{count} heads"


def _headings(axes: Axes, labels: list[str], tasks: list[str], places: np.ndarray) -> None:
    """The names of the columns."""
    look = {"va": "bottom", "fontweight": "bold", "fontsize": 8}
    axes.text(0, -0.06, "role", **look)
    for column, label in enumerate(labels):
        axes.text(ROLE_WIDTH + LABEL_WIDTH * (column + 0.4), -0.06, label, ha="center", **look)
    for place, task in zip(places, tasks, strict=True):
        axes.text(place, -0.06, task, **look)
