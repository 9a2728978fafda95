import pandas as pd

from analysis.figures.lines import curves


def test_an_interval_that_leaves_out_its_estimate_is_drawn():
    """An interval at a level near 0 is narrower than its own shift."""
    table = pd.DataFrame(
        {"x": [1, 2], "y": [1.0, 3.0], "low": [0.5, 3.5], "high": [2.0, 4.0], "line": "a", "panel": "b"}
    )
    (bars,) = curves(table, "x", "y", "line", "panel").axes.flat[0].containers
    assert [segment.tolist() for segment in bars[2][0].get_segments()] == [
        [[1, 0.5], [1, 2]],
        [[2, 3], [2, 4]],
    ]
