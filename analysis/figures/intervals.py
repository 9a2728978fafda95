"""Claims in one picture: the estimate and interval of each beside its bound."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.colours import MISSING, VERMILION
from analysis.figures.theme import DOUBLE, canvas

SIGNS = {">=": "≥", ">": ">", "<=": "≤", "<": "<"}
FILLS = {"holds": "black", "undecided": "0.65", "does not hold": "white"}
POINT = {"marker": "o", "markersize": 5, "markeredgecolor": "black", "linestyle": ""}
RUN = {"marker": "|", "markersize": 9, "color": VERMILION, "linestyle": "", "markeredgewidth": 1.2}


def claim_intervals(claims: pd.DataFrame, seeds: pd.DataFrame) -> Figure:
    """Estimate and interval of every claim beside its bound (line); ticks: the estimates of single runs.

    `claims` as `claim_table` gives it, `seeds` as `seed_table`. The claims stand in words. They measure different
    things, so every row has a scale of its own, from the bound to what lies farthest from it; the right half is the
    claim's side. The numbers stand beside the row.
    """
    ids, statements = zip(*claims["claim"].str.split(": ", n=1), strict=True)
    names = [textwrap.fill(f"{words} ({name})", 44) for name, words in zip(ids, statements, strict=True)]
    lines = max(2, *(name.count("\n") + 1 for name in names))
    axes = canvas(DOUBLE, 0.135 * lines * len(claims) + 0.9)
    axes.axvspan(0, 1.1, color=MISSING, alpha=0.5, linewidth=0)
    axes.axvline(0, color="black", linewidth=0.8)
    for height, (name, row) in enumerate(zip(ids, claims.itertuples(), strict=True)):
        _draw(axes, height, row, seeds.loc[seeds["claim"] == name, "estimate"].to_numpy(dtype=float))
        axes.text(1.15, height, _words(row), va="center", fontsize=7.5)
    axes.hlines(np.arange(len(claims) - 1) + 0.5, -1.1, 1.1, color="0.85", linewidth=0.5, zorder=0)
    axes.text(1.15, -0.6, "estimate [interval], bound:\nverdict", fontsize=7.5, style="italic")
    axes.set(xlim=(-1.1, 1.1), ylim=(len(claims) - 0.5, -0.5), ylabel="claim")
    axes.set_xlabel("distance from the bound, each row on its own scale\n(right: the claim's side)")
    axes.set_yticks(range(len(claims)), labels=names, fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([0], labels=["bound"])
    axes.figure.legend(handles=_key(), ncols=4, loc="outside lower center")
    return axes.figure


def _draw(axes: Axes, height: int, row: tuple, runs: np.ndarray) -> None:
    """One claim's estimate, interval and runs, from the bound; the claim's side is right."""
    if pd.isna(row.estimate):
        axes.text(0, height, row.verdict, ha="center", va="center", color="0.3", backgroundcolor="white")
        return
    side = -1 if row.relation in ("<", "<=") else 1
    distances = side * (np.array([row.estimate, row.low, row.high, *runs]) - row.bound)
    estimate, low, high, *of_runs = distances / (np.nanmax(np.abs(distances)) or 1.0)
    axes.plot([low, high], [height, height], color="black", linewidth=1.2)
    axes.plot(of_runs, np.full(len(of_runs), height), **RUN)
    axes.plot(estimate, height, **POINT, markerfacecolor=FILLS[row.verdict])


def _words(row: tuple) -> str:
    """Estimate, interval and bound in numbers, and the verdict."""
    if pd.isna(row.estimate):
        return ""
    interval = "" if pd.isna(row.low) else f" [{row.low:.2f}, {row.high:.2f}]"
    return f"{row.estimate:.2f}{interval} {SIGNS[row.relation]} {row.bound:g}:\n{row.verdict}"


def _key() -> list[Line2D]:
    verdicts = [
        Line2D([], [], **POINT, markerfacecolor=shade, label=verdict) for verdict, shade in FILLS.items()
    ]
    return [*verdicts, Line2D([], [], **RUN, label="one fine-tuning run")]
