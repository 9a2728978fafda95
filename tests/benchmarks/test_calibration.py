"""Simulated heads whose true mean is known: size and power of the rules for labels."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from headtables import score_array
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from studies import error_of

from analysis.statistics.significance import Rule, adjust, role_table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import calibration  # noqa: E402
from benchmarks.calibration import HEADS, SHAPES, family_size, t_test_size  # noqa: E402

FAST, STUDY = Rule(minimum=20, resamples=199), Rule(minimum=20)


def rate(table: pd.DataFrame, rule: str, effect: float = 0.0) -> float:
    return table[(table["rule"] == rule) & (table["effect"] == effect)]["rate"].item()


@pytest.mark.parametrize("shape", SHAPES)
def test_mean_is_zero_and_sd_one(shape):
    """Five standard errors of a large sample; the sd's comes from the sample's own fourth moment."""
    scores = SHAPES[shape](np.random.default_rng(3), (200_000,))
    assert abs(scores.mean()) < 5 / np.sqrt(len(scores))
    squares = scores**2
    assert abs(squares.mean() - 1) < 5 * squares.std() / np.sqrt(len(scores))


@pytest.mark.parametrize("n", [5, 20, 100])
def test_normal_scores_have_the_nominal_size(n):
    """With the sample standard deviation; without, the size is that of a t larger by sqrt(n / (n - 1))."""
    table = t_test_size("symmetric", n, 20_000, Rule(seed=2))
    critical = stats.t(n - 1).isf(0.05)
    inflated = stats.t(n - 1).sf(critical * np.sqrt((n - 1) / n))
    for rule, size in (("t", 0.05), ("t_published", inflated)):
        assert abs(rate(table, rule) - size) < 4 * np.sqrt(size * (1 - size) / 20_000)


def test_the_rate_is_that_of_the_rejections_counted_one_by_one():
    table = t_test_size("zero_inflated", 8, 200, Rule(seed=9), effects=(0.5,))
    scores = SHAPES["zero_inflated"](calibration._generator(9, "zero_inflated", 8, stream=0), (8, 200)) + 0.5
    varied = [column for column in scores.T if len(set(column)) > 1]
    assert len(varied) < 200  # some samples hold the lowest score only, and cannot be tested
    p = np.array([stats.ttest_1samp(column, 0, alternative="greater").pvalue for column in varied])
    assert rate(table, "t", 0.5) == (p < 0.05).sum() / 200


def test_labels_are_those_of_the_role_table():
    scores = SHAPES["left_skewed"](np.random.default_rng(11), (25, HEADS))
    effects, rule = (0.0, 0.5), Rule(tau=0.0, minimum=20, resamples=199, seed=3)
    labels = calibration.family_labels(scores, effects, rule)
    shifted = np.stack([scores + effect for effect in effects], axis=1).reshape(25, 2, 12, 12)
    table = role_table(score_array(shifted, effects), rule)
    for effect, (bound, adjusted, corrected) in zip(effects, labels, strict=True):
        rows = table[table["role"] == effect]
        np.testing.assert_array_equal(corrected, rows["assigned_corrected"])
        np.testing.assert_array_equal(adjusted, adjust(rows["p"].to_numpy(), "fdr_by") < 0.05)
        np.testing.assert_array_equal(bound, rows["lower_bootstrap_t"] > 0)
    assert labels[0, 2].sum() < labels[1, 2].sum()


def test_size_and_power_of_the_controlled_label():
    symmetric = family_size("symmetric", 40, 4, STUDY, (0.0, 0.5, 1.0), controlled=True)
    assert rate(symmetric, "controlled") < 0.01
    assert rate(symmetric, "controlled", 0.5) < rate(symmetric, "controlled", 1.0)
    assert rate(symmetric, "controlled", 1.0) > 0.9
    assert "n is 20, families 1: " in error_of(calibration.size_table, [20], [0.0], 1, 1, STUDY)


def test_the_least_number_of_sequences_keeps_false_labels_of_families_rare():
    """Left-skewed scores: a third of the families or more err at n = 20, about a tenth at the study's least n."""
    few, enough = (family_size("left_skewed", n, 20, FAST).set_index("rule")["rate"] for n in (20, 100))
    assert few["corrected_family"] > 0.2
    assert enough["t_by_family"] > 0.4
    assert enough["corrected_family"] < 0.2


def test_a_head_with_rare_drops_gets_a_false_label_where_the_sample_holds_no_drop():
    """About .95 ** 100 of the heads at n = 100, and so more than half of the families of 144."""
    rates = family_size("rare_drops", 100, 40, FAST).set_index("rule")["rate"]
    assert 0.003 < rates["corrected"] < 0.01
    assert 0.35 < rates["corrected_family"] < 0.8


# Of an earlier simulation by other code.
REFERENCE = pd.read_csv(Path(__file__).with_name("reference_rates.csv"))


def test_reference_rates_are_reproduced_within_their_error():
    """The rows that are cheap. The joint Monte Carlo error covers 19 of 20 rates, and the reference is rounded."""
    ours = calibration.size_table((20, 100), (0.0,), 10_000, 6, STUDY)
    both = REFERENCE.merge(ours[["shape", "n", "rule", "rate", "low", "high"]])
    counts = both["reference"] * both["reference_runs"]
    low, high = proportion_confint(counts, both["reference_runs"], method="beta")
    allowed = np.hypot((both["high"] - both["low"]) / 2, (high - low) / 2) + 0.0005
    difference = (both["rate"] - both["reference"]).abs()
    assert len(both) == 16
    assert (difference <= allowed).sum() >= 14
    assert (difference < 2 * allowed).all()


def test_the_committed_table_has_every_shape_and_size():
    table = pd.read_csv(calibration.RESULTS / "calibration.csv")
    assert table[["shape", "n"]].to_numpy().tolist() == [[s, n] for s in SHAPES for n in calibration.SIZES]
    assert [*table.columns] == ["shape", "n", *calibration.SHOWN]
