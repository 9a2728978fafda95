import numpy as np
import pandas as pd
import pytest
from drawing import unnamed

from analysis.figures.intervals import FILLS, claim_intervals


@pytest.fixture
def claims() -> pd.DataFrame:
    rows = [
        ("C1: roles are shared", ">=", 0.1, 0.3, 0.2, 0.5, "holds"),
        ("C1b: a: b", "<", 0.1, 0.3, 0.05, 0.5, "undecided"),
        ("C3: c", ">", 0.0, -2.0, -4.0, -1.0, "does not hold"),
        ("C4: d", ">", 0.0, np.nan, np.nan, np.nan, "untestable"),
    ]
    return pd.DataFrame(rows, columns=["claim", "relation", "bound", "estimate", "low", "high", "verdict"])


@pytest.fixture
def seeds() -> pd.DataFrame:
    return pd.DataFrame(
        {"claim": ["C1", "C1", "C1b", "C3"], "seed": [0, 1, 0, 0], "estimate": [0.3, 0.9, 0.3, -2]}
    )


def lines(figure, marker: str) -> list:
    return [line for line in figure.axes[0].lines[1:] if line.get_marker() == marker]


def test_rows_are_distances_to_the_claims_side(claims, seeds):
    figure = claim_intervals(claims, seeds)
    intervals = [line.get_xdata() for line in lines(figure, "None")]
    assert intervals[0] == pytest.approx([0.1 / 0.8, 0.4 / 0.8])  # a run lies 0.8 from the bound
    assert intervals[1] == pytest.approx([0.05 / 0.4, -1])  # more than the bound speaks against it
    assert intervals[2] == pytest.approx([-1, -0.25])
    assert len(intervals) == 3
    assert lines(figure, "|")[0].get_xdata() == pytest.approx([0.25, 1])
    assert unnamed(figure) == []


def test_verdict_is_seen_without_colour(claims, seeds):
    figure = claim_intervals(claims, seeds)
    fills = [line.get_markerfacecolor() for line in lines(figure, "o")]
    assert fills == [FILLS[verdict] for verdict in claims["verdict"][:3]]
    words = [text.get_text() for text in figure.axes[0].texts]
    assert "0.30 [0.20, 0.50] ≥ 0.1:\nholds" in words
    assert "untestable" in words
