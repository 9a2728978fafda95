import numpy as np
import pandas as pd

from analysis.figures import curves


def test_a_panel_per_group_and_a_line_with_its_bars_per_series():
    table = pd.DataFrame(
        [
            (shape, rule, n, n / 1000 + (rule == "t"))
            for shape in ("flat", "steep")
            for rule in ("t", "audited")
            for n in (20, 100)
        ],
        columns=["shape", "rule", "n", "rate"],
    )
    table = table.assign(low=table["rate"] - 0.1, high=table["rate"] + 0.3)
    grid = curves(table, "n", "rate", series="rule", column="shape", log=True)
    assert [axes.get_title() for axes in grid.axes.flat] == ["flat", "steep"]
    for axes in grid.axes.flat:
        lines = {bars.get_label(): bars for bars in axes.containers}
        assert [*lines] == ["t", "audited"]
        np.testing.assert_allclose(np.asarray(lines["t"].lines[0].get_ydata(), float), [1.02, 1.1])
        ends = lines["audited"].lines[2][0].get_segments()
        np.testing.assert_allclose(np.array(ends)[..., 1].astype(float), [[-0.08, 0.32], [0, 0.4]], atol=1e-9)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["20", "100"]
