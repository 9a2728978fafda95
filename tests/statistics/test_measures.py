"""The arrays of a finding: measures of replicates, and values with known intervals."""

import numpy as np

from analysis.statistics.measures import drawn_measures, with_limits
from analysis.statistics.verdicts import judge


def test_replicates_of_each_unit():
    found = drawn_measures({"a": np.array([1.0, 2, 3]), "b": np.array([4.0, 5, 6])})
    assert found.dims == ("unit", "replicate")
    assert found.sel(unit="b").values.tolist() == [4, 5, 6]


def test_known_intervals_decide():
    measures, limits = with_limits(["a", "b"], iter([3, 2.5]), [2, 1.5], (4, 3.5))
    assert measures.sel(unit="b").values.tolist() == [2.5]
    assert limits.sel(unit="a", end="high") == 4
    verdict = judge(measures, ">", 1, limits=limits)
    assert (verdict.verdict, verdict.unit, verdict.low, verdict.high) == ("holds", "b", 1.5, 3.5)
