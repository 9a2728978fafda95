from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from analysis.figures import diagrams, grids, lines
from analysis.figures.attention import attention_lines

LABEL, BROKEN = "$x_1$", r"$\frac$ a_b^c"  # a formula, and what is none: to draw it as one is an error
TOKENS = ["[CLS]", LABEL, BROKEN, "[SEP]"]
MAP = np.full((4, 4), 0.25)
MAPS = {LABEL: MAP, BROKEN: MAP}
NUMBERS = pd.DataFrame({"x": [1, 2] * 2, "y": [1.0, 2.0] * 2, "s": [LABEL] * 2 + [BROKEN] * 2, "c": LABEL})


def lines_of_attention() -> Figure:
    axes = plt.subplots()[1]
    attention_lines(axes, MAP, TOKENS)
    return axes.figure


DRAWERS: dict[str, Callable[[], Figure]] = {
    "sieve_diagrams": lambda: diagrams.sieve_diagrams(TOKENS, MAPS, {LABEL: 1, BROKEN: 2}),
    "attention_maps": lambda: diagrams.attention_maps({LABEL: (MAP, TOKENS), BROKEN: (MAP, TOKENS)}),
    "attention_lines": lines_of_attention,
    "head_grids": lambda: grids.head_grids(MAPS, BROKEN),
    "curves": lambda: lines.curves(NUMBERS, "x", "y", "s", "c").figure,
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
