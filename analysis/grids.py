"""Figures of layers x heads: mean scores, assigned roles, the role map, what changed (F3, F4, F6, F8)."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.theme import (
    DOUBLE,
    HEAD,
    MISSING,
    ROLE_MARKERS,
    SCORE,
    canvas,
    colour,
    in_order,
    integer_ticks,
    layer_head,
    layer_head_mesh,
    luminance,
    panels,
)

# Where the mark of a role stands in the cell of a head; the legend repeats this arrangement.
ROLE_MAP_ROWS = (
    ("local", "syntactic", "delimiter", "block"),
    ("nsubj", "dobj", "amod", "advmod"),
    ("cls", "sep"),
)
UNTESTABLE = {"marker": "x", "color": "0.7", "linewidth": 0.5}
LAYER_UPWARDS = "layer (0-based, layer 0 at the bottom)"


def mean_maps(table: pd.DataFrame, tau: float, cap: float | None = None, title: str = "") -> Figure:
    """Mean score of every head, one layer x head map per role on one colour scale; a dot marks assigned heads.

    The scale ends at `cap`, by default three times `tau`; larger means share its last colour.
    Grey cells have no mean. Source: Pande 2021, mean-score heat maps.
    """
    roles = in_order(table["role"])
    figure, axes = panels(len(roles), columns=5, height=1.45)
    cap = 3 * tau if cap is None else cap
    for panel, role in zip(axes, roles, strict=True):
        means = layer_head(table, role, "mean")
        mesh = layer_head_mesh(panel, means, cmap="mako_r", vmin=0, vmax=cap)
        _dots(panel, layer_head(table, role, "assigned") == 1, light=np.nan_to_num(means) > 0.55 * cap)
        panel.set_title(role)
    bar = figure.colorbar(mesh, ax=axes, extend="max", aspect=40, pad=0.02)
    bar.set_label(f"mean {SCORE}; dot: head has the role")
    bar.ax.axhline(tau, color="white", linewidth=1.2)
    bar.set_ticks([0, tau, cap], labels=["0", f"τ = {tau:g}", f"{cap:g}"])
    return _name_axes(figure, title)


def change_map(change: pd.DataFrame, value: str = "difference", cap: float | None = None, title: str = "") -> Figure:
    """Change of every head's mean score from pre-trained to fine-tuned, one layer x head map per role.

    `change` has columns layer, head, role and `value`. Signs are written into cells beyond a third of the scale,
    which ends at plus and minus `cap`, by default the 98th percentile of the sizes. Source: Pande 2021, Q3.
    """
    roles = in_order(change["role"])
    figure, axes = panels(len(roles), columns=5, height=1.45)
    sizes = change[value].abs().dropna()
    cap = float(sizes.quantile(0.98)) if cap is None else cap
    cap = cap or 1.0  # nothing changed anywhere
    for panel, role in zip(axes, roles, strict=True):
        difference = layer_head(change, role, value)
        mesh = layer_head_mesh(panel, difference, cmap="vlag", vmin=-cap, vmax=cap)
        for sign, marker in {1: "+", -1: "_"}.items():  # the two ends of the scale look alike in grey
            layers, heads = np.nonzero(np.nan_to_num(difference) * sign > cap / 3)
            panel.scatter(heads, layers, s=9, marker=marker, color="black", linewidth=0.7)
        panel.set_title(role)
    label = "change of the mean sieve bias score (fine-tuned minus pre-trained)"
    figure.colorbar(mesh, ax=axes, extend="both", aspect=40, pad=0.02, label=label)
    return _name_axes(figure, title)


def assignment(table: pd.DataFrame, axes: Axes | None = None, title: str = "") -> Axes:
    """Heads (grouped by layer) x roles: a full bar where a head has the role, a line where it has not.

    Untestable roles are hatched at half height. Source: Pande 2021, functional-role assignment.
    """
    roles = in_order(table["role"])
    axes = canvas(axes, width=DOUBLE, height=0.21 * len(roles) + 0.9)
    heads, layers = table["head"].max() + 1, table["layer"].max() + 1
    for row, role in enumerate(roles):
        verdict = layer_head(table, role, "assigned").ravel()
        _verdict_bars(axes, verdict == 1, row, height=0.8, color=colour(role), label="has")
        _verdict_bars(axes, verdict == 0, row, height=0.1, color="0.6", label="not")
        _verdict_bars(axes, np.isnan(verdict), row, height=0.4, color="white", label="untestable", hatched=True)
    axes.vlines(np.arange(1, layers) * heads - 0.5, -0.5, len(roles) - 0.5, color="0.75", linewidth=0.5, zorder=0)
    axes.set(xlim=(-0.5, layers * heads - 0.5), ylim=(len(roles) - 0.5, -0.5), title=title)
    axes.set_xticks((np.arange(layers) + 0.5) * heads - 0.5, labels=[str(layer) for layer in range(layers)])
    axes.set_yticks(range(len(roles)), labels=roles)
    axes.tick_params(length=0)
    axes.set(xlabel="layer (0-based; heads in order within each layer)", ylabel="role")
    _legend_verdicts(axes)
    return axes


def role_map(tables: dict[str, pd.DataFrame], title: str = "") -> Figure:
    """The role map: per task a grid of layers x heads, in each cell one mark per role the head has.

    Every role has its own place in the cell, which the legend repeats; a grey cross there means untestable.
    Roles outside ROLE_MAP_ROWS are not drawn. Source: Pande 2021, role map.
    """
    every = pd.concat(tables.values())
    layers, heads, roles = every["layer"].max() + 1, every["head"].max() + 1, set(every["role"])
    cell = (DOUBLE - 0.5) / min(2, len(tables)) / heads  # inches
    figure, axes = panels(len(tables), columns=2, height=float(np.clip(0.95 * cell * layers, 1.3, 3.6)))
    figure.set_figheight(figure.get_figheight() + 0.5)
    size = min(0.82 * 72 * cell / len(ROLE_MAP_ROWS[0]), 9.0) ** 2  # points squared
    for panel, (task, table) in zip(axes, tables.items(), strict=True):
        _role_marks(panel, table, roles, size)
        _cell_borders(panel, layers, heads)
        panel.set_title(task)
    figure.legend(handles=_role_key(), ncols=4, loc="outside lower center", columnspacing=1.6, handletextpad=0.3,
                  title="place of each role's mark within the cell of a head")  # fmt: skip
    return _name_axes(figure, title)


def _name_axes(figure: Figure, title: str) -> Figure:
    """Common labels of a grid of layer x head panels."""
    figure.supxlabel(HEAD)
    figure.supylabel(LAYER_UPWARDS)
    if title:
        figure.suptitle(title)
    return figure


def _dots(axes: Axes, marked: np.ndarray, light: np.ndarray) -> None:
    """A dot in every marked cell, white where the cell is dark."""
    layers, heads = np.nonzero(marked)
    axes.scatter(heads, layers, s=4, c=np.where(light[marked], "white", "black"), linewidth=0)


def _verdict_bars(
    axes: Axes, chosen: np.ndarray, row: int, height: float, color: str, label: str, hatched: bool = False
) -> None:
    """Bars of one verdict in one row of the assignment diagram."""
    hatch = {"hatch": "//////", "edgecolor": "0.6"} if hatched else {}
    where = np.flatnonzero(chosen)
    axes.bar(where, height, bottom=row - height / 2, width=1.0 if hatched else 0.86, color=color, linewidth=0,
             label=f"_{label}", **hatch)  # fmt: skip


def _legend_verdicts(axes: Axes) -> None:
    """Legend of the assignment diagram, above the data."""
    handles = [
        Patch(facecolor="0.2", label="has the role (H0 rejected)"),
        Line2D([], [], color="0.6", linewidth=2, label="not rejected"),
        Patch(facecolor="white", edgecolor="0.6", hatch="//////", linewidth=0, label="untestable"),
    ]
    axes.legend(handles=handles, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)


def _mark(role: str) -> dict[str, object]:
    """Marker, colour and outline of a role's mark; light colours get a dark outline."""
    edge = "0.25" if luminance(colour(role)) > 0.6 else "none"
    return {"marker": ROLE_MARKERS[role], "facecolor": colour(role), "edgecolor": edge, "linewidth": 0.4}


