import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.papers.pande2021.simulation import REFERENCE, compared, size_table


def test_reference_is_reproduced_within_its_error():
    """The rows that are cheap; the notebook compares all of them. One in twenty may miss by chance."""
    found = compared(size_table(sizes=(20, 100), effects=(0.0,), runs=10_000, families=6))
    assert len(found) == 16
    assert found["agrees"].sum() >= 14
    assert (found["difference"].abs() < 2 * found["allowed"]).all()


def test_comparison_takes_both_errors_and_the_rounding():
    columns = ["shape", "n", "effect", "rule", "rate", "low", "high"]
    ours = pd.DataFrame([["symmetric", 20, 0.0, "t", 0.060, 0.056, 0.064]], columns=columns)
    row = compared(pd.concat([ours, ours.assign(effect=0.5), ours.assign(n=50)])).squeeze(axis=0)
    theirs = stats.binomtest(2000, 40_000).proportion_ci(method="exact")
    expected = np.hypot(0.004, (theirs.high - theirs.low) / 2) + 0.0005
    assert row["allowed"] == pytest.approx(expected)
    assert row["difference"] == pytest.approx(0.010)
    assert not row["agrees"]
    assert compared(ours.assign(rate=0.054))["agrees"].item()
    assert len(REFERENCE) == 20
