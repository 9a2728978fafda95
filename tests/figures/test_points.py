from itertools import combinations

import numpy as np

from analysis.figures import theme
from analysis.figures.points import name_points


def test_names_stand_beside_their_points_and_not_on_another():
    axes = theme.canvas(3, 3)
    points = np.array([[0, 0], [0.5, 0.5], [0.52, 0.5], [1, 1.0]])
    axes.scatter(*points.T)
    name_points(axes, points[:3], ["0-0", "2-9", "1-1"], points[3:])
    axes.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == ["0-0", "2-9", "1-1"]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    pixels = axes.transData.transform(points)
    assert not any(box.contains(*pixel) for box in boxes for pixel in pixels)
