import time
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from analysis.errors import InputError
from analysis.significance import head_test, role_table, skewness_table

ROLES = ["local", "nsubj"]


@pytest.fixture
def scores() -> xr.DataArray:
    """Random scores of 12 sequences, 2 roles, 3 layers, 5 heads; nsubj is absent from a third of them."""
    values = np.random.default_rng(7).gamma(2, 2, size=(12, 2, 3, 5)).astype(np.float32)
    values[::3, 1] = np.nan
    return labelled(values, ROLES)


def labelled(values: np.ndarray, roles: list[str]) -> xr.DataArray:
    sizes = dict(zip(("layer", "head"), values.shape[2:], strict=True))
    coordinates = {"role": roles} | {name: range(size) for name, size in sizes.items()}
    return xr.DataArray(
        values, coordinates, ("sequence", "role", "layer", "head"), attrs={"arithmetic": "corrected"}
    )


def row(table, role="local", layer=0, head=0):
    chosen = table[(table["role"] == role) & (table["layer"] == layer) & (table["head"] == head)]
    return chosen.squeeze(axis=0)


def test_hand_worked_case():
    # Mean 5, deviations -2 -1 0 1 2: sum of squares 10, variance 10 / 4, t = 2 / sqrt(2.5 / 5) = sqrt(8).
    test = head_test(np.array([3.0, 4, 5, 6, 7]), 3.0)
    assert (test.n, test.mean) == (5, 5)
    assert test.sd == pytest.approx(np.sqrt(2.5))
    assert test.t == pytest.approx(np.sqrt(8))
    assert test.p == pytest.approx(stats.t(df=4).sf(np.sqrt(8)))


def test_published_arithmetic_divides_by_n():
    values = np.random.default_rng(1).normal(3.2, 1, size=(20, 4))
    corrected, published = (head_test(values, 3.0, arithmetic) for arithmetic in ("corrected", "published"))
    np.testing.assert_allclose(published.t, corrected.t * np.sqrt(20 / 19))
    np.testing.assert_allclose(published.sd, values.std(axis=0))
    np.testing.assert_allclose(corrected.sd, values.std(axis=0, ddof=1))
    np.testing.assert_allclose(published.p, stats.t(df=19).sf(published.t))


def test_equals_scipy_head_by_head(scores):
    test = head_test(scores.values, 3.0)
    for index in np.ndindex(2, 3, 5):
        column = scores.values[(slice(None), *index)].astype(float)
        column = column[~np.isnan(column)]
        expected = stats.ttest_1samp(column, 3.0, alternative="greater")
        assert test.n[index] == len(column) == (12, 8)[index[0]]
        assert test.mean[index] == pytest.approx(column.mean())
        assert test.t[index] == pytest.approx(expected.statistic)
        assert test.p[index] == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
@pytest.mark.parametrize(
    "column", [[4.0, 4, 4, 4], [3.0, 3, 3, 3], [0.1, 0.1, 0.1, 0.1], [5.0, *[np.nan] * 3]]
)
def test_constant_or_single_scores_are_untestable(column, arithmetic):
    test = head_test(np.array(column), 3.0, arithmetic)
    assert np.isnan(test.t)
    assert np.isnan(test.p)
    assert test.mean == pytest.approx(column[0])


def test_empty_column_is_untestable_and_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        test = head_test(np.full((4, 2), np.nan), 3.0)
    assert (test.n == 0).all()
    assert np.isnan([test.mean, test.sd, test.t, test.p]).all()


def test_one_missing_score_is_omitted():
    with_gap = head_test(np.array([3.0, 4, np.nan, 6, 8]), 3.0)
    assert with_gap == head_test(np.array([3.0, 4, 6, 8]), 3.0)
    assert with_gap.n == 4


def test_unknown_arithmetic_is_refused():
    with pytest.raises(InputError, match="'exact'.*corrected, published"):
        head_test(np.ones(3), 3.0, "exact")


def test_role_table_rows_stand_in_order(scores):
    table = role_table(scores)
    assert [*table.columns] == ["layer", "head", "role", "n", "mean", "sd", "t", "p", "assigned"]
    keys = [(role, layer, head) for role in ROLES for layer in range(3) for head in range(5)]
    assert [*zip(table["role"], table["layer"], table["head"], strict=True)] == keys
    assert str(table["assigned"].dtype) == "boolean"


