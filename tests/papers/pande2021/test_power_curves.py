import numpy as np
import pandas as pd
import pytest
from drawing import unnamed
from matplotlib.container import ErrorbarContainer
from statsmodels.stats.power import TTestPower
from studies import error_of

from analysis.papers.pande2021.curves import RULES, power_curves, size_curves
from analysis.papers.pande2021.simulation import DIVISORS, SHAPES, size_table

SIZES, EFFECTS = (20, 40), (0.0, 0.2, 0.5)


@pytest.fixture(scope="module")
def rates() -> pd.DataFrame:
    return size_table(SIZES, EFFECTS, runs=200, families=3, resamples=99)


def bars(axes) -> dict[str, ErrorbarContainer]:
    """The rates with intervals on one panel, by the name of the rule."""
    return {bar.get_label(): bar for bar in axes.containers if isinstance(bar, ErrorbarContainer)}


def drawn(bar: ErrorbarContainer) -> np.ndarray:
    """Heights of the marks, and the lower and upper ends of their intervals."""
    line, _, (segments,) = bar.lines
    ends = np.array([segment[:, 1] for segment in segments.get_segments()])
    return np.array([line.get_ydata(), ends[:, 0], ends[:, 1]], dtype=float)


def expected(rates: pd.DataFrame, shape: str, effect: float, rule: str) -> np.ndarray:
    chosen = (rates["shape"] == shape) & (rates["effect"] == effect) & (rates["rule"] == rule)
    return rates[chosen][["rate", "low", "high"]].T.to_numpy()


@pytest.mark.parametrize(
    ("row", "rules", "suffix"),
    [
        (0, ["t", "t_published", "bootstrap_t", "audited", "controlled"], ""),
        (1, ["bootstrap_t", "t_by", "audited", "controlled"], "_family"),
    ],
)
def test_size_shows_every_rate_with_its_interval(rates, row, rules, suffix):
    panels = np.reshape(size_curves(rates, alpha=0.05).axes, (2, len(SHAPES)))
    for shape, axes in zip(SHAPES, panels[row], strict=True):
        found = bars(axes)
        assert [*found] == [RULES[rule].name for rule in rules]
        for rule in rules:
            wanted = expected(rates, shape, 0.0, rule + suffix)
            np.testing.assert_allclose(drawn(found[RULES[rule].name]), wanted, atol=1e-12)


def test_size_marks_the_level_and_names_the_shapes(rates):
    figure = size_curves(rates, alpha=0.1)
    assert [axes.get_title() for axes in figure.axes[:4]] == [
        "symmetric scores", "right-skewed scores", "left-skewed scores", "zero-inflated scores"
    ]  # fmt: skip
    for axes in figure.axes:
        assert [0.1, 0.1] in [list(line.get_ydata()) for line in axes.lines]
    assert "nominal 0.1" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_power_shows_every_rate_with_its_interval(rates):
    panels = np.reshape(power_curves(rates, alpha=0.05).axes, (2, len(SHAPES)))
    for (row, column), axes in np.ndenumerate(panels):
        for rule in ("t", "bootstrap_t", "audited", "controlled"):
            wanted = expected(rates, [*SHAPES][column], EFFECTS[row + 1], rule)
            np.testing.assert_allclose(drawn(bars(axes)[RULES[rule].name]), wanted, atol=1e-12)
        assert axes.get_ylabel() == ("" if column else f"effect {EFFECTS[row + 1]:g} sd")


@pytest.mark.parametrize("correction", ["no correction", "BY, one head of 144"])
def test_power_lines_are_those_of_the_t_test(rates, correction):
    figure = power_curves(rates, alpha=0.05)
    for axes, effect in ((figure.axes[0], 0.2), (figure.axes[len(SHAPES)], 0.5)):
        lines = [line for line in axes.lines if len(line.get_xdata()) > len(SIZES)]
        powers = [
            TTestPower().power(
                effect, lines[0].get_xdata(), 0.05 / DIVISORS[correction], alternative="larger"
            )
        ]
        assert any(np.allclose(line.get_ydata(), powers) for line in lines)


def test_n_is_a_logarithmic_axis_with_the_simulated_sizes(rates):
    for figure in (size_curves(rates, 0.05), power_curves(rates, 0.05)):
        assert unnamed(figure) == []
        for axes in figure.axes:
            assert axes.get_xscale() == "log"
            assert axes.get_xticks().tolist() == [*SIZES]
        assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == ["20", "40"]


def test_rules_differ_without_colour():
    """In a legend of grey marks every rule still has its own mark and, where lines are drawn, dash."""
    marks = [(rule.marks["marker"], rule.marks["linestyle"]) for rule in RULES.values()]
    assert len({mark for mark, _ in marks}) == len(marks)


def test_rates_without_the_needed_effects_are_refused(rates):
    assert "no effect of 0" in error_of(size_curves, rates[rates["effect"] > 0], 0.05)
    assert "no effect above 0" in error_of(power_curves, rates[rates["effect"] == 0], 0.05)
