import numpy as np
import pytest
from scipy import stats

from analysis.statistics.bootstrap import bca_interval


def test_bca_interval_equals_scipy_column_by_column():
    values = np.random.default_rng(3).gamma(2, 1.6, size=(30, 4))
    low, high = bca_interval(values, alpha=0.1, resamples=99, seed=6)
    for column, *interval in zip(values.T, low, high, strict=True):
        plan = {"n_resamples": 99, "rng": 6, "confidence_level": 0.9}
        assert interval == pytest.approx([*stats.bootstrap((column,), np.mean, **plan).confidence_interval])


def test_what_varies_by_rounding_alone_has_no_interval():
    values = 2 + 4e-6 * np.random.default_rng(0).standard_normal((30, 1))
    assert np.isnan(bca_interval(values, resamples=99)).all()
    assert np.isfinite(bca_interval(2 + 1000 * (values - 2), resamples=99)).all()
