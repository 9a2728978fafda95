"""Claims in one picture: estimate, interval, range over units and control, each claim on an axis of its own."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.figures.colours import BLUE, VERMILION
from analysis.figures.theme import DOUBLE, as_written, canvas, empty
from analysis.statistics.claim_pages import OURS, cells, with_sink
from analysis.statistics.claims import INCONCLUSIVE, MIXED, NOT_APPLICABLE, NOT_SUPPORTED, SUPPORTED, Claim

FOREST_CAPTION = (
    "Each row is a claim with its estimate, interval, range over units, control and threshold, on an axis of its own. "
    "An interval on one side of the threshold decides the claim; a cross on the claim's side means that the control "
    "would support it as well."
)
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
SHAPES = "os"  # of the encoders in `encoder_plot`
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
    _threshold_axis(axes, len(claims))
    for height, row in enumerate(claims.to_dict("records")):
        _draw_claim(axes, height, row)
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
    (place,) = _places([row], ENDS)
    axes.plot([place["smallest"], place["largest"]], [height] * 2, **LINES["range over units"])
    axes.plot([place["low"], place["high"]], [height] * 2, **LINES["95 % interval"])
    axes.plot(place["control"], height, **MARKS["control"])
    axes.plot(place["published_estimate"], height, **MARKS[RELEASED])
    axes.plot(place["estimate"], height, **MARKS[row["verdict"]])


def _places(rows: Sequence[Mapping[str, object]], names: Sequence[str]) -> list[dict[str, float]]:
    """The distance of named values from the threshold of their claim; 1 is the farthest on the claim's side."""
    signs = [1 if row["relation"] == ">" else -1 for row in rows]
    distances = [
        {name: sign * (float(row[name]) - row["threshold"]) for name in names}
        for sign, row in zip(signs, rows, strict=True)
    ]
    scale = np.nanmax(np.abs([[*values.values()] for values in distances])) or 1.0
    return [{name: value / scale for name, value in values.items()} for values in distances]


@as_written
def encoder_plot(
    claims: Mapping[str, pd.DataFrame], known: Iterable[Claim], agreements: Mapping[str, str]
) -> Figure:
    """A row for each claim of `agreements`, with a mark and a 95 % interval for each encoder.

    The shape of a mark is its encoder, its fill the verdict; a hollow diamond is BERT-base by the released maps. The
    claim's side of the threshold is the right one, and each row is scaled by its value farthest from the threshold.
    `agreements` has the group of each claim, in the order of the rows; names of groups stand at the right.
    """
    if not agreements:
        return empty("no claim has a verdict on both encoders")
    order, groups = [*agreements], [*agreements.values()]
    by_encoder = {name: table.set_index("claim") for name, table in claims.items()}
    axes = canvas(DOUBLE, 0.19 * len(order) + 1.1)
    _threshold_axis(axes, len(order))
    words = {claim.id: claim for claim in known}
    for height, claim in enumerate(order):
        rows = [table.loc[claim].to_dict() for table in by_encoder.values()]
        shifts = np.linspace(-0.2, 0.2, len(rows))
        places = _places(rows, ("estimate", "low", "high", "published_estimate"))
        axes.plot(places[0]["published_estimate"], height, **MARKS[RELEASED])
        for shape, shift, row, place in zip(SHAPES, shifts, rows, places, strict=False):
            axes.plot([place["low"], place["high"]], [height + shift] * 2, color="0.3", lw=1)
            look = MARKS[row["verdict"]] | {"marker": shape, "markersize": 4}
            axes.plot(place["estimate"], height + shift, **look)
    labels = [f"{claim}: {with_sink(words[claim].statement, '')}" for claim in order]
    axes.set_yticks(range(len(order)), [textwrap.shorten(label, 72, placeholder=" …") for label in labels])
    firsts = [place for place, group in enumerate(groups) if place == 0 or group != groups[place - 1]]
    axes.hlines(np.subtract(firsts[1:], 0.5), *axes.get_xlim(), color="black", lw=0.6)
    middles = [groups.index(group) + (groups.count(group) - 1) / 2 for group in dict.fromkeys(groups)]
    names = axes.secondary_yaxis("right")
    names.set_yticks(middles, [group.replace(" ", "\n", 1) for group in dict.fromkeys(groups)])
    for side in (axes, names):
        side.tick_params(axis="y", length=0, labelsize=6)
    key = [
        Line2D([], [], label=name, **MARK | {"marker": shape, "markerfacecolor": "0.8"})
        for name, shape in zip(by_encoder, SHAPES, strict=False)
    ]
    key += [Line2D([], [], label=RELEASED, **MARKS[RELEASED])]
    fills = (SUPPORTED, NOT_SUPPORTED, MIXED, INCONCLUSIVE)
    key += [
        Patch(label=name, facecolor=MARKS[name]["markerfacecolor"], edgecolor="black", lw=0.6)
        for name in fills
    ]
    axes.figure.legend(handles=key, ncols=4, loc="outside lower center")
    return axes.figure


def _threshold_axis(axes: Axes, rows: int) -> None:
    """The axes of claims: shaded rows from above, and distances from the threshold."""
    axes.axvline(0, color="black", linewidth=0.6)
    for height in range(0, rows, 2):
        axes.axhspan(height - 0.5, height + 0.5, color="0.95", linewidth=0)
    axes.set(ylim=(rows - 0.5, -0.5), xlim=(-1.1, 1.1), xticks=[-1, 0, 1])
    axes.set_xticklabels(["against\nthe claim", "threshold", "on the\nclaim's side"])
    axes.set_xlabel("distance from the threshold, each row on a scale of its own")
