"""The figures of the synthesis draw their tables, name their axes, and say if there is nothing to show."""

import numpy as np
import pytest
from drawing import unnamed
from syntheses import TASKS, made_agreement, made_atlas, made_regression, made_sets

from analysis.synthesis import figures
from analysis.synthesis.measures import heads_with_role


def test_sets_and_random_sets():
    drawn = figures.sets_plot(made_sets())
    assert unnamed(drawn) == []
    loss = drawn.axes[0]
    assert len(loss.get_yticklabels()) == 9  # no set of [SEP] heads
    changes = [line.get_xdata()[0] for line in loss.lines if line.get_marker() in "oD"]
    assert changes == [0.5] * 18
    np.testing.assert_allclose([each.get_segments()[0][:, 0] for each in loss.collections], [[0.1, 0.4]] * 18)


def test_coefficients():
    drawn = figures.regression_plot(made_regression())
    assert unnamed(drawn) == []
    marks = [line for line in drawn.axes[0].lines if line.get_marker() in "os"]
    assert len(marks) == 11
    assert [line.get_markerfacecolor() for line in marks].count("white") == 10


def test_gates():
    atlas = made_atlas().query("seed == 0")
    drawn = figures.gates_map(atlas.assign(role=heads_with_role(atlas)))
    assert unnamed(drawn) == []
    assert [axes.get_title() for axes in drawn.axes] == [*TASKS]
    dots = [len(axes.lines[0].get_xdata()) for axes in drawn.axes]
    assert sum(dots) == heads_with_role(atlas).sum()


def test_agreement_and_survival():
    drawn = figures.agreement_map(made_agreement())
    assert len(drawn.axes[0].texts) == 30
    assert drawn.axes[0].get_xlabel()
    survival = figures.survival_plot(made_agreement())
    assert unnamed(survival) == []
    assert sum(len(line.get_xdata()) == 10 for line in survival.axes[0].lines) == 2


@pytest.mark.parametrize(
    "draw", [figures.sets_plot, figures.agreement_map, figures.survival_plot, figures.regression_plot]
)
def test_nothing_to_show_is_said(draw):
    table = {figures.sets_plot: made_sets(), figures.regression_plot: made_regression()}.get(
        draw, made_agreement()
    )
    drawn = draw(table.iloc[:0])
    assert len(drawn.axes[0].texts) == 1
