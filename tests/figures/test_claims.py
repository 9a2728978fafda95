import numpy as np
import pandas as pd

from analysis.figures.claims import MARKS, RELEASED, encoder_plot, forest_plot
from analysis.statistics.claims import Claim, claim_table, frame, not_applicable, with_control
from analysis.statistics.encoders import encoder_table


def test_each_claim_has_an_axis_of_its_own_whose_right_side_is_the_claims():
    known = [Claim(f"A{n}", "words", "", "", 0.5, relation, unit="task") for n, relation in enumerate("><>")]
    units = frame({"a": (0.6, 0.5, 0.7), "b": (0.8, 0.7, 0.9)})
    units = with_control(units, {"a": (0.4, 0.4, 0.4)})
    frames = {
        "A0": units.assign(released=0.45),
        "A1": frame({"a": (9.0, 8.5, 9.5)}),
        "A2": not_applicable("not run"),
    }
    axes = forest_plot(claim_table(known, frames), known).axes[0]
    marks = {line.get_marker(): line for line in axes.lines if np.isfinite(line.get_xdata()).any()}
    # The estimate is .7; the largest value, .8, is farthest from .5.
    assert np.isclose(marks["o"].get_xdata(), 0.2 / 0.3)
    assert marks["o"].get_markerfacecolor() == MARKS["supported"]["markerfacecolor"]
    assert np.isclose(marks["x"].get_xdata(), -0.1 / 0.3)
    assert np.isclose(marks[MARKS[RELEASED]["marker"]].get_xdata(), -0.05 / 0.3)
    assert marks["s"].get_xdata() < -0.9  # above the threshold of a claim that asks for less
    assert [text.get_text() for text in axes.texts] == ["not applicable"]


def test_encoders_share_the_axis_of_a_claim():
    known = [Claim("A0", "words", "", "", 0.5, ">"), Claim("A1", "words", "", "", 0.5, "<")]
    values = {"one": [(0.9, 0.8, 1.0), (0.4, 0.3, 0.5)], "two": [(0.4, 0.3, 0.45), (0.35, 0.25, 0.45)]}
    units = {
        name: pd.DataFrame(rows, columns=["value", "low", "high"]).assign(claim=["A0", "A1"], unit="", runs=0)
        for name, rows in values.items()
    }
    left, right = encoder_plot(encoder_table(units, known), known, {}).axes[:2]
    marks = {shape: [line for line in left.lines if line.get_marker() == shape] for shape in "os"}
    places = {shape: [float(line.get_xdata()[0]) for line in lines] for shape, lines in marks.items()}
    assert np.allclose(
        places["o"], [0.4 / 0.5, 0.1 / 0.25], atol=0.03
    )  # the largest distance is that of an end
    fills = [line.get_markerfacecolor() for line in marks["s"]]
    assert fills == [MARKS[verdict]["markerfacecolor"] for verdict in ("not supported", "supported")]
    assert [label.get_text() for label in left.get_yticklabels()] == ["A0: words", "A1: words"]  # A0 differs
    differences = [float(line.get_xdata()[0]) for line in right.lines if line.get_marker() == "s"]
    assert np.allclose(differences, [-0.5, -0.05])