def _role_marks(axes: Axes, table: pd.DataFrame, roles: set[str], size: float) -> None:
    """The marks of one task's role map; a role of the study that the task lacks is untestable there."""
    for row, names in enumerate(ROLE_MAP_ROWS):
        for column, role in enumerate(names):
            verdict = layer_head(table, role, "assigned") if role in roles else np.zeros((0, 0))
            for chosen, mark, area in ((verdict == 1, _mark(role), size), (np.isnan(verdict), UNTESTABLE, size / 4)):
                layers, heads = np.nonzero(chosen)
                axes.scatter(heads + (column - 1.5) / 4.3, layers + (1 - row) / 3.3, s=area, label=role, **mark)


def _cell_borders(axes: Axes, layers: int, heads: int) -> None:
    """Pale lines between the cells of a grid, and its limits."""
    axes.hlines(np.arange(1, layers) - 0.5, -0.5, heads - 0.5, color=MISSING, linewidth=0.6, zorder=0)
    axes.vlines(np.arange(1, heads) - 0.5, -0.5, layers - 0.5, color=MISSING, linewidth=0.6, zorder=0)
    axes.set(xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5))
    integer_ticks(axes, bins=12)


def _role_key() -> list[Line2D]:
    """Legend handles in the arrangement of ROLE_MAP_ROWS, column by column, and the cross for untestable."""
    rows = [*ROLE_MAP_ROWS[:-1], (*ROLE_MAP_ROWS[-1], "untestable")]
    columns = itertools.zip_longest(*rows)
    return [_key(role) for column in columns for role in column if role is not None]


def _key(role: str) -> Line2D:
    """The legend entry of one role, or of `untestable`."""
    mark = UNTESTABLE | {"facecolor": "none", "edgecolor": "0.5"} if role == "untestable" else _mark(role)
    face, edge = mark["facecolor"], mark["edgecolor"]
    return Line2D([], [], linestyle="", marker=mark["marker"], markersize=6, label=role,
                  markerfacecolor=face, markeredgecolor=face if edge == "none" else edge, markeredgewidth=0.5)  # fmt: skip