def test_role_table_labels_each_head_by_test_and_mean(scores):
    table = role_table(scores.transpose("head", "role", "sequence", "layer"), tau=3.0, alpha=0.2)
    assert table["assigned"].any()
    assert not table["assigned"].all()
    for record in table.itertuples():
        column = scores.sel(role=record.role, layer=record.layer, head=record.head).dropna("sequence").values
        expected = stats.ttest_1samp(column.astype(float), 3.0, alternative="greater").pvalue
        assert record.p == pytest.approx(expected)
        assert record.assigned == (expected < 0.2 and column.mean() > 3.0)


def test_role_needs_a_mean_above_the_threshold(scores):
    # With alpha above one half a test alone would label heads whose mean is below the threshold.
    table = role_table(scores, tau=3.0, alpha=0.99)
    below = table[table["mean"] <= 3.0]
    assert (below["p"] < 0.99).any()
    assert not below["assigned"].any()


def test_role_table_takes_the_arithmetic_of_the_scores(scores):
    published = role_table(scores.assign_attrs(arithmetic="published"))
    corrected = role_table(scores)
    np.testing.assert_allclose(
        published["t"], corrected["t"] * np.sqrt(published["n"] / (published["n"] - 1))
    )
    del scores.attrs["arithmetic"]
    assert role_table(scores).equals(corrected)


def test_untestable_is_neither_true_nor_false(scores):
    scores[:, 0, 0, 0] = 9.0
    table = role_table(scores, tau=1.0)
    assert row(table)["assigned"] is pd.NA
    assert row(table, head=1)["assigned"]
    assert role_table(scores, tau=1.0, minimum=8).equals(table)
    few = role_table(scores, tau=1.0, minimum=9)
    nsubj = few["role"] == "nsubj"
    assert few.loc[nsubj, ["t", "p", "assigned"]].isna().all(axis=None)
    assert few.loc[nsubj, "mean"].notna().all()
    assert few.loc[~nsubj & (few["head"] > 0), "assigned"].notna().all()


@pytest.mark.parametrize(
    ("change", "message"), [({"alpha": 0.0}, "alpha"), ({"alpha": 1.0}, "alpha"), ({"minimum": 1}, "minimum")]
)
def test_impossible_parameters_are_refused(scores, change, message):
    with pytest.raises(InputError, match=message):
        role_table(scores, **change)


def test_other_dimensions_are_refused(scores):
    with pytest.raises(InputError, match="dimensions"):
        role_table(scores.mean("sequence"))
    with pytest.raises(InputError, match="dimensions"):
        skewness_table(scores.rename(head="unit"))
    with pytest.raises(InputError, match="'exact'"):
        role_table(scores.assign_attrs(arithmetic="exact"))


def test_role_table_of_the_whole_study_takes_under_a_second():
    values = np.random.default_rng(0).gamma(2, 2, size=(1000, 10, 12, 12)).astype(np.float32)
    values[::2, 3] = np.nan
    start = time.process_time()
    table = role_table(labelled(values, [f"role {number}" for number in range(10)]))
    assert time.process_time() - start < 1
    assert len(table) == 1440


def test_skewness_equals_scipy_head_by_head(scores):
    scores[0, 0, 0, 0] = np.nan
    table = skewness_table(scores)
    assert [*table.columns] == ["role", "layer", "head", "n", "skewness", "p"]
    for record in table.itertuples():
        column = scores.sel(role=record.role, layer=record.layer, head=record.head).dropna("sequence")
        column = column.values.astype(float)
        assert record.n == len(column)
        assert record.skewness == pytest.approx(stats.skew(column))
        assert record.p == pytest.approx(stats.skewtest(column).pvalue)


def test_skewness_is_untestable_for_few_or_constant_scores(scores):
    scores[:, 0, 0, 0] = 0.1
    scores[5:, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = skewness_table(scores)
    assert np.isnan(row(table)[["skewness", "p"]].astype(float)).all()
    few = table[table["role"] == "nsubj"]
    assert few["p"].isna().all()
    assert few["skewness"].notna().all()
