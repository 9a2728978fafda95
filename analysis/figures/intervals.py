"""Figures with intervals: the uncertainty of the estimates of heads and claims."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator

from analysis.errors import InputError
from analysis.figures.colours import BLUE, BROWN, MISSING, VERMILION
from analysis.figures.labels import head_names
from analysis.figures.theme import (
    DOUBLE,
    HEADS_BY_LAYER,
    canvas,
    grid_size,
    heads_by_layer,
    in_order,
    panels,
    rows_of_axes,
)
from analysis.statistics.significance import (
    AUDITED_ONLY,
    BOTH,
    NEITHER,
    PUBLISHED_ONLY,
    UNTESTABLE,
    label_comparison,
)

MEAN_ACROSS = "mean sieve bias score with its interval (1 = uniform attention; each panel has its own scale)"
THRESHOLD = {"color": "black", "linestyle": "--", "linewidth": 0.8}
CHANGE_UPWARDS = (
    "change of the mean sieve bias score, fine-tuned minus pre-trained\n"
    "(linear within the margin, logarithmic beyond)"
)
# The marks differ in shape and fill, so that the classes can be told apart in grey.
LABEL_LOOKS = {
    BOTH: {"marker": "o", "markersize": 4, "color": BLUE},
    PUBLISHED_ONLY: {"marker": "D", "markersize": 4, "color": VERMILION, "markerfacecolor": "white"},
    AUDITED_ONLY: {"marker": "^", "markersize": 4.5, "color": "black"},
    NEITHER: {"marker": "s", "markersize": 2.5, "color": "0.55"},
    UNTESTABLE: {"marker": "x", "markersize": 3, "color": "0.7"},
}
CHANGE_LOOKS = {
    "gained": {"marker": "^", "markersize": 3.6, "color": BLUE},
    "lost": {"marker": "v", "markersize": 3.6, "color": VERMILION},
    "kept": {"marker": "s", "markersize": 2.2, "color": "black"},
    "equivalent": {"marker": "o", "markersize": 2.6, "color": "0.55", "markerfacecolor": "white"},
    "undecided": {"marker": "D", "markersize": 2.4, "color": BROWN, "markerfacecolor": "white"},
    UNTESTABLE: {"marker": "x", "markersize": 3, "color": "0.7"},
}
BAND = {"color": "0.92", "linewidth": 0}


def forest(table: pd.DataFrame, tau: float | int, nearest: int = 10) -> Figure:
    """Mean score of the heads nearest to `tau` with their two-sided t intervals, a panel per role; a line at `tau`.

    `table` is that of `role_table`, one task and state. Heads are named layer-head and sorted by their mean; each panel
    has its own scale. Colour and mark tell the published from the audited label. A head without spread has no bar.
    """
    roles = in_order(table["role"])
    figure, grid = rows_of_axes(len(roles), 5, 0.145 * nearest + 0.35, 0.6)
    for axes, role in zip(grid, roles, strict=True):
        _forest_panel(axes, table[table["role"] == role].dropna(subset="mean"), tau, nearest)
        axes.set_title(role)
    figure.supxlabel(MEAN_ACROSS)
    figure.supylabel(f"head (layer-head), the {nearest} with the mean nearest to τ")
    marks = [Line2D([], [], linestyle="", label=name, **look) for name, look in LABEL_LOOKS.items()]
    figure.legend(handles=[Line2D([], [], label=f"τ = {tau:g}", **THRESHOLD), *marks], ncols=len(marks) + 1,
                  loc="outside upper center", columnspacing=1, handletextpad=0.3)  # fmt: skip
    return figure


def _forest_panel(axes: Axes, rows: pd.DataFrame, tau: float | int, nearest: int) -> None:
    """The heads of one role nearest to tau, the highest mean on top."""
    if rows.empty:
        axes.text(0.5, 0.5, UNTESTABLE, transform=axes.transAxes, ha="center", va="center", color="0.5")
        axes.set(xticks=[], yticks=[])
        return
    near = (rows["mean"] - tau).abs().sort_values(kind="stable").index[:nearest]
    shown = rows.loc[near].sort_values("mean", kind="stable").reset_index(drop=True)
    labels = label_comparison(shown)
    axes.axvline(tau, **THRESHOLD)
    for name, look in LABEL_LOOKS.items():
        chosen = shown[labels == name]
        axes.hlines(chosen.index, chosen["low"], chosen["high"], color=look["color"], linewidth=1.2)
        axes.plot(chosen["mean"], chosen.index, linestyle="", **look)
    axes.set(ylim=(-0.7, nearest - 0.3))
    axes.set_yticks(range(len(shown)), labels=head_names(shown), fontsize=7)
    axes.tick_params(axis="y", length=0, pad=1)
    axes.xaxis.set_major_locator(MaxNLocator(3))


def change_intervals(table: pd.DataFrame, role: str, margin: float | int) -> Figure:
    """Change of every head's mean score for one role with its interval, heads grouped by layer, a row per task.

    `table` is that of `compare`, with or without a column task. Colour and mark tell the class of change; the
    line is no change, the band +- `margin` (score units) what counts as equivalent, beyond which the axis is
    logarithmic. Raises InputError for a role that the table lacks.
    """
    shown = _rows_of(table, role)
    layers, heads = grid_size(table)
    tasks = dict(iter(shown.groupby("task", sort=False))) if "task" in shown else {"": shown}
    figure, axes = panels(len(tasks), 1, 1.3, HEADS_BY_LAYER, CHANGE_UPWARDS)
    for panel, (task, rows) in zip(axes, tasks.items(), strict=True):
        _changes(panel, rows, heads)
        heads_by_layer(panel, layers, heads)
        _margin(panel, margin)
        panel.set_title(task)
    figure.legend(handles=_change_key(), ncols=len(CHANGE_LOOKS) + 1, loc="outside lower center")
    figure.suptitle(f"role {role}")
    return figure


def _rows_of(table: pd.DataFrame, role: str) -> pd.DataFrame:
    rows = table[table["role"] == role]
    if rows.empty:
        known = ", ".join(table["role"].unique())
        raise InputError(f"role {role!r} is not in the table: choose from {known}")
    return rows


def _changes(axes: Axes, rows: pd.DataFrame, heads: int) -> None:
    """Marks and intervals of one task, class by class."""
    classes = rows["change"].fillna(UNTESTABLE)
    for name, look in CHANGE_LOOKS.items():
        chosen = rows[classes == name]
        across = chosen["layer"] * heads + chosen["head"]
        axes.vlines(across, chosen["low"], chosen["high"], color=look["color"], linewidth=0.9)
        axes.plot(across, chosen["difference"], linestyle="", label=name, **look)
    if rows["difference"].isna().all():
        axes.text(0.5, 0.7, UNTESTABLE, transform=axes.transAxes, ha="center", color="0.5")


def _margin(axes: Axes, margin: float | int) -> None:
    """The line of no change and the band of the margin, beyond which each step of the axis is fourfold."""
    axes.axhspan(-margin, margin, zorder=-1, **BAND)
    axes.axhline(0, color="black", linewidth=0.6, zorder=1)
    axes.set_yscale("symlog", linthresh=margin, base=4)
    steps = margin * 4.0 ** np.arange(8)
    axes.yaxis.set_major_locator(FixedLocator([*-steps, 0, *steps]))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()


def _change_key() -> list[Artist]:
    """Legend of the classes of change and the margin."""
    marks = [Line2D([], [], linestyle="", label=name, **look) for name, look in CHANGE_LOOKS.items()]
    return [*marks, Patch(label="within the margin", **BAND)]


SIGNS = {">=": "≥", ">": ">", "<=": "≤"}
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
    side = -1 if row.relation == "<=" else 1
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
