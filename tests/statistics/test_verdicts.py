import numpy as np
import pytest
import xarray as xr

from analysis.statistics.verdicts import judge


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
    found = judge(measures(all=around(middle)), relation, 0.5)
    assert found.verdict == verdict
    assert found.estimate == middle
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(around(middle)[1:], [0.025, 0.975])))


def test_interval_that_only_touches_the_bound():
    constant = measures(all=[0.5] * 100)
    assert judge(constant, ">=", 0.5).verdict == judge(constant, "<=", 0.5).verdict == "holds"
    assert judge(constant, ">", 0.5).verdict == "does not hold"


@pytest.mark.parametrize(
    ("relation", "worst", "limits"), [(">=", 0.4, (0.37, 0.41)), ("<=", 0.7, (0.68, 0.9))]
)
def test_the_least_favourable_unit_counts(relation, worst, limits):
    """The low limit may come from another unit than the high one."""
    wide, narrow = [0.6, *[0.37] * 9, *[0.9] * 90], [0.4, *[0.38] * 50, *[0.41] * 49]
    high, low = [0.7, *[0.68] * 50, *[0.72] * 49], [0.5, *[0.1] * 50, *[0.9] * 49]
    units = measures(a=wide, b=narrow) if relation == ">=" else measures(a=high, b=low)
    found = judge(units, relation, 0.5)
    assert found.estimate == worst
    assert (found.low, found.high) == limits


def test_p_is_the_largest_of_the_units():
    units = measures(a=[1, *[1] * 99], b=[1, *[-1] * 4, *[1] * 95], c=[1, *[-1] * 2, *[1] * 97])
    assert judge(units, ">", 0).p == pytest.approx(5 / 100)
    assert judge(measures(a=[1, *[1] * 99]), ">", 0).p == pytest.approx(1 / 100)


def test_replicates_without_a_measure_speak_against_the_claim():
    few, many = ([0.9, *[np.nan] * lacking, *[0.9] * (100 - lacking)] for lacking in (2, 20))
    found = judge(measures(all=few), ">=", 0.5, "sequences")
    assert (found.verdict, found.p) == ("holds", pytest.approx(3 / 101))
    assert found.method == "95% percentile interval, 100 replicates, sequences"
    found = judge(measures(all=many), ">=", 0.5, "sequences")
    assert (found.verdict, found.low, found.high) == ("undecided", 0, 0.9)
    assert found.method.endswith("; 20% of the replicates have nothing to measure and count as 0")


def test_method_names_the_worst_unit_and_an_estimate_outside():
    found = judge(measures(mrpc=around(0.6), qqp=around(0.55)), ">=", 0.5, "sequences, 2 seeds")
    expected = "95% percentile interval, 199 replicates, sequences, 2 seeds; worst of 2: qqp"
    assert found.method == expected
    found = judge(measures(all=[0.9, *around(0.6)[1:]]), ">=", 0.5, "sequences")
    assert found.method.endswith("; the estimate lies outside")


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.6, "holds"), (0.4, "does not hold"), (np.nan, "does not hold")]
)
def test_the_sample_alone_is_judged_by_its_estimate(value, verdict):
    found = judge(measures(a=[0.7], b=[value]), ">=", 0.5)
    assert found.verdict == verdict
    assert np.isnan([found.low, found.high, found.p]).all()
    assert found.method == "estimate of the sample"


def test_nothing_to_measure_is_untestable():
    found = judge(None, ">=", 0.5)
    assert found.verdict == "untestable"
    assert np.isnan([found.estimate, found.low, found.high, found.p]).all()


def test_many_units_refute_a_claim_only_at_a_corrected_level():
    """One of five units whose 95 % interval lies on the wrong side, but not that at .05 / 5."""
    good = around(0.9)
    bad = [0.45, *np.linspace(0.4, 0.498, 196), 0.52, 0.52, 0.52]
    assert judge(measures(a=bad), ">=", 0.5).verdict == "does not hold"
    five = judge(measures(a=bad, b=good, c=good, d=good, e=good), ">=", 0.5)
    assert five.verdict == "undecided"
    assert five.high < 0.5  # the interval shown is that of 95 %
    worse = [0.45, *np.linspace(0.4, 0.499, 199)]
    assert judge(measures(a=worse, b=good, c=good, d=good, e=good), ">=", 0.5).verdict == "does not hold"
    high = judge(measures(a=[1 - value for value in bad], b=[0.1] * 200), "<=", 0.5)
    assert high.verdict == "undecided"
    assert judge(measures(a=good, b=good, c=good), ">=", 0.5).verdict == "holds"


def test_the_estimate_is_the_median_over_runs():
    values = measures(a=[0.6, 0.9, 0.7, *[0.65] * 99], b=[0.2, 0.95, 0.66, *[0.62] * 99])
    found = judge(values, ">=", 0.5, "labels", runs=3)
    assert (found.estimate, found.unit) == (0.66, "b")
    assert (found.lowest_run, found.highest_run) == (0.2, 0.95)
    assert (found.low, found.high, found.verdict) == (0.62, 0.62, "holds")
    assert found.method.startswith("95% percentile interval, 99 replicates, labels; worst of 2: b")
    alone = judge(values.isel(replicate=slice(3)), ">=", 0.5, runs=3)
    assert (alone.estimate, alone.verdict) == (0.66, "holds")
    assert np.isnan(judge(values, ">=", 0.5).lowest_run)
