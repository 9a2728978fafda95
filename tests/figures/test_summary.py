import numpy as np
from drawing import role_table

from analysis.figures import theme
from analysis.figures.colours import marker
from analysis.figures.summary import head_summary

TABLE = role_table()


def test_head_summary_fills_a_mark_by_the_strictest_count_of_its_head():
    table = TABLE.assign(exceeds_control=TABLE["mean"] > 4, assigned_controlled=TABLE["mean"] > 5)
    effect = theme.layer_head(TABLE, "local", "mean") / 100
    figure = head_summary(table, effect, "fall in AUC", effect > 0.04, "matching heads")
    axes = figure.axes[0]
    styles = {(round(line.get_ydata()[0]), round(line.get_xdata()[0])): line.get_fillstyle()
              for line in axes.lines if line.get_marker() == marker("local")}  # fmt: skip
    rows = table[(table["role"] == "local") & table["assigned"].eq(True)]
    expected = np.select([rows["mean"] > 5, rows["mean"] > 4], ["full", "left"], "none")
    assert styles == dict(zip(zip(rows["layer"], rows["head"], strict=True), expected, strict=True))
    assert {*expected} == {"full", "left", "none"}
    frames = {(round(patch.get_y() + 0.46), round(patch.get_x() + 0.46)) for patch in axes.patches}
    assert frames == {*map(tuple, np.argwhere(effect > 0.04).tolist())}
