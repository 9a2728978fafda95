"""Claims in one picture: a row for each, in its own units."""

import textwrap
from collections.abc import Iterable

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.theme import DOUBLE, canvas
from analysis.statistics.claim_tables import short_table
from analysis.statistics.claims import FAILS, HOLDS, UNDECIDED, Claim

FILLS = {HOLDS: "black", UNDECIDED: "0.65", FAILS: "white"}  # of the verdict's mark; untestable has none
# The left end of every column, as a share of the width, and the characters that fit into it.
COLUMNS = {
    "claim": (0.03, 36),
    "here": (0.335, 12),
    "95 % interval": (0.435, 18),
    "asked": (0.578, 11),
    "control": (0.665, 20),
    "published": (0.825, 22),
}
LINE = 0.125  # inches


def claim_strip(claims: pd.DataFrame, known: Iterable[Claim]) -> Figure:
    """A row for every claim: verdict, estimate, interval, what is asked, what the control gives, and what is published.

    `claims` as `claim_table` gives it; `known` are the claims, whose units the numbers have. A filled mark is a claim
    that holds, an open one does not hold, a grey one is undecided; an untestable claim has a dash.
    """
    rows = short_table(claims, known)
    rows = rows.assign(claim=rows["claim"] + " (" + rows["id"] + ")")
    rows = rows.rename(columns={"interval": "95 % interval"})
    columns = {name: place for name, place in COLUMNS.items() if rows[name].ne("").any()}
    cells = [
        {name: textwrap.fill(str(row[name]), width) for name, (_, width) in columns.items()}
        for row in rows.to_dict("records")
    ]
    heights = [1.2 + max(cell.count("\n") for cell in each.values()) for each in cells]
    axes = canvas(DOUBLE, LINE * (sum(heights) + 4))
    axes.set(xlim=(0, 1), ylim=(sum(heights), -1.4))
    axes.set_axis_off()
    for name, (left, _) in columns.items():
        axes.text(left, -0.5, name, fontsize=7, fontweight="bold", va="center")
    top = 0.0
    for number, (row, each, height) in enumerate(zip(rows.itertuples(), cells, heights, strict=True)):
        if number % 2 == 0:
            axes.axhspan(top, top + height, color="0.95", linewidth=0)
        middle = top + height / 2
        for name, (left, _) in columns.items():
            axes.text(left, middle, each[name], fontsize=6.5, va="center", linespacing=1.05)
        if row.verdict in FILLS:
            axes.plot(0.012, middle, "o", color="black", markersize=5, markerfacecolor=FILLS[row.verdict])
        else:
            axes.text(0.012, middle, "–", ha="center", va="center")
        top += height
    key = [
        axes.plot([], [], "o", color="black", markersize=5, markerfacecolor=shade, label=verdict)[0]
        for verdict, shade in FILLS.items()
    ]
    axes.figure.legend(handles=key, ncols=3, loc="outside lower center", title="–: cannot be tested")
    return axes.figure
