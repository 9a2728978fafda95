import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.pyplot import subplots

from analysis.figures import diagrams
from analysis.figures.attention import FAINT, attention_lines
from analysis.figures.colours import BLUE, VERMILION
from analysis.figures.theme import DOUBLE, canvas

TOKENS = ["[CLS]", "old", "dogs", "sleep", ".", "[SEP]"]
COUNT = len(TOKENS)


def test_arrows_lead_from_the_current_token_to_its_sieve_with_the_weight_as_opacity():
    sieve = np.eye(COUNT) + 0.5 * np.eye(COUNT, k=1) + 0.5 * np.eye(COUNT, k=-1)
    axes = canvas(DOUBLE, 1.0)
    diagrams.sieve_diagram(axes, TOKENS, sieve / sieve.sum(), query=2, role="local")
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    centres = np.array([box.get_x() + box.get_width() / 2 for box in boxes])
    opacity = {}
    for arrow in (patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)):
        end = arrow._path_original.vertices[-1][0]
        opacity[int(np.argmin(np.abs(centres - end)))] = arrow.get_alpha()
    assert opacity == pytest.approx({1: 0.625, 2: 1.0, 3: 0.625})  # 0.25 + 0.75 * weight / largest weight


def test_lines_run_from_the_attending_to_the_attended_token():
    axes = subplots()[1]
    weights = np.arange(9).reshape(3, 3) / 8
    attention_lines(axes, weights, ["a", "b", "c"], highlighted={1})
    (lines,) = axes.collections
    cells = [(row, column) for row in (0, 2, 1) for column in range(3)]  # the highlighted ones on top
    ends = [[[0, row], [1, column]] for row, column in cells]
    assert [line.tolist() for line in lines.get_segments()] == ends
    looks = {True: (VERMILION, 1), False: (BLUE, FAINT)}
    expected = [(*looks[row == 1], weights[row, column]) for row, column in cells]
    colours = [(*to_rgb(colour), opacity * weight) for colour, opacity, weight in expected]
    np.testing.assert_allclose(lines.get_colors(), colours)
