from functools import partial

import numpy as np
import pandas as pd
import pytest
from headtables import heads_by
from scipy import stats

from analysis.synthesis.agreement import POOLED, correlation, importance_agreement, survival_agreement

LAYERS, HEADS = 3, 5


@pytest.fixture
def pair() -> np.ndarray:
    rng = np.random.default_rng(0)
    first = rng.integers(6, size=30)
    return np.stack([first, first + rng.integers(5, size=30)]).astype(float)


def test_rank_correlations_are_those_of_scipy(pair: np.ndarray):
    stacked = np.stack([pair, pair[:, ::-1]], axis=1).reshape(2, 2, 3, 10)
    expected = stats.spearmanr(*pair).statistic
    np.testing.assert_allclose(correlation("spearman", *stacked), [expected] * 2)
    assert np.isnan(correlation("spearman", stacked[0, 0], np.ones((3, 10))))


def test_within_layers_ignores_what_layers_share(pair: np.ndarray):
    first, second = pair.reshape(2, 3, 10)
    shift, within_layers = np.array([[0], [100], [50]]), partial(correlation, "spearman within layers")
    assert within_layers(first + shift, second) == pytest.approx(within_layers(first, second - shift))
    ranks = [np.concatenate([stats.rankdata(layer) for layer in item]) for item in (first, second)]
    assert within_layers(first, second) == pytest.approx(stats.pearsonr(*ranks).statistic)


def heads(noise: float, tasks: int = 3) -> pd.DataFrame:
    table = heads_by(LAYERS, HEADS, task=[f"task {number}" for number in range(tasks)], seed=[0, 1])
    rng = np.random.default_rng(0)
    first = rng.normal(size=len(table))
    second = first + noise * rng.normal(size=len(table))
    return table.assign(first=first, second=second, third=np.nan)


NAMES = {"first": "ablation", "second": "importance", "third": "absent"}


def test_importance_agreement_is_the_mean_over_runs():
    table = heads(1.0)
    table.loc[0, "second"] = np.nan  # one run lacks a head
    result = importance_agreement(table, NAMES)
    assert set(result["second"]) == {"importance"}
    assert result["heads"].eq(LAYERS * HEADS).all()
    by_task = [
        np.mean([stats.spearmanr(run["first"], run["second"]).statistic
                 for _, run in task.groupby("seed") if run["second"].notna().all()])
        for _, task in table.groupby("task")
    ]  # fmt: skip
    rows = result[result["statistic"] == "spearman"].set_index("task")
    assert rows.loc[["task 0", "task 1", "task 2"], "value"].tolist() == pytest.approx(by_task)
    assert rows["runs"].tolist() == [1, 2, 2, 5]
    pooled, half = rows.loc[POOLED], stats.t.ppf(0.975, 2) * stats.sem(by_task)
    assert np.mean(by_task) + half > 1  # and is cut
    ends = [np.mean(by_task), np.mean(by_task) - half, 1]
    assert pooled[["value", "low", "high"]].tolist() == pytest.approx(ends)
    assert importance_agreement(table[table["task"] == "task 1"], NAMES)["low"].isna().all()


def test_survival_over_tasks():
    survival = pd.DataFrame({"task": ["mrpc", "qqp", "qqp"], "state": ["finetuned", "finetuned", "pretrained"],
                             "role": "local", "map": "attribution", "heads": 72, "kappa": [0.4, 0.6, 0.9],
                             "low": [0.3, 0.5, 0.8], "high": [0.5, 0.7, 1.0]})  # fmt: skip
    result = survival_agreement(survival, "finetuned").set_index("task")
    assert result.loc["mrpc", "value"] == 0.4
    pooled = result.loc[POOLED]
    assert pooled["value"] == pytest.approx(0.5)
    assert pooled["high"] - pooled["low"] == pytest.approx(0.2 / np.sqrt(2))
    assert pooled["heads"] == 144
