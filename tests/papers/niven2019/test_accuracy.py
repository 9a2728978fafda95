"""Accuracy, reliance and the claims, against counts by hand on made-up answers."""

import numpy as np
import pytest
import xarray as xr

from analysis.papers.niven2019.accuracy import (
    accuracy_table,
    difference_draws,
    difference_table,
    drawn_means,
    evidence,
    limits,
    reliance_table,
    rightness,
    summary_table,
)
from analysis.papers.niven2019.arguments import Argument, load_arguments
from analysis.papers.niven2019.cues import follows_cue
from analysis.papers.niven2019.negation import adversarial

TEST = load_arguments("bundled", "test", 40, 0, 0.75, 0.5)
DOUBLED = adversarial(TEST)


def made(runs: list[tuple[str, str, str, int, np.ndarray]], learnt: float = 0.9) -> xr.Dataset:
    """Answers of runs: model, setup, trained_on, seed and the warrant that is taken at each point."""
    logits = np.stack([np.eye(2)[taken] for *_, taken in runs]).astype(np.float32)
    names = ("model", "setup", "trained_on", "seed")
    return xr.Dataset(
        {
            "logits": (("run", "point", "warrant"), logits),
            "train_accuracy": ("run", np.full(len(runs), learnt)),
            "fitted": ("run", np.full(len(runs), learnt >= 0.9)),
        },
        {
            **{name: ("run", [run[place] for run in runs]) for place, name in enumerate(names)},
            "point": [each.id for each in DOUBLED],
            "half": ("point", ["original"] * 40 + ["adversarial"] * 40),
            "label": ("point", [each.label for each in DOUBLED]),
        },
    )


def taking(rule) -> np.ndarray:
    return np.array([rule(each) for each in DOUBLED])


def with_not(each: Argument) -> int:
    """The warrant with "not", the first where neither or both have it."""
    sign = follows_cue([each])[0]
    return each.label if sign > 0 else 1 - each.label if sign < 0 else 0


RIGHT, FOLLOWER = taking(lambda each: each.label), taking(with_not)
ANSWERS = made(
    [
        ("encoder", "full", "original", 0, RIGHT),
        ("encoder", "full", "original", 1, FOLLOWER),
        ("encoder", "W", "original", 0, FOLLOWER),
        ("encoder", "W", "original", 1, FOLLOWER),
        ("bag of vectors", "full", "original", 0, FOLLOWER),
        ("encoder", "full", "adversarial", 0, FOLLOWER),
    ]
)


def test_accuracy_of_a_run_on_every_test_set():
    table = accuracy_table(ANSWERS).set_index(["model", "setup", "trained_on", "seed", "tested_on", "half"])
    own = table.loc[("encoder", "W", "original", 0), "accuracy"].to_dict()
    share = np.mean([each.label == with_not(each) for each in TEST])
    assert own == {
        ("original", "all"): pytest.approx(share),
        ("adversarial", "all"): 0.5,
        ("adversarial", "original"): pytest.approx(share),
        ("adversarial", "adversarial"): pytest.approx(1 - share),
    }
    assert (table.loc[("encoder", "full", "original", 0), "accuracy"] == 1).all()
    assert not table["degenerate"].any()
    assert accuracy_table(made([("a", "W", "original", 0, RIGHT)], learnt=0.79))["degenerate"].all()


def test_equal_logits_count_half():
    answers = made([("encoder", "W", "original", 0, RIGHT)])
    answers["logits"][:] = 1.0
    assert (accuracy_table(answers)["accuracy"] == 0.5).all()


def test_rightness():
    logits = np.array([[[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 3.0]]])
    np.testing.assert_array_equal(rightness(logits, np.array([1, 1, 0, 0])), [[1, 0, 0.5, 0]])


def test_evidence_is_two_runs_that_fit():
    answers = made(
        [("encoder", setup, "original", seed, RIGHT) for setup in ("full", "W") for seed in (0, 1, 2)]
    )
    answers["fitted"][:2] = False
    kept = evidence(answers)
    assert kept["setup"].values.tolist() == ["W"] * 3
    answers["fitted"][:] = False
    assert evidence(answers).sizes["run"] == 0


def test_summary_counts_runs_that_fit():
    answers = made([("encoder", "W", "original", 0, RIGHT), ("encoder", "W", "original", 1, FOLLOWER)])
    answers["fitted"][1] = False
    row = summary_table(answers, 99).iloc[0]
    assert (row["runs"], row["fitted"], row["fitted_mean"]) == (2, 1, 1)
    assert row["mean"] < 1


def test_draws_of_seeds_and_points():
    values = np.random.default_rng(1).random((4, 60))
    draws = drawn_means(values, np.arange(60), 4000, 0)
    assert draws[0] == pytest.approx(values.mean())
    # Variance of a mean over drawn runs and drawn points: about the sum of the variances of runs, points and both.
    rows, columns = values.mean(1).var() / 4, values.mean(0).var() / 60
    rest = (values - values.mean(1, keepdims=True) - values.mean(0) + values.mean()).var() / 240
    assert draws[1:].var() == pytest.approx(rows + columns + rest, rel=0.1)
    # If the points of a unit cancel out, nothing can vary.
    assert np.ptp(drawn_means(np.tile([[0.0, 1.0]], (1, 30)), np.arange(60) // 2, 99)) == 0
    # One run: the bootstrap of points alone.
    single = limits(drawn_means(values[:1], np.arange(60), 4000, 0))
    assert single[1] - single[0] == pytest.approx(2 * 1.96 * values[0].std() / np.sqrt(60), rel=0.1)


def test_differences_are_paired():
    draws = difference_draws(ANSWERS, "encoder", "full", "W", 99)
    table = (
        accuracy_table(ANSWERS)
        .query("tested_on == trained_on == 'original'")
        .groupby(["model", "setup"])["accuracy"]
        .mean()
    )
    assert draws[0] == pytest.approx(table["encoder", "full"] - table["encoder", "W"])
    assert (difference_draws(ANSWERS, "encoder", "W", "W", 99) == 0).all()
    assert np.isnan(difference_draws(ANSWERS, "encoder", "full", "RW", 99)).all()
    fewer = difference_draws(ANSWERS.isel(run=[0, 2, 3]), "encoder", "full", "W", 99)
    assert fewer[0] == pytest.approx(1 - table["encoder", "W"])
    assert difference_table(ANSWERS, 99)[["model", "first", "second", "runs"]].to_numpy().tolist() == [
        ["encoder", "full", "W", 2]
    ]


def test_reliance_of_a_follower_and_of_one_who_knows():
    table = reliance_table(ANSWERS, TEST, 99).set_index(["model", "setup", "which"])
    bag = table.loc[("bag of vectors", "full", "all")]
    assert (bag["follows"], bag["right"], bag["wrong"], bag["always_right"]) == (1, 1, 0, 1)
    absent = [each.label == 0 for each, sign in zip(TEST, follows_cue(TEST), strict=True) if sign == 0]
    assert bag["absent"] == pytest.approx(np.mean(absent))
    full = table.loc[("encoder", "full", "all")]
    assert (full["follows"], full["right"], full["wrong"]) == pytest.approx(((0.75 + 1) / 2, 1, 0.5))
    assert (full["always_n"], full["always_right"]) == (15, 1)
