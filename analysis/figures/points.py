"""Names beside the points of a figure."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

SIDES = np.array([(1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1)])  # of a point


def name_points(
    axes: Axes,
    points: Float[np.ndarray, "point 2"],
    names: Sequence[str],
    others: Float[np.ndarray, "other 2"] | None = None,
) -> None:
    """Writes a name beside each point (x, y), on the side that is farthest from all other points, names and the edge.

    `others` are points without a name. Call it when the limits of the axes are final.
    """
    axes.figure.draw_without_rendering()  # lays the axes out
    pixels = axes.transData.transform
    taken = pixels(points if others is None else np.concatenate([points, others]))
    box, dot = axes.bbox, axes.figure.dpi / 72
    for point, name in zip(pixels(points), names, strict=True):
        reach = dot * np.array([5 + 2 * len(name), 7])  # from a point to the middle of its name, at 7 points
        middles = point + SIDES * reach
        room = np.minimum(middles - [box.x0, box.y0], [box.x1, box.y1] - middles) - reach / 2
        free = np.linalg.norm((middles[:, None] - taken[None]) / reach, axis=-1).min(axis=1)
        best = (free + 10 * np.minimum(room, 0).sum(axis=1)).argmax()
        taken, (across, up) = np.vstack([taken, middles[best]]), SIDES[best]
        aligned = {"ha": ("center", "left", "right")[int(across)], "va": ("center", "bottom", "top")[int(up)]}
        place = {"xytext": (4 * across, 3 * up), "textcoords": "offset points", "fontsize": 7}
        text = axes.annotate(name, axes.transData.inverted().transform(point), **place, **aligned)
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
