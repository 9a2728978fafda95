"""Figures of one sequence: sieves as boxes and arrows (F1), and attention as maps (F2)."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from analysis.figures.colours import SEQUENTIAL, ink
from analysis.figures.theme import as_written, in_order, rows_of_axes

FONT_SIZE = 8.0  # points
PADDING, GAP = 3.0, 4.0  # points: inside a box, between boxes
BOX, OUTLINE = "round,pad=0,rounding_size=0.1", {"edgecolor": "0.6", "linewidth": 0.6}


@as_written
def sieve_diagram(
    axes: Axes, tokens: list[str], sieve: Float[np.ndarray, "token token"], query: int, role: str = ""
) -> None:
    """One sequence as boxes, with arrows from token `query` to the tokens in its row of the sieve.

    The tint of a box and the opacity of an arrow are weights relative to the largest of the row; the box of token
    `query` has a thick outline. Source: Pande 2021, sieves.
    """
    widths = np.maximum(text_widths(tokens, FONT_SIZE), FONT_SIZE / 2) + 2 * PADDING
    right = np.cumsum(widths + GAP) - GAP
    left = right - widths
    room = 0.9 * axes_width(axes)  # the role's name takes the rest
    size, shade = min(1.0, room / right[-1]) * FONT_SIZE, ink(role)
    weights = sieve[query] / (sieve[query].max() or 1.0)
    for position, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
        tint = (shade, 0.10 + 0.30 * weight) if weight > 0 else "white"
        look = {"edgecolor": "black", "linewidth": 1.6} if position == query else OUTLINE
        start, width = left[position], widths[position]
        axes.add_patch(FancyBboxPatch((start, -0.42), width, 0.46, boxstyle=BOX, facecolor=tint, **look))
        axes.text(start + width / 2, -0.19, token, ha="center", va="center_baseline", fontsize=size)
    for target in np.flatnonzero(weights):
        _draw_arrow(axes, (left + right) / 2, query, target, 0.25 + 0.75 * weights[target], shade)
    axes.set(xlim=(-2, right[-1] + 2), ylim=(-0.48, 1.3), xticks=[], yticks=[])
    axes.set_ylabel(role or "sieve", rotation=0, ha="right", va="center", y=0.17, parse_math=False)
    axes.spines[:].set_visible(False)


@as_written
def sieve_diagrams(
    tokens: list[str], sieves: dict[str, Float[np.ndarray, "token token"]], queries: dict[str, int]
) -> Figure:
    """One sieve diagram per role, stacked; `queries` names the current token of each role."""
    roles = in_order(sieves)
    figure, column = rows_of_axes(len(roles), 1, 0.62, 0.3)
    for axes, role in zip(column, roles, strict=True):
        sieve_diagram(axes, tokens, sieves[role], queries[role], role)
    column[-1].set_xlabel(
        "tokens of the sequence, in order (thick outline: the current token; arrows: its sieve)"
    )
    return figure


@as_written
def attention_maps(maps: dict[str, tuple[Float[np.ndarray, "token token"], list[str]]]) -> Figure:
    """Heat maps of heads, two in a row: a row per current token, dark = much attention, each with its colour bar.

    Labels are thinned out when the tokens are too many to be read. Source: Pande 2021.
    """
    figure, grid = rows_of_axes(len(maps), 2, 3.1)
    for axes, (title, (attention, tokens)) in zip(grid, maps.items(), strict=True):
        image = axes.imshow(attention, cmap=SEQUENTIAL, vmin=0, interpolation="nearest", aspect="equal")
        figure.colorbar(image, ax=axes, label="attention (a row sums to 1)", shrink=0.8, pad=0.02)
        room = 72 * min(axes.get_window_extent().size) / figure.dpi / len(tokens)  # points per token
        step = math.ceil(5.0 / room)
        size = float(np.clip(0.85 * room * step, 4.0, FONT_SIZE))
        text = {"labels": tokens[::step], "fontsize": size, "parse_math": False}
        axes.set_xticks(range(0, len(tokens), step), rotation=90, **text)
        axes.set_yticks(range(0, len(tokens), step), **text)
        axes.tick_params(length=0, pad=2)
        axes.set(xlabel="attended token", ylabel="current token")
        axes.set_title(title, parse_math=False)
    return figure


def axes_width(axes: Axes) -> float:
    """The width of axes (points)."""
    return 72 * axes.get_window_extent().width / axes.figure.dpi


def text_widths(texts: Sequence[str], size: float) -> list[float]:
    """The width of each text at a font size (points)."""
    font = FontProperties(size=size)
    return [text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] for text in texts]


def _draw_arrow(
    axes: Axes, centres: Float[np.ndarray, " token"], query: int, target: int, opacity: float, shade: tuple
) -> None:
    """An arc above the boxes from token `query` to `target`, higher the farther; a loop when they are one."""
    reach = abs(centres[target] - centres[query]) / np.ptp(centres) if target != query else 0.0
    peak = 0.5 + 1.1 * reach**0.7
    loop = 0.0 if reach else PADDING
    start, end = centres[query] - loop, centres[target] + loop
    arc = Path([(start, 0.06), (start, peak), (end, peak), (end, 0.06)], [1, 4, 4, 4])
    head = "-|>,head_length=3,head_width=1.6"
    axes.add_patch(FancyArrowPatch(path=arc, arrowstyle=head, color=shade, alpha=opacity, fill=True, lw=1.0))
