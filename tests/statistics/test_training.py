import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.statistics.training import trained_runs, trained_successfully, with_trained


@pytest.mark.parametrize(
    ("metric", "score", "n", "majority", "trained"),
    [
        ("accuracy", 0.59, 100, 0.5, True),  # P(X >= 59) = .044
        ("accuracy", 0.58, 100, 0.5, False),  # P(X >= 58) = .067
        ("accuracy", 0.5776, 277, 0.5271, False),
        ("accuracy", 1.0, 20, 1.0, False),
        ("spearman", 0.17, 100, 0.5, True),  # one-sided p = .045
        ("spearman", 0.16, 100, 0.5, False),  # .056
        ("spearman", 1.0, 100, 0.5, True),
    ],
)
def test_a_run_trained_successfully_if_it_is_above_chance(metric, score, n, majority, trained):
    assert trained_successfully(metric, score, n, majority) == trained


def test_the_rule_is_that_of_scipy():
    rng = np.random.default_rng(0)
    for first, second in rng.normal(size=(40, 2, 30)):
        result = stats.spearmanr(first, second + 0.3 * first, alternative="greater")
        assert trained_successfully("spearman", result.statistic, 30) == (result.pvalue < 0.05)


def test_accuracy_decides_where_there_is_one():
    """The constant answer of the training data may be worse than that of the dev data."""
    scores = {(0, "matthews"): 0.3, (0, "accuracy"): 0.69, (1, "matthews"): 0.1, (1, "accuracy"): 0.8}
    rows = pd.DataFrame([("cola", *run, score) for run, score in scores.items()])
    rows = rows.set_axis(["task", "seed", "metric", "finetuned"], axis=1).assign(constant=0.31)
    labels = [1] * 138 + [0] * 62
    assert trained_runs(with_trained(rows, labels)) == {("cola", 1)}
    numbers = [("sts-b", 0, "pearson", 0.9), ("sts-b", 0, "spearman", 0.05)]
    numbers = pd.DataFrame(numbers, columns=rows.columns[:4])
    assert trained_runs(with_trained(numbers, np.linspace(0, 5, 100).tolist())) == set()
    assert trained_runs(pd.DataFrame()) == set()
