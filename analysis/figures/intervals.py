"""Figures with intervals: what every head's estimate leaves open."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

from analysis.errors import InputError
from analysis.figures.theme import BLUE, BROWN, DOUBLE, MISSING, VERMILION, canvas, grid_size, panels, titled
from analysis.statistics.significance import (
    AUDITED_ONLY,
    BOTH,
    LABEL_COMPARISONS,
    NEITHER,
    PUBLISHED_ONLY,
    UNTESTABLE,
    label_comparison,
)

LAYER_ACROSS = "layer (0-based; heads in order within each layer)"
MEAN_UPWARDS = "mean sieve bias score\n(1 = uniform attention)"
CHANGE_UPWARDS = "change of the mean sieve bias score\n(fine-tuned minus pre-trained)"
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


def forest(table: pd.DataFrame, role: str, tau: float | int, title: str = "") -> Figure:
    """Mean score of every head for one role with its two-sided t interval, heads grouped by layer; a line at tau.

    `table` is that of `role_table`, one task and state. Colour and mark tell the published from the audited
    label, and the legend counts them. A head without spread has no bar, one that no sequence has the role for
    no mark. Raises InputError for a role that the table lacks.
    """
    shown = _rows_of(table, role)
    layers, heads = grid_size(table)
    figure, (axes,) = panels(1, 1, 2.3, LAYER_ACROSS, MEAN_UPWARDS)
    axes.axhline(tau, color="black", linestyle="--", linewidth=0.8, label=f"τ = {tau:g}")
    labels = label_comparison(shown)
    for name in LABEL_COMPARISONS:
        chosen, look = shown[labels == name], LABEL_LOOKS[name]
        across = chosen["layer"] * heads + chosen["head"]
        axes.vlines(across, chosen["low"], chosen["high"], color=look["color"], linewidth=0.9)
        axes.plot(across, chosen["mean"], linestyle="", label=f"{name} ({len(chosen)})", **look)
    _heads_by_layer(axes, layers, heads)
    figure.legend(ncols=len(LABEL_LOOKS) + 1, loc="outside lower center", columnspacing=1, handletextpad=0.3)
    return titled(figure, title or f"role {role}")


def change_intervals(table: pd.DataFrame, role: str, margin: float | int, title: str = "") -> Figure:
    """Change of every head's mean score for one role with its interval, heads grouped by layer, a row per task.

    `table` is that of `compare`, with or without a column task. Colour and mark tell the class of change; the
    line is no change, the band +- `margin` (score units) what counts as equivalent, beyond which the axis is
    logarithmic. Raises InputError for a role that the table lacks.
    """
    shown = _rows_of(table, role)
    layers, heads = grid_size(table)
    tasks = dict(iter(shown.groupby("task", sort=False))) if "task" in shown else {"": shown}
    figure, axes = panels(len(tasks), 1, 1.3, LAYER_ACROSS, CHANGE_UPWARDS)
    for panel, (task, rows) in zip(axes, tasks.items(), strict=True):
        _changes(panel, rows, heads)
        _heads_by_layer(panel, layers, heads)
        _margin(panel, margin)
        panel.set_title(task)
    figure.legend(handles=_change_key(), ncols=len(CHANGE_LOOKS) + 1, loc="outside lower center")
    return titled(figure, title or f"role {role}")


def _rows_of(table: pd.DataFrame, role: str) -> pd.DataFrame:
    rows = table[table["role"] == role]
    if rows.empty:
        known = ", ".join(table["role"].unique())
        raise InputError(f"role {role!r} is not in the table: choose from {known}")
    return rows


def _heads_by_layer(axes: Axes, layers: int, heads: int) -> None:
    """The axis of all heads: a tick in the middle of each layer, pale lines between layers."""
    axes.vlines(np.arange(1, layers) * heads - 0.5, 0, 1, transform=axes.get_xaxis_transform(),
                color="0.75", linewidth=0.5, zorder=0)  # fmt: skip
    axes.set_xlim(-0.5, layers * heads - 0.5)
    axes.set_xticks((np.arange(layers) + 0.5) * heads - 0.5, labels=map(str, range(layers)))
    axes.tick_params(axis="x", length=0)


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


def claim_intervals(claims: pd.DataFrame, seeds: pd.DataFrame, title: str = "") -> Figure:
    """Estimate and interval of every claim beside its bound (line); ticks: the estimates of single runs.

    `claims` as `claim_table` gives it, `seeds` as `seed_table`. Claims measure different things, so every row
    has a scale of its own, from the bound to what lies farthest from it; the right half is the claim's side.
    The numbers stand beside the row.
    """
    axes = canvas(None, DOUBLE, 0.27 * len(claims) + 0.9)
    axes.axvspan(0, 1.1, color=MISSING, alpha=0.5, linewidth=0)
    axes.axvline(0, color="black", linewidth=0.8)
    for height, row in enumerate(claims.itertuples()):
        name = row.claim.split(":")[0]
        _draw(axes, height, row, seeds.loc[seeds["claim"] == name, "estimate"].to_numpy(dtype=float))
        axes.text(1.15, height, _words(row), va="center", fontsize=7.5)
    axes.text(1.15, -0.85, "estimate [interval], bound: verdict", va="center", fontsize=7.5, style="italic")
    names = claims["claim"].str.split(":").str[0]
    axes.set(xlim=(-1.1, 1.1), ylim=(len(claims) - 0.5, -0.5), ylabel="claim")
    axes.set_xlabel("distance from the bound, each row on its own scale (right: the claim's side)")
    axes.set_yticks(range(len(claims)), labels=names)
    axes.set_xticks([0], labels=["bound"])
    axes.figure.legend(handles=_key(), ncols=4, loc="outside lower center")
    return titled(axes.figure, title)


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
    return f"{row.estimate:.2f}{interval} {SIGNS[row.relation]} {row.bound:g}: {row.verdict}"


def _key() -> list[Line2D]:
    verdicts = [
        Line2D([], [], **POINT, markerfacecolor=shade, label=verdict) for verdict, shade in FILLS.items()
    ]
    return [*verdicts, Line2D([], [], **RUN, label="one fine-tuning run")]
