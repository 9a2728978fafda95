"""Figures of layers x heads: mean scores, assigned roles, the role map, what changed (F3, F4, F6, F8)."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.figures.colours import colour, ink
from analysis.figures.theme import (
    DOUBLE,
    HEAD,
    HEADS_BY_LAYER,
    ROLE_MARKERS,
    canvas,
    fill,
    grid_size,
    heads_by_layer,
    in_order,
    integer_ticks,
    layer_head,
    layer_head_mesh,
    panels,
)

SCALE_ENDS = (3.0, 10.0, 30.0, 100.0)  # of the mean scores, and their reciprocals
# Where the mark of a role stands in the cell of a head; the legend repeats this arrangement.
ROLE_MAP_ROWS = (
    ("local", "syntactic", "delimiter", "block"),
    ("nsubj", "dobj", "amod", "advmod"),
    ("cls", "sep"),
)
MARK_AREAS = {"delimiter": 0.6, "cls": 1.4, "sep": 1.2}  # evens out markers that look larger or smaller
NOT_REJECTED = {"height": 0.1, "color": "0.6", "lw": 0}
HATCHED = {"height": 0.4, "width": 1.0, "color": "white", "edgecolor": "0.6", "hatch": "//////", "lw": 0}
CROSS = {"marker": "x", "color": "0.7", "linewidth": 0.5}
LAYER_UPWARDS = "layer (0-based, layer 0 at the bottom)"


def mean_maps(table: pd.DataFrame, tau: float) -> Figure:
    """Mean score of every head, a layer x head map per role; a dot marks heads with the role.

    The scale is logarithmic and centred at 1, the score of uniform attention. It ends at the first of SCALE_ENDS, and
    its reciprocal, that holds 98 % of the means; means beyond share the last colour. Grey cells have no mean.
    Source: Pande 2021, mean-score heat maps.
    """
    roles = in_order(table["role"])
    figure, axes = panels(len(roles), 5, _row_height(table, 5), HEAD, LAYER_UPWARDS)
    cap = _scale_end(table["mean"])
    for panel, role in zip(axes, roles, strict=True):
        means = np.maximum(layer_head(table, role, "mean"), 1 / cap)  # zero has no logarithm
        mesh = layer_head_mesh(panel, means, cmap="vlag", norm=LogNorm(1 / cap, cap))
        _dots(panel, layer_head(table, role, "assigned") == 1, light=np.nan_to_num(means) > cap**0.6)
        panel.set_title(role)
    bar = figure.colorbar(mesh, ax=axes, extend="both", aspect=40, pad=0.02)
    bar.set_label("mean sieve bias score, logarithmic\n(1 = uniform attention; dot: head has the role)")
    bar.ax.axhline(tau, color="black", linewidth=1.2)
    ends = [end for end in SCALE_ENDS if end <= cap]
    ticks = {1 / end: f"1/{end:g}" for end in ends[::-1]} | {1: "1"} | {end: f"{end:g}" for end in ends}
    bar.set_ticks([*ticks], labels=[*ticks.values()], minor=False)
    bar.ax.minorticks_off()
    bar.ax.text(-0.4, tau, "τ", transform=bar.ax.get_yaxis_transform(), ha="right", va="center")
    return figure


def change_map(change: pd.DataFrame) -> Figure:
    """Change of every head's mean score from pre-trained to fine-tuned, a layer x head map per role.

    `change` has columns layer, head, role and difference. The scale ends at plus and minus the 98th percentile of the
    sizes; cells beyond a third of it carry their sign. Source: Pande 2021, Q3.
    """
    roles = in_order(change["role"])
    figure, axes = panels(len(roles), 5, _row_height(change, 5), HEAD, LAYER_UPWARDS)
    cap = float(change["difference"].abs().dropna().quantile(0.98)) or 1.0  # 1 if nothing changed anywhere
    for panel, role in zip(axes, roles, strict=True):
        difference = layer_head(change, role, "difference")
        mesh = layer_head_mesh(panel, difference, cmap="vlag", vmin=-cap, vmax=cap)
        for sign, marker in {1: "+", -1: "_"}.items():  # the two ends of the scale look alike in grey
            layers, heads = np.nonzero(np.nan_to_num(difference) * sign > cap / 3)
            panel.scatter(heads, layers, s=9, marker=marker, color="black", linewidth=0.7)
        panel.set_title(role)
    label = "change of the mean sieve bias score\n(fine-tuned minus pre-trained)"
    figure.colorbar(mesh, ax=axes, extend="both", aspect=40, pad=0.02, label=label)
    return figure


def assignment(table: pd.DataFrame) -> Axes:
    """Heads (grouped by layer) x roles: a full bar if a head has the role, a line if it has not.

    Untestable roles are hatched at half height. Source: Pande 2021, functional-role assignment.
    """
    roles = in_order(table["role"])
    axes = canvas(width=DOUBLE, height=0.21 * len(roles) + 0.9)
    layers, heads = grid_size(table)
    for row, role in enumerate(roles):
        verdict = layer_head(table, role, "assigned").ravel()
        looks = ((verdict == 1, fill(role)), (verdict == 0, NOT_REJECTED), (np.isnan(verdict), HATCHED))
        for chosen, look in looks:
            _verdict_bars(axes, np.flatnonzero(chosen), row, **look)
    heads_by_layer(axes, layers, heads)
    axes.set_yticks(range(len(roles)), labels=roles)
    axes.tick_params(length=0)
    axes.set(ylim=(len(roles) - 0.5, -0.5), xlabel=HEADS_BY_LAYER, ylabel="role")
    _legend_verdicts(axes)
    return axes


def role_map(tables: dict[str, pd.DataFrame]) -> Figure:
    """The role map: per task a grid of layers x heads, in each cell one mark per role the head has.

    Every role has its own place in the cell, which the legend repeats; a grey cross there means untestable.
    Roles outside ROLE_MAP_ROWS are not drawn. Source: Pande 2021, role map.
    """
    every = pd.concat(tables.values())
    (layers, heads), roles = grid_size(every), set(every["role"])
    cell = (DOUBLE - 0.5) / min(2, len(tables)) / heads  # inches
    figure, axes = panels(len(tables), 2, _row_height(every, min(2, len(tables))), HEAD, LAYER_UPWARDS)
    figure.set_figheight(figure.get_figheight() + 0.5)  # room for the key
    size = min(0.75 * 72 * cell / len(ROLE_MAP_ROWS[0]), 9.0) ** 2  # points squared
    for panel, (task, table) in zip(axes, tables.items(), strict=True):
        _role_marks(panel, table, roles, size)
        _cell_borders(panel, layers, heads)
        panel.set_title(task)
    key = "Place of each role within the cell of a head (grey × there: untestable)"
    figure.legend(handles=_role_key(), ncols=4, loc="outside lower center", frameon=True, title=key)
    return figure


def _scale_end(means: pd.Series) -> float:
    """The first of SCALE_ENDS that is as far from 1, by ratio, as 98 % of the means; else the last."""
    ratios = means[means > 0].astype(float)
    reach = np.maximum(ratios, 1 / ratios).quantile(0.98)
    return next((end for end in SCALE_ENDS if end >= reach), SCALE_ENDS[-1])


def _row_height(table: pd.DataFrame, columns: int) -> float:
    """Height (inches) of a row of panels, and its titles, in which cells are about square."""
    layers, heads = grid_size(table)
    return 0.2 + float(np.clip(DOUBLE / columns / heads * layers, 0.9, 3.4))


def _dots(axes: Axes, marked: np.ndarray, light: np.ndarray) -> None:
    """A dot in every marked cell, white in dark cells."""
    layers, heads = np.nonzero(marked)
    size = min(4.0, (20 / marked.shape[1]) ** 2)  # points squared; smaller in narrow cells
    axes.scatter(heads, layers, s=size, c=np.where(light[marked], "white", "black"), linewidth=0)


def _verdict_bars(
    axes: Axes, heads: np.ndarray, row: int, height: float = 0.8, width: float = 0.86, **look: object
) -> None:
    """Bars centred on one row of the assignment diagram."""
    axes.bar(heads, height, width, bottom=row - height / 2, **look)


def _legend_verdicts(axes: Axes) -> None:
    """Legend of the assignment diagram, above the data."""
    handles = [
        Patch(facecolor="0.2", label="has the role (H0 rejected)"),
        Line2D([], [], color="0.6", linewidth=2, label="not rejected"),
        Patch(facecolor="white", edgecolor="0.6", hatch="//////", linewidth=0, label="untestable"),
    ]
    axes.legend(handles=handles, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)


def _role_marks(axes: Axes, table: pd.DataFrame, roles: set[str], size: float) -> None:
    """The marks of one task's role map; a role that is missing for the task is untestable there."""
    for row, names in enumerate(ROLE_MAP_ROWS):
        for column, role in enumerate(names):
            label = layer_head(table, role, "assigned") if role in roles else np.zeros((0, 0))
            mark = {"s": size * MARK_AREAS.get(role, 1.0), "marker": ROLE_MARKERS[role]}
            for chosen, look in (
                (label == 1, mark | fill(role)),
                (np.isnan(label), {"s": size / 4} | CROSS),
            ):
                layers, heads = np.nonzero(chosen)
                axes.scatter(heads + (column - 1.5) / 4.4, layers + (1 - row) / 3.4, label=role, **look)


def _cell_borders(axes: Axes, layers: int, heads: int) -> None:
    """Pale lines between the cells of a grid, and its limits."""
    axes.hlines(np.arange(1, layers) - 0.5, -0.5, heads - 0.5, color="0.75", linewidth=0.6, zorder=0)
    axes.vlines(np.arange(1, heads) - 0.5, -0.5, layers - 0.5, color="0.75", linewidth=0.6, zorder=0)
    axes.set(xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5))
    integer_ticks(axes, bins=12)


def _role_key() -> list[Line2D]:
    """Legend handles in the arrangement of ROLE_MAP_ROWS (a legend fills its columns first)."""
    columns = itertools.zip_longest(*ROLE_MAP_ROWS)
    return [_key(role) for column in columns for role in column]


def _key(role: str | None) -> Line2D:
    """The legend entry of one role; an empty one for a place without a role."""
    if role is None:
        return Line2D([], [], linestyle="", label=" ")
    size = 6 * MARK_AREAS.get(role, 1.0) ** 0.5
    return Line2D([], [], linestyle="", label=role, marker=ROLE_MARKERS[role], markersize=size,
                  markerfacecolor=colour(role), markeredgecolor=ink(role), markeredgewidth=0.5)  # fmt: skip
