"""Claims in one picture: estimate, interval, range over units and control, each claim on an axis of its own."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.figures.colours import BLUE, VERMILION
from analysis.figures.theme import DOUBLE, as_written, canvas, empty
from analysis.statistics.claim_texts import OURS, cells, with_sink
from analysis.statistics.claims import INCONCLUSIVE, MIXED, NOT_APPLICABLE, NOT_SUPPORTED, SUPPORTED, Claim
from analysis.statistics.encoders import DIFFER, NOT_JUDGED

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
SHAPES = "os^vP"  # of the encoders in `encoder_plot`
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
def encoder_plot(table: pd.DataFrame, known: Iterable[Claim], released: Mapping[str, float]) -> Figure:
    """A row for each claim with a verdict on all encoders, those that differ first; all values have 95 % intervals.

    Left, estimates on the units that the encoders share: shapes are encoders, fills verdicts, a hollow diamond
    BERT-base by the `released` maps; the claim's side of the threshold is the right one, and each row is scaled by its
    value farthest from it. Right, differences from the first encoder, in the unit of the claim, on one scale. `table`
    is that of `statistics.encoders.encoder_table`.
    """
    judged = table[table["holds"] != NOT_JUDGED]
    differ = judged["relation"].eq(DIFFER).groupby(judged["claim"], sort=False).any()
    order = [*differ.index[differ], *differ.index[~differ]]
    if not order:
        return empty("no claim has a verdict on all encoders")
    names, words = [*judged["encoder"].unique()], {claim.id: claim for claim in known}
    size = DOUBLE, max(0.27 * len(order) + 1.1, 3)
    options = {"sharey": True, "layout": "constrained", "width_ratios": [3, 2]}
    figure, (left, right) = plt.subplots(1, 2, figsize=size, **options)
    _threshold_axis(left, len(order))
    right.axvline(0, color="black", linewidth=0.6)
    for height, claim in enumerate(order):
        sided = {"relation": words[claim].relation, "threshold": words[claim].threshold}
        sided["published_estimate"] = released.get(claim, np.nan)
        rows = [row | sided for row in judged[judged["claim"] == claim].to_dict("records")]
        _draw_encoders(left, right, height, rows, np.linspace(-0.2, 0.2, len(names)))
    labels = [f"{claim}: {with_sink(words[claim].statement, '')}" for claim in order]
    left.set_yticks(range(len(order)), [textwrap.fill(label, 64) for label in labels])
    right.set_xlabel(f"difference from {names[0]},\nin the unit of the claim")
    right.set_xscale("symlog", linthresh=0.1, linscale=1)
    widest = max(2, 1.5 * judged["difference"].abs().max())
    right.set_xlim(-widest, widest)  # a wider interval is cut
    right.set_xticks([-1, -0.1, 0, 0.1, 1], ["-1", "-0.1", "0", "0.1", "1"])
    _name_groups(left, right, int(differ.sum()), int((~differ).sum()))
    key = _encoder_key(names, any(np.isfinite(released.get(claim, np.nan)) for claim in order))
    figure.legend(handles=key, ncols=4, loc="outside lower center")
    return figure


def _draw_encoders(
    left: Axes, right: Axes, height: int, rows: Sequence[Mapping[str, object]], shifts: Sequence[float]
) -> None:
    """One claim of `encoder_plot`: the estimate of each encoder, a shift apart, and its difference from the first."""
    places = _places(rows, ("estimate", "low", "high", "published_estimate"))
    left.plot(places[0]["published_estimate"], height, **MARKS[RELEASED])
    for shape, shift, row, place in zip(SHAPES, shifts, rows, places, strict=False):
        left.plot([place["low"], place["high"]], [height + shift] * 2, color="0.3", lw=1)
        look = {"marker": shape, "markersize": 4}
        left.plot(place["estimate"], height + shift, **MARKS[row["verdict"]] | look)
        ends = [row["difference_low"], row["difference_high"]]
        right.plot(ends, [height + shift] * 2, color="0.3", lw=1)
        right.plot(row["difference"], height + shift, **MARK | look | {"markerfacecolor": "0.8"})


def _name_groups(left: Axes, right: Axes, differ: int, rest: int) -> None:
    """Names the first rows, which differ, and the others on the right, with a line between the two groups."""
    for side in (left, right):
        borders, across = [differ - 0.5] * (differ > 0 and rest > 0), side.get_yaxis_transform()
        side.hlines(borders, 0, 1, transform=across, color="black", lw=0.8)
        side.tick_params(axis="y", length=0, labelsize=5.5)
    texts = {(differ - 1) / 2: f"{differ} differ", differ + (rest - 1) / 2: f"{rest} are not shown to differ"}
    middles = [middle for middle, count in zip(texts, (differ, rest), strict=True) if count]
    names = right.secondary_yaxis("right")
    names.set_yticks(middles, [texts[middle] for middle in middles], rotation=90, va="center")
    names.tick_params(axis="y", length=0, labelsize=7)


def _encoder_key(names: Sequence[str], released: bool) -> list[Line2D | Patch]:
    """The legend of `encoder_plot`: shapes of encoders, the diamond of BERT-base, fills of verdicts."""
    looks = {name: MARK | {"marker": shape} for name, shape in zip(names, SHAPES, strict=False)}
    key = [Line2D([], [], label=name, **look | {"markerfacecolor": "0.8"}) for name, look in looks.items()]
    key += [Line2D([], [], label=RELEASED, **MARKS[RELEASED])] * released
    fills = {name: MARKS[name]["markerfacecolor"] for name in (SUPPORTED, NOT_SUPPORTED, MIXED, INCONCLUSIVE)}
    return key + [
        Patch(label=name, facecolor=fill, edgecolor="black", lw=0.6) for name, fill in fills.items()
    ]


def _threshold_axis(axes: Axes, rows: int) -> None:
    """The axes of claims: shaded rows from above, and distances from the threshold."""
    axes.axvline(0, color="black", linewidth=0.6)
    for height in range(0, rows, 2):
        axes.axhspan(height - 0.5, height + 0.5, color="0.95", linewidth=0)
    axes.set(ylim=(rows - 0.5, -0.5), xlim=(-1.1, 1.1), xticks=[-1, 0, 1])
    axes.set_xticklabels(["against\nthe claim", "threshold", "on the\nclaim's side"])
    for label, side in zip(axes.get_xticklabels(), ("left", "center", "right"), strict=True):
        label.set_horizontalalignment(side)  # the outer ones stay above their own axis
    axes.set_xlabel("distance from the threshold,\neach row on a scale of its own")
