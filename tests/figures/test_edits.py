"""Figures of edits: one mark for each run, one line for each run and each other set; nothing to draw is said."""

import numpy as np
import pandas as pd
from headtables import role_table

from analysis.figures import theme
from analysis.figures.colours import marker
from analysis.figures.edits import dial_panels, head_summary, marks_by_edit, rank_panels, shares_by_edit

TABLE = role_table()

NATURAL, OWN = "dial, natural dose", "dial to the own text"
DIAL = pd.DataFrame({"edit": ["none", "dial 1", NATURAL, OWN], "dose": [0, 1, 0.4, 0.4]}).assign(
    share=[0.3, 0.9, 0.6, 0.3], task="mrpc", seed=0, matched=0.6, unmatched=0.2
)
SETS = pd.DataFrame({"set": ["none", "matching heads", "other heads"], "share": [0.35, 0.7, 0.4]})
SETS = SETS.assign(task="mrpc", seed=0)


def test_the_dial_is_drawn_by_dose_with_other_sets_beside_it():
    [axes] = dial_panels(DIAL, SETS, NATURAL, OWN).axes
    lines = [line.get_xydata().tolist() for line in axes.lines]
    assert [[0, 0.3], [0.4, 0.6], [1, 0.9]] in lines
    assert [[0, 0.3], [0.4, 0.3]] in lines
    assert [[0, 0.35], [0.4, 0.4]] in lines
    assert sum(len(line) > 1 for line in lines) == 4  # these and the dotted line
    assert "no head matches" in dial_panels(DIAL[:1], SETS, NATURAL, OWN).axes[0].texts[0].get_text()


def test_shares_stand_at_the_kind_of_the_second_text():
    rows = [("identical", "none", 0.99), ("identical", "ablated", 0.3), ("shuffled", "none", 0.9)]
    table = pd.DataFrame(rows, columns=["pair", "edit", "share"]).assign(task="mrpc", seed=0)
    table = table.assign(low=table["share"] - 0.05, high=table["share"] + 0.05)
    axes = shares_by_edit(table, ["none", "ablated"]).axes[0]
    marks = [line.get_xydata().round(2).tolist() for line in axes.lines]
    assert marks == [[[-0.09, 0.99], [0.91, 0.9]], [[0.09, 0.3]]]
    assert "no head" in shares_by_edit(table[:0], []).axes[0].texts[0].get_text()


def test_every_run_has_a_mark_at_its_edit():
    table = pd.DataFrame({"edit": ["ablated", "removed"] * 2, "task": "mrpc", "fall": [0.1, 0.2, 0.15, 0.3]})
    table["seed"] = [0, 0, 1, 1]
    table = table.assign(fall_low=table["fall"] - 0.05, fall_high=table["fall"] + 0.05)
    axes = marks_by_edit(table, {"fall": "fall in AUC"}).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ablated", "removed"]
    first, second = (line.get_xydata().tolist() for line in axes.lines[:2])
    assert first == [[0.1, -0.2], [0.2, 0.8]]  # runs stand below one another
    assert second == [[0.15, 0.2], [0.3, 1.2]]
    assert marks_by_edit(table[:0], {"fall": ""}).axes[0].texts[0].get_text() == "no edit was made"


def test_ranks_by_two_metrics_stand_against_each_other():
    """Head 1-0 has an effect on the AUC, 1-1 has none."""
    rows = [("auc", 1, 0, 1, 0.5), ("auc", 1, 1, 2, -1), ("loss", 1, 0, 2, 0.5), ("loss", 1, 1, 1, -1)]
    effects = pd.DataFrame(rows, columns=["metric", "layer", "head", "rank", "low"]).assign(task="mrpc")
    axes = rank_panels(effects, ["mrpc"]).axes[0]
    assert [points.get_offsets().tolist() for points in axes.collections] == [[[2, 1]], [[1, 2]]]
    assert [text.get_text() for text in axes.texts] == ["1-0"]


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
