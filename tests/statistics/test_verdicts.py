import numpy as np
import pytest
import xarray as xr

from analysis.statistics.verdicts import judged


def measures(**units: list[float]) -> xr.DataArray:
    return xr.DataArray([*units.values()], {"unit": [*units]}, ("unit", "replicate"))


def around(middle: float, spread: float = 0.01, replicates: int = 199) -> list[float]:
    """A sample's measure and replicates at even distances around it."""
    return [middle, *np.linspace(middle - spread, middle + spread, replicates)]


@pytest.mark.parametrize(
    ("relation", "middle", "verdict"),
    [
        (">=", 0.6, "holds"),
        (">=", 0.4, "does not hold"),
        (">=", 0.501, "undecided"),
        (">", 0.499, "undecided"),
        ("<=", 0.4, "holds"),
        ("<=", 0.6, "does not hold"),
        ("<=", 0.499, "undecided"),
    ],
)
def test_verdict_is_that_of_the_whole_interval(relation, middle, verdict):
    found = judged(measures(all=around(middle)), relation, 0.5)
    assert found.verdict == verdict
    assert found.estimate == middle
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(around(middle)[1:], [0.025, 0.975])))


def test_interval_that_only_touches_the_bound():
    constant = measures(all=[0.5] * 100)
    assert judged(constant, ">=", 0.5).verdict == judged(constant, "<=", 0.5).verdict == "holds"
    assert judged(constant, ">", 0.5).verdict == "does not hold"


@pytest.mark.parametrize(
    ("relation", "worst", "limits"), [(">=", 0.4, (0.37, 0.41)), ("<=", 0.7, (0.68, 0.9))]
)
def test_the_least_favourable_unit_counts(relation, worst, limits):
    """The low limit may come from another unit than the high one."""
    wide, narrow = [0.6, *[0.37] * 9, *[0.9] * 90], [0.4, *[0.38] * 50, *[0.41] * 49]
    high, low = [0.7, *[0.68] * 50, *[0.72] * 49], [0.5, *[0.1] * 50, *[0.9] * 49]
    units = measures(a=wide, b=narrow) if relation == ">=" else measures(a=high, b=low)
    found = judged(units, relation, 0.5)
    assert found.estimate == worst
    assert (found.low, found.high) == limits


def test_p_is_the_largest_of_the_units():
    units = measures(a=[1, *[1] * 99], b=[1, *[-1] * 4, *[1] * 95], c=[1, *[-1] * 2, *[1] * 97])
    assert judged(units, ">", 0).p == pytest.approx(5 / 100)
    assert judged(measures(a=[1, *[1] * 99]), ">", 0).p == pytest.approx(1 / 100)


def test_replicates_without_a_measure_speak_against_the_claim():
    few, many = ([0.9, *[np.nan] * lacking, *[0.9] * (100 - lacking)] for lacking in (2, 20))
    found = judged(measures(all=few), ">=", 0.5, "sequences")
    assert (found.verdict, found.p) == ("holds", pytest.approx(3 / 101))
    assert found.method == "95% percentile interval, 100 replicates, sequences"
    found = judged(measures(all=many), ">=", 0.5, "sequences")
    assert (found.verdict, found.low, found.high) == ("undecided", 0, 0.9)
    assert found.method.endswith("; 20% of the replicates have nothing to measure and count as 0")


def test_method_names_the_worst_unit_and_an_estimate_outside():
    found = judged(measures(mrpc=around(0.6), qqp=around(0.55)), ">=", 0.5, "sequences, 2 seeds")
    expected = "95% percentile interval, 199 replicates, sequences, 2 seeds; worst of 2: qqp"
    assert found.method == expected
    found = judged(measures(all=[0.9, *around(0.6)[1:]]), ">=", 0.5, "sequences")
    assert found.method.endswith("; the estimate lies outside")


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.6, "holds"), (0.4, "does not hold"), (np.nan, "does not hold")]
)
def test_the_sample_alone_is_judged_by_its_estimate(value, verdict):
    found = judged(measures(a=[0.7], b=[value]), ">=", 0.5)
    assert found.verdict == verdict
    assert np.isnan([found.low, found.high, found.p]).all()
    assert found.method == "estimate of the sample"


def test_nothing_to_measure_is_untestable():
    found = judged(None, ">=", 0.5)
    assert found.verdict == "untestable"
    assert np.isnan([found.estimate, found.low, found.high, found.p]).all()
