import numpy as np
import pytest
import xarray as xr
from scipy import stats
from sklearn.metrics import roc_auc_score

from analysis.statistics import effects
from analysis.statistics.intervals import crossed_interval

RNG = np.random.default_rng(0)
LABELS = RNG.permutation(np.repeat([0, 1], [70, 50]))


def odds(signal: float, shift: float = 0.0, noise: int = 1) -> np.ndarray:
    return signal * LABELS + shift + np.random.default_rng(noise).normal(size=len(LABELS))


def test_auc_parts_have_the_mean_and_the_error_of_the_auc():
    scores = np.stack([odds(1.0), np.round(odds(0.5)), np.zeros(len(LABELS))])
    parts = effects.auc_parts(scores, LABELS == 1)
    expected = [roc_auc_score(LABELS, row) for row in scores]
    np.testing.assert_allclose(parts.mean(axis=-1), expected)
    above, below = scores[0, LABELS == 1], scores[0, LABELS == 0]
    wins = above[:, None] > below
    variance = wins.mean(axis=1).var() / len(above) + wins.mean(axis=0).var() / len(below)
    assert parts[0].std() / np.sqrt(len(LABELS)) == pytest.approx(np.sqrt(variance))
    assert np.isnan(effects.auc_parts(scores, np.ones(len(LABELS), bool))).all()


def test_differences_of_aucs_near_1_are_covered():
    rng, positive = np.random.default_rng(0), np.arange(120) < 60
    distance = np.sqrt(2) * stats.norm.ppf(0.96)
    fall, covered = 0.96 - stats.norm.cdf(distance / np.sqrt(2.5)), []
    for _ in range(600):
        whole = rng.normal(distance * positive)
        parts = effects.auc_parts(np.array([whole, whole + rng.normal(0, 0.5, 120)]), positive)
        _, low, high = crossed_interval((parts[0] - parts[1])[None])
        covered.append(low <= fall <= high)
    assert 0.92 < np.mean(covered) < 0.98


def test_match_logit_is_the_log_odds_against_the_rest():
    logits = RNG.normal(size=(2, 5, 3))
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    odds = shares[..., 2] / (1 - shares[..., 2])
    np.testing.assert_allclose(effects.match_logit(logits, 2), np.log(odds))


@pytest.mark.parametrize("match", [0, 1])
def test_a_shift_raises_the_loss_and_lost_information_lowers_the_auc(match: int):
    rows = [odds(2.0), odds(2.0, shift=3.0), odds(0.3)]
    values = np.stack([np.stack([np.zeros(len(LABELS)), row], axis=-1) for row in rows])
    names = {"intervention": ["none", "shifted", "blinded"]}
    logits = xr.DataArray(values, names, ("intervention", "sequence", "class"))
    table = effects.effect_table(logits, LABELS, match).set_index(["metric", "intervention"])
    assert table.loc[("auc", "shifted"), "effect"] == pytest.approx(0, abs=1e-12)
    assert table.loc[("loss", "shifted"), "low"] > 0.5
    assert abs(table.loc[("refitted loss", "shifted"), "effect"]) < 0.01
    assert table.loc[("auc", "blinded"), "low"] > 0
    assert table.loc[("refitted loss", "blinded"), "low"] > 0
    assert table.xs("auc")["rank"].tolist() == [2, 1]
    assert table.xs("loss")["rank"].tolist() == [1, 2]
    assert table.loc[("auc", "shifted"), "shift"] == pytest.approx(3 if match else -3)
    assert table.loc[("auc", "shifted"), "baseline"] == pytest.approx(roc_auc_score(LABELS, rows[0]))


@pytest.mark.parametrize("lead", [0.0, 1.0])
def test_choosing_on_the_other_half_does_not_flatter(lead: float):
    """Two members among 40 variants of pure noise; the largest of the others, read where it was chosen, would win."""
    members, means = np.arange(40) < 2, []
    half = effects.stratified_halves(LABELS)
    assert abs(half[LABELS == 1].sum() - 25) <= 1
    for seed in range(20):
        values = np.random.default_rng(seed).normal(size=(3, 40, len(LABELS)))
        values[:, members] += lead
        result = effects.lead_of_weakest(lambda part, values=values: values[..., part], half, members)
        assert result.shape == (3, len(LABELS))
        means.append(result.mean())
    assert np.mean(means) == pytest.approx(lead, abs=0.1)
