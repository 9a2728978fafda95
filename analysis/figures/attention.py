"""The attention of one head on one sequence as lines between its tokens (clark-F1, F5)."""

from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from analysis.figures.colours import BLACK, BLUE, VERMILION
from analysis.figures.diagrams import PADDING, axes_width, text_widths
from analysis.figures.theme import as_written

NAME_SIZE = 7.0  # points: of the names that lines of attention join, where they fit
LEAST_SIZE = 6.0  # points: of names that do not fit, which may then leave their axes
FAINT = 0.45  # the opacity of lines beside highlighted ones, as a share of their own


@as_written
def attention_lines(
    axes: Axes,
    weights: Float[np.ndarray, "token token"],
    tokens: Sequence[str],
    highlighted: Collection[int] = (),
    attended: Collection[int] = (),
    room: int = 0,
) -> None:
    """One sequence twice, side by side, with a line from each token (left) to each that it attends to (right).

    A line is as opaque as its weight (0 to 1). Names and lines of the tokens at `highlighted` positions on the left,
    and at `attended` positions on the right, are vermilion; other lines are then FAINT. The axes are as high as `room`
    names, or as all tokens, so that panels of different sequences have one scale. Names take the width that they need,
    and shrink to LEAST_SIZE to take a third at most. Source: Clark 2019, figures 1 and 5.
    """
    query, key = np.divmod(np.arange(weights.size), len(tokens))
    strong = np.isin(query, list(highlighted)) | np.isin(key, list(attended))
    colours = np.where(strong[:, None], to_rgb(VERMILION), to_rgb(BLUE))
    opacity = np.clip(weights.reshape(-1, 1), 0, 1)
    if strong.any():
        opacity = np.where(strong[:, None], opacity, opacity * FAINT)
    ends = np.stack([np.zeros(weights.size), query, np.ones(weights.size), key], 1).reshape(-1, 2, 2)
    order = np.argsort(strong, kind="stable")  # the lines that matter are drawn last
    lines = {"colors": np.hstack([colours, opacity])[order], "linewidths": np.where(strong, 1.8, 1.2)[order]}
    axes.add_collection(LineCollection(ends[order], **lines))
    size, gap, beyond = _name_room(axes, tokens)
    look = {"va": "center", "fontsize": size}
    for position, token in enumerate(tokens):
        left, right = (VERMILION if position in marked else BLACK for marked in (highlighted, attended))
        axes.text(-gap, position, token, ha="right", color=left, **look)
        axes.text(1 + gap, position, token, ha="left", color=right, **look)
    axes.set(xlim=(-beyond, 1 + beyond), ylim=(max(room, len(tokens)) - 0.4, -0.6))
    axes.axis("off")


def _name_room(axes: Axes, tokens: Sequence[str]) -> tuple[float, float, float]:
    """The font size of names (points), and in lengths of a line: the gap to it, the room of the longest name."""
    longest = max(*text_widths(tokens, NAME_SIZE), 1.0)
    points = axes_width(axes)
    shrunk = max(LEAST_SIZE / NAME_SIZE, min(1.0, points / 3 / longest))
    beside = shrunk * longest + PADDING
    length = max(points - 2 * beside, points / 5)
    return shrunk * NAME_SIZE, PADDING / length, beside / length
