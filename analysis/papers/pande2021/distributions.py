"""Distributions of the scores of single sequences and of the p-values of heads (F3, F9)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLACK, BLUE, MISSING, VERMILION, ink
from analysis.figures.theme import DOUBLE, in_order, rows_of_axes

POOLED = {"color": MISSING, "label": "all heads"}
NEAREST = {"color": BLUE, "alpha": 0.65, "label": "head with the mean nearest to τ (named above)"}
MEAN = {"color": BLACK, "linewidth": 1.2, "label": "its mean"}
MEDIAN = {"color": VERMILION, "linewidth": 1.2, "linestyle": "-.", "label": "its median"}
THRESHOLD = {"color": "0.35", "linewidth": 0.9, "linestyle": "--"}
BINS = 30
SMALLEST = -20  # log10 of the smallest p-value on the axis


def score_distributions(scores: xr.DataArray, tau: float | int) -> Figure:
    """Scores of single sequences, a panel per role with its own linear scale: all heads, and the head nearest to `tau`.

    Labels are decided near `tau` (dashes), so the second histogram shows the head whose mean is nearest to it; lines
    mark its mean and its median. Each histogram is scaled to its highest bin and ends at the 99th percentile of the
    head's scores. Source: Pande 2021, a bare average misleads.
    """
    roles = in_order(scores["role"].values.tolist())
    figure, grid = rows_of_axes(len(roles), 5, 1.25, 0.7)
    for axes, role in zip(grid, roles, strict=True):
        _histograms(axes, scores.sel(role=role).transpose("sequence", "layer", "head"), role, tau)
    figure.supxlabel("sieve bias score of one sequence (1 = uniform attention; each panel has its own scale)")
    figure.supylabel("frequency (highest bin = 1)")
    lines = [Line2D([], [], **look) for look in (MEAN, MEDIAN, THRESHOLD | {"label": f"τ = {tau:g}"})]
    figure.legend(
        handles=[Patch(**POOLED), Patch(**NEAREST), *lines], ncols=5, loc="outside upper center",
        columnspacing=1, handlelength=1.5,
    )  # fmt: skip
    return figure


def p_values(table: pd.DataFrame, alpha: float) -> Figure:
    """The histogram of all p-values (left) and log10 p of every head, a row per role (right); dashes at `alpha`.

    Untestable heads have no p-value and are left out. Values below 1e-20 are drawn at the edge.
    Source: Pande 2021, released notebooks.
    """
    tested, roles = table.dropna(subset="p"), in_order(table["role"])
    size = (DOUBLE, 0.19 * len(roles) + 0.9)
    figure, (left, right) = plt.subplots(1, 2, figsize=size, width_ratios=(2, 3), layout="constrained")
    left.hist(tested["p"].astype(float), bins=np.linspace(0, 1, 21), color="0.55")
    left.axvline(alpha, **THRESHOLD)
    left.set(xlabel="p-value (one-sided), bins of 0.05", ylabel=f"heads and roles (of {len(tested)})")
    left.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for row, role in enumerate(roles):
        p = tested.loc[tested["role"] == role, "p"].to_numpy(dtype=float)
        right.scatter(_log10(p), row + _spread(len(p)), s=6, color=ink(role), linewidth=0, alpha=0.7)
    right.axvline(np.log10(alpha), **THRESHOLD)
    right.set(xlabel="log10 of the p-value", ylim=(len(roles) - 0.5, -0.5), xlim=(SMALLEST - 0.8, 0.8))
    right.set_yticks(range(len(roles)), labels=roles)
    right.set_xticks(
        [SMALLEST, -15, -10, -5, 0], labels=[f"≤ {SMALLEST}".replace("-", "−"), "−15", "−10", "−5", "0"]
    )
    right.tick_params(axis="y", length=0)
    key = Line2D([], [], label=f"level {alpha:g}", **THRESHOLD)
    figure.legend(handles=[key], loc="outside upper center")
    return figure


def _histograms(
    axes: Axes, scores: Float[xr.DataArray, "sequence layer head"], role: str, tau: float | int
) -> None:
    """Both histograms of one role."""
    distance = abs(scores.mean("sequence") - tau)
    if distance.isnull().all():
        axes.text(0.5, 0.5, "untestable", transform=axes.transAxes, ha="center", va="center", color="0.5")
        axes.set(title=role, xticks=[], yticks=[])
        return
    place = {name: int(index) for name, index in distance.argmin(["layer", "head"]).items()}
    values = scores.values
    own = scores.isel(place).values
    own, pooled = own[np.isfinite(own)], values[np.isfinite(values)]
    edges = np.linspace(0, max(np.percentile(own, 99), 1.2 * tau), BINS + 1)
    for sample, look in ((pooled, POOLED), (own, NEAREST)):
        counts = np.histogram(sample, edges)[0]
        axes.stairs(counts / counts.max(), edges, fill=True, **look)
    axes.axvline(tau, **THRESHOLD)
    axes.axvline(own.mean(), **MEAN)
    axes.axvline(np.median(own), **MEDIAN)
    axes.set(title=f"{role}, {place['layer']}-{place['head']}", yticks=[], xlim=(0, edges[-1]))
    axes.xaxis.set_major_locator(MaxNLocator(4))


def _log10(p: Float[np.ndarray, "head"]) -> Float[np.ndarray, "head"]:
    return np.log10(np.maximum(p, 10.0**SMALLEST))


def _spread(count: int) -> Float[np.ndarray, "head"]:
    """Heights within a row, repeated from top to bottom, so that equal values do not hide each other."""
    return np.linspace(-0.3, 0.3, 7)[np.arange(count) % 7]
