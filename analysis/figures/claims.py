"""Claims in one picture: estimate, interval, range over units and control, each claim on an axis of its own."""

import textwrap
from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.colours import BLUE, VERMILION
from analysis.figures.theme import DOUBLE, as_written, canvas, empty
from analysis.statistics.claim_pages import cells
from analysis.statistics.claims import Claim
from analysis.statistics.judge import INCONCLUSIVE, MIXED, NOT_APPLICABLE, NOT_SUPPORTED, SUPPORTED

FILLS = {SUPPORTED: BLUE, NOT_SUPPORTED: VERMILION, MIXED: "0.3", INCONCLUSIVE: "white"}
SHAPES = {SUPPORTED: "o", NOT_SUPPORTED: "s", MIXED: "D", INCONCLUSIVE: "o"}
ENDS = ("estimate", "low", "high", "smallest", "largest", "control", "published_estimate")


@as_written
def forest_plot(claims: pd.DataFrame, known: Iterable[Claim]) -> Figure:
    """A row for each claim of `claims-<paper>.csv`; the claim's side of the threshold is the right one.

    Each row is scaled by its value farthest from the threshold. Thick lines are 95 % intervals, thin ones the range
    over units; a cross is the control, a hollow diamond BERT-base by the released maps.
    """
    if claims.empty:
        return empty("no claims")
    words = cells(claims, known)
    labels = [textwrap.fill(f"{row.id}: {row.claim}", 58) for row in words.itertuples()]
    axes = canvas(DOUBLE, 0.29 * len(claims) + 0.9)
    axes.axvline(0, color="black", linewidth=0.6)
    for height, row in enumerate(claims.to_dict("records")):
        if height % 2 == 0:
            axes.axhspan(height - 0.5, height + 0.5, color="0.95", linewidth=0)
        if row["verdict"] == NOT_APPLICABLE:
            axes.text(0.02, height, NOT_APPLICABLE, fontsize=6, va="center", color="0.4")
            continue
        sign = 1 if row["relation"] == ">" else -1
        place = {name: sign * (float(row[name]) - row["threshold"]) for name in ENDS}
        scale = np.nanmax(np.abs([*place.values()])) or 1.0
        at = {name: value / scale for name, value in place.items()}
        axes.plot([at["smallest"], at["largest"]], [height] * 2, color="0.6", linewidth=0.8)
        axes.plot([at["low"], at["high"]], [height] * 2, color="black", linewidth=2)
        axes.plot(at["control"], height, "x", color="0.4", markersize=4)
        axes.plot(
            at["published_estimate"], height, "D", color="black", markersize=4.5, markerfacecolor="none"
        )
        look = {"markerfacecolor": FILLS[row["verdict"]], "markersize": 4.5}
        axes.plot(at["estimate"], height, SHAPES[row["verdict"]], color="black", **look)
    axes.set(ylim=(len(claims) - 0.5, -0.5), xlim=(-1.1, 1.1), xticks=[-1, 0, 1])
    axes.set_xticklabels(["against the claim", "threshold", "on the claim's side"])
    axes.set_yticks(range(len(claims)), labels, fontsize=5.5)
    beside = axes.secondary_yaxis("right")
    numbers = [f"{row[2]}  {row[4]}".strip() for row in words.itertuples(index=False)]
    beside.set_yticks(range(len(claims)), numbers, fontsize=5.5)
    for side in (axes, beside):
        side.tick_params(axis="y", length=0)
    key = [
        axes.plot(
            [], [], shape, color="black", markersize=4.5, markerfacecolor=FILLS[verdict], label=verdict
        )[0]
        for verdict, shape in SHAPES.items()
    ]
    key += axes.plot([], [], "x", color="0.4", markersize=4, label="control")
    if claims["published_estimate"].notna().any():
        key += axes.plot(
            [], [], "D", color="black", markerfacecolor="none", markersize=4.5, label="BERT-base"
        )
    axes.figure.legend(handles=key, ncols=len(key), loc="outside lower center")
    return axes.figure
