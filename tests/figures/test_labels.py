"""Labels made of data are drawn as they are written, whatever signs they hold."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, role_table
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from analysis.figures import diagrams, grids, lines
from analysis.figures.claims import forest_plot
from analysis.statistics.claims import Claim, claim_table, frame

LABEL, BROKEN = "$x_1$", r"$\frac$ a_b^c"  # a formula, and what is none: to draw it as one is an error
TOKENS = ["[CLS]", LABEL, BROKEN, "[SEP]"]
MAP = np.full((4, 4), 0.25)
GRID = np.ones((LAYERS, HEADS))
NUMBERS = pd.DataFrame(
    {"x": [1, 2] * 2, "y": [1.0, 2.0] * 2, "s": [LABEL, LABEL, BROKEN, BROKEN], "c": LABEL}
)
LAYER_COUNTS = pd.DataFrame(
    {"task": LABEL, "state": BROKEN, "role": LABEL, "layer": range(LAYERS), "heads": 1}
)
SUMMARY = role_table().assign(exceeds_control=True, assigned_controlled=False)


def on_axes(draw: Callable, *arguments: object) -> Figure:
    """The figure of a drawer that takes axes."""
    axes = plt.subplots()[1]
    draw(axes, *arguments)
    return axes.figure


def claims() -> Figure:
    """Claims with both labels in their words."""
    known = [Claim(name, text, "", "", 0.5, ">") for name, text in (("C1", LABEL), ("C2", BROKEN))]
    return forest_plot(claim_table(known, {claim.id: frame({"": (0.6, 0.5, 0.7)}) for claim in known}), known)


DRAWERS: dict[str, Callable[[], Figure]] = {
    "sieve_diagrams": lambda: diagrams.sieve_diagrams(
        TOKENS, {LABEL: MAP, BROKEN: MAP}, {LABEL: 1, BROKEN: 2}
    ),
    "attention_maps": lambda: diagrams.attention_maps({LABEL: (MAP, TOKENS), BROKEN: (MAP, TOKENS)}),
    "attention_lines": lambda: on_axes(diagrams.attention_lines, MAP, TOKENS),
    "head_grids": lambda: grids.head_grids({LABEL: GRID, BROKEN: GRID}, BROKEN),
    "role_layer_maps": lambda: grids.role_layer_maps(LAYER_COUNTS, "heads", BROKEN, "state"),
    "head_summary": lambda: grids.head_summary(SUMMARY, GRID, LABEL, GRID > 0, BROKEN),
    "curves": lambda: lines.curves(NUMBERS, "x", "y", "s", "c").figure,
    "forest_plot": claims,
}


@pytest.mark.parametrize("drawer", DRAWERS)
def test_signs_of_formulas_are_drawn_as_they_are(drawer: str, monkeypatch: pytest.MonkeyPatch):
    texts: list[str] = []

    def draw_text(self, context, x, y, text, prop, angle, ismath=False, mtext=None):
        assert not ismath, text
        texts.append(text)

    monkeypatch.setattr("matplotlib.backends.backend_agg.RendererAgg.draw_text", draw_text)
    figure = DRAWERS[drawer]()
    figure.canvas.draw()
    assert LABEL in " ".join(texts)
    assert BROKEN in " ".join(texts)
    assert plt.rcParams["text.parse_math"]  # a formula of one's own is still one elsewhere
