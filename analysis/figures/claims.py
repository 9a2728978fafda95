"""Claims in one picture: estimate, interval, range over units and control, each claim on an axis of its own."""

import textwrap
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.colours import BLUE, VERMILION
from analysis.figures.theme import DOUBLE, as_written, canvas, empty
from analysis.statistics.claim_pages import OURS, cells
from analysis.statistics.claims import INCONCLUSIVE, MIXED, NOT_APPLICABLE, NOT_SUPPORTED, SUPPORTED, Claim

RELEASED = "BERT-base"
MARK = {"color": "black", "markersize": 4.5, "linestyle": ""}
MARKS = {
    SUPPORTED: MARK | {"marker": "o", "markerfacecolor": BLUE},
    NOT_SUPPORTED: MARK | {"marker": "s", "markerfacecolor": VERMILION},
    MIXED: MARK | {"marker": "^", "markerfacecolor": "0.5"},
    INCONCLUSIVE: MARK | {"marker": "o", "markerfacecolor": "white"},
    "control": {"color": "0.4", "markersize": 4, "linestyle": "", "marker": "x"},
    RELEASED: MARK | {"marker": "D", "markerfacecolor": "none"},
}
# The bars at the ends show an interval that is thinner than its mark.
LINES = {
    "95 % interval": {"color": "black", "lw": 2, "marker": "|", "ms": 9},
    "range over units": {"color": "0.6", "lw": 0.8},
}
ENDS = ("estimate", "low", "high", "smallest", "largest", "control", "published_estimate")


@as_written
def forest_plot(claims: pd.DataFrame, known: Iterable[Claim]) -> Figure:
    """A row for each claim of `claims-<paper>.csv`; the claim's side of the threshold is the right one.

    Each row is scaled by its value farthest from the threshold. Thick lines are 95 % intervals, thin ones the range
    over units; a cross is the control, a hollow diamond BERT-base by the released maps.
    """
    if claims.empty:
        return empty("no claims")
    axes = canvas(DOUBLE, 0.36 * len(claims) + 1.2)
    axes.axvline(0, color="black", linewidth=0.6)
    for height, row in enumerate(claims.to_dict("records")):
        if height % 2 == 0:
            axes.axhspan(height - 0.5, height + 0.5, color="0.95", linewidth=0)
        _draw_claim(axes, height, row)
    axes.set(ylim=(len(claims) - 0.5, -0.5), xlim=(-1.1, 1.1), xticks=[-1, 0, 1])
    axes.set_xticklabels(["against\nthe claim", "threshold", "on the\nclaim's side"])
    axes.set_xlabel("distance from the threshold, each row on a scale of its own")
    words = cells(claims, known)
    labels = [
        textwrap.fill(f"{name}: {claim}", 50) for name, claim in zip(words["id"], words["claim"], strict=True)
    ]
    axes.set_yticks(range(len(claims)), labels, fontsize=6.5)
    numbers = axes.secondary_yaxis("right")
    texts = (
        words["estimate [95 % interval]"] + "  " + words["threshold"].str.removesuffix(f" {OURS}")
    ).str.strip()
    numbers.set_yticks(range(len(claims)), texts, fontsize=6.5)
    for side in (axes, numbers):
        side.tick_params(axis="y", length=0)
    names = [name for name in MARKS if name != RELEASED or claims["published_estimate"].notna().any()]
    key = [Line2D([], [], label=name, **look) for name, look in LINES.items()]
    key += [Line2D([], [], label=name, **MARKS[name]) for name in names]
    axes.figure.legend(handles=key, ncols=4, loc="outside lower center")
    return axes.figure


def _draw_claim(axes: Axes, height: int, row: Mapping[str, object]) -> None:
    """One claim, as far from the threshold as its value farthest from it reaches 1."""
    if row["verdict"] == NOT_APPLICABLE:
        axes.text(0.02, height, NOT_APPLICABLE, fontsize=6, va="center", color="0.4")
        return
    sign = 1 if row["relation"] == ">" else -1
    distance = {name: sign * (float(row[name]) - row["threshold"]) for name in ENDS}
    scale = np.nanmax(np.abs([*distance.values()])) or 1.0
    place = {name: value / scale for name, value in distance.items()}
    axes.plot([place["smallest"], place["largest"]], [height] * 2, **LINES["range over units"])
    axes.plot([place["low"], place["high"]], [height] * 2, **LINES["95 % interval"])
    axes.plot(place["control"], height, **MARKS["control"])
    axes.plot(place["published_estimate"], height, **MARKS[RELEASED])
    axes.plot(place["estimate"], height, **MARKS[row["verdict"]])
