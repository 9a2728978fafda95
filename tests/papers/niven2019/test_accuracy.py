import numpy as np
import pandas as pd
import pytest
import xarray as xr
from removals import logits
from scipy import stats

from analysis.papers.niven2019 import accuracy, measures
from analysis.papers.niven2019.accuracy import accuracy_table, reliance_table, summary_table
from analysis.papers.niven2019.arguments import cue_table, follows_cue, load_arguments
from analysis.papers.niven2019.measures import CLAIMS, size
from analysis.papers.niven2019.negation import adversarial
from analysis.statistics.claims import claim_table
from analysis.statistics.intervals import crossed_interval

TEST = load_arguments("bundled", "test", 40, 0, 0.75, 0.5)
DOUBLED = adversarial(TEST)
SIGNS, RIGHT = follows_cue(DOUBLED), np.array([argument.label for argument in DOUBLED])
# The warrant with "not", the first where neither or both have it.
FOLLOWER = np.select([SIGNS > 0, SIGNS < 0], [RIGHT, 1 - RIGHT], 0)
MIRROR = np.tile(RIGHT[:40], 2)  # blind to the claim: all originals right, all copies wrong
SHARE = (FOLLOWER == RIGHT)[:40].mean()


def answers_of(runs: list[tuple], untrained: tuple[int, ...] = ()) -> xr.Dataset:
    """Answers of runs: model, setup, trained_on, seed and the warrant that it takes at each point."""
    names = ("model", "setup", "trained_on", "seed")
    trained = np.array([place not in untrained for place in range(len(runs))])
    coordinates = {name: ("run", [run[place] for run in runs]) for place, name in enumerate(names)}
    coordinates |= {
        "trained": ("run", trained),
        "half": ["original", "adversarial"],
        "point": [argument.id for argument in TEST],
        "label": (("half", "point"), RIGHT.reshape(2, -1)),
    }
    logits = np.stack([np.eye(2)[choice].reshape(2, -1, 2) for *_, choice in runs])
    variables = {
        "logits": (("run", "half", "point", "warrant"), logits),
        "train_accuracy": ("run", np.where(trained, 0.95, 0.52)),
    }
    return xr.Dataset(variables, coordinates)


FULL, W = ("encoder", "full", "original"), ("encoder", "W", "original")
BAG = ("bag of vectors", "full", "original", 0, FOLLOWER)
FOUR = [(*FULL, 0, RIGHT), (*FULL, 1, FOLLOWER), (*W, 0, FOLLOWER), (*W, 1, FOLLOWER)]
ANSWERS = answers_of([*FOUR, BAG, ("encoder", "full", "adversarial", 0, FOLLOWER)])


def test_accuracy_of_a_run_on_every_test_set():
    table = accuracy_table(ANSWERS).set_index(["model", "setup", "trained_on", "seed", "tested_on", "half"])
    table = table.sort_index()
    assert table.loc[(*W, 0), "accuracy"].to_dict() == {
        ("original", "all"): pytest.approx(SHARE),
        ("adversarial", "all"): 0.5,
        ("adversarial", "original"): pytest.approx(SHARE),
        ("adversarial", "adversarial"): pytest.approx(1 - SHARE),
    }
    assert (table.loc[(*FULL, 0), "accuracy"] == 1).all()
    assert not table["degenerate"].any()


def test_equal_logits_count_half():
    answers = answers_of([(*W, 0, RIGHT)])
    answers["logits"][:] = 1.0
    assert (accuracy_table(answers)["accuracy"] == 0.5).all()


def test_summary_counts_runs_that_trained_successfully():
    row = summary_table(answers_of([(*W, 0, RIGHT), (*W, 1, FOLLOWER)], untrained=(1,))).iloc[0]
    counts = row[["runs", "trained", "trained_mean", "degenerate", "non_degenerate"]]
    assert counts.tolist() == [2, 1, 1, 1, 1]
    assert row["mean"] == pytest.approx((1 + SHARE) / 2)


def test_differences_are_paired():
    whole = accuracy.difference_table(ANSWERS)
    assert whole["difference"].tolist() == pytest.approx([(1 - SHARE) / 2])
    assert (whole["low"] < whole["difference"]).all()
    assert whole[["model", "first", "second", "runs"]].to_numpy().tolist() == [["encoder", "full", "W", 2]]


def test_reliance_of_a_follower_and_of_one_who_knows():
    table = reliance_table(ANSWERS, TEST).set_index(["model", "setup"])
    bag, full = table.loc[("bag of vectors", "full")], table.loc[("encoder", "full")]
    assert (bag["follows"], bag["right"], bag["wrong"], bag["always_right"]) == (1, 1, 0, 1)
    assert bag["absent"] == pytest.approx((RIGHT[:40][SIGNS[:40] == 0] == 0).mean())
    assert (full["follows"], full["right"], full["wrong"]) == pytest.approx(((0.75 + 1) / 2, 1, 0.5))
    assert (full["always_n"], full["always_right"]) == (15, 1)


DEV = load_arguments("bundled", "dev", 60, 0, 0.9, 0.5)
CUES = cue_table({"dev": DEV, "test": TEST}, resamples=99)
MODELS = [
    ("encoder", "full", "original", MIRROR),
    ("encoder", "W", "original", FOLLOWER),
    ("encoder", "RW", "original", FOLLOWER),
    ("encoder", "CW", "original", MIRROR),
    ("encoder", "full", "adversarial", RIGHT),
    ("encoder", "CW", "adversarial", MIRROR),
    ("bag of vectors", "full", "original", FOLLOWER),
    ("bag of vectors", "W", "original", FOLLOWER),
]
RUNS = [(*names, seed, choice) for *names, choice in MODELS for seed in (0, 1, 2)]
# A run that follows the cue takes every other warrant without the cue heads; one random set changes nothing.
OFF = logits(np.stack([FOLLOWER[:40], 1 - FOLLOWER[:40], FOLLOWER[:40]]), ["cue heads", "random 0"], sure=1)
OFF = OFF.assign_coords(sequence=[argument.id for argument in TEST])


def frames(untrained: tuple[int, ...] = ()) -> dict[str, pd.DataFrame]:
    return frames_of(answers_of(RUNS, untrained), {("W", seed): OFF for seed in (0, 1, 2)})


def frames_of(answers: xr.Dataset, ablated: dict) -> dict[str, pd.DataFrame]:
    """The units of the claims of the notebooks of Niven and Kao 2019."""
    right = accuracy.right_answers(answers)
    return {
        "N1": measures.accuracy_of_encoder(right, TEST),
        "N2": measures.gains_over_warrants(right, "full"),
        "N3": measures.gains_over_warrants(right, "RW", "CW"),
        "N4": measures.productivity_of_cue(CUES),
        "N5": measures.distance_from_chance(right),
        "N7": measures.gap_by_cue(right, TEST),
        "N8": measures.accuracy_on_copies(right),
        "N9": measures.loss_without_cue_heads(right, TEST, ablated),
    }


def values(frame: pd.DataFrame, column: str = "value") -> dict[str, float]:
    return frame.dropna(subset=column).set_index("unit")[column].to_dict()


def test_claims_by_hand():
    by_claim = frames()
    units = {name: values(frame) for name, frame in by_claim.items()}
    assert units["N1"] == {"": 1}
    assert units["N2"] == {"full - W": pytest.approx(1 - SHARE)}
    assert units["N3"] == {"RW - W": 0, "CW - W": pytest.approx(1 - SHARE)}
    rows = CUES[CUES["cue"] == "not"].set_index("split")["productivity"]
    assert units["N4"] == {"dev": rows["dev"], "test": rows["test"]}
    assert units["N5"] == {"full": 0.5, "CW": 0}
    assert units["N7"] == {"": pytest.approx(0)}
    assert units["N8"] == {"encoder": 0, "bag of vectors": pytest.approx(1 - SHARE)}
    assert units["N9"] == {"lost where it is right": 1, "gained where it is wrong": 1}
    assert values(by_claim["N2"], "control") == {"full - W": 0}
    assert values(by_claim["N7"], "control") == {"": pytest.approx(1)}
    assert values(by_claim["N9"], "control") == {"lost where it is right": 0, "gained where it is wrong": 0}
    table = claim_table(CLAIMS, by_claim).set_index("claim")
    assert table.loc[["N1", "N4", "N9"], "verdict"].tolist() == ["supported"] * 3
    assert table.loc[["N2", "N3", "N5"], "verdict"].tolist() == ["not supported", "mixed", "mixed"]
    assert table.loc["N8", "reason"] == "BiLSTM: set-up not run"
    assert table.loc["N1", "runs"] == 3


def test_runs_that_did_not_train_are_no_evidence():
    by_claim = frames(untrained=(0, 3, 4, 5, 12))  # all with warrants alone
    for name in ("N2", "N3", "N9"):
        assert by_claim[name]["reason"].eq("no run trained successfully").all(), name
    assert by_claim["N1"]["runs"].tolist() == [2]
    assert by_claim["N5"]["runs"].tolist() == [2, 3]


def test_two_runs_of_a_model_decide_nothing_about_its_accuracy():
    twice = frames_of(answers_of([run for run in RUNS if run[3] < 2]), {("W", 0): OFF, ("W", 1): OFF})
    rows = claim_table(CLAIMS, twice).set_index("claim").loc[["N1", "N2", "N7", "N8", "N9"]]
    assert rows["verdict"].eq("inconclusive").all()
    assert rows["reason"].str.contains("2 runs").all()


def test_differences_of_set_ups_count_in_both_directions():
    """The full input is worse than the warrants alone, which is no less of a difference."""
    runs = [(*FULL, seed, FOLLOWER) for seed in range(3)] + [(*W, seed, RIGHT) for seed in range(3)]
    row = frames_of(answers_of(runs), {})["N2"].iloc[0]
    difference = crossed_interval(np.stack([(FOLLOWER == RIGHT)[:40] - 1.0] * 3))
    assert row["value"] == pytest.approx(1 - SHARE)
    assert [row["high"], row["low"]] == pytest.approx([-difference[1], -difference[2]])
    assert size((-0.01, -0.04, 0.02)) == pytest.approx((0.01, 0, 0.04))


def test_the_gap_by_cue_is_a_difference_of_two_samples():
    rng = np.random.default_rng(0)
    right, signs = rng.random((2, 60)), np.repeat([1, -1, 0], [10, 40, 10])
    sides = [right[:, signs == sign].mean(axis=0) for sign in (1, -1)]
    test = stats.ttest_ind(*sides, equal_var=False)  # Welch
    expected = sides[0].mean() - sides[1].mean(), *test.confidence_interval()
    assert accuracy.gap_interval(right, signs) == pytest.approx(expected)
    runs = np.array([[-0.2], [0.0], [0.2]]) * (signs == 1)  # where the cue is right, runs differ
    equal, different = (
        np.ptp(accuracy.gap_interval(right[[0, 0, 0]] + shift, signs)[1:]) for shift in (0, runs)
    )
    assert different > 1.1 * equal
    assert accuracy.gap_interval(right[[0, 0, 0]] + 9 * runs, signs)[1:] == (-1, 1)


@pytest.mark.parametrize(("share", "deviation"), [(0.02, 0.0), (0.97, 0.02)])
def test_intervals_of_shares_hold_near_0_and_1(share: float, deviation: float):
    """Three runs on 72 points; where answers depend on the point alone, t intervals over points cover 77 %."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):
        shares = np.clip(share + deviation * rng.standard_normal((3, 1)), 0, 1)
        right = (rng.random(72) < shares).astype(float)  # the same points are hard for all runs
        _, low, high = accuracy.share_interval(right)
        covered.append(low <= share <= high)
    assert np.mean(covered) > 0.93


def test_three_runs_widen_the_interval_of_a_share():
    right = (np.arange(100) < [[60], [70], [80]]).astype(float)
    points = stats.binomtest(70, 100).proportion_ci(method="wilson")
    runs = stats.ttest_1samp([0.6, 0.7, 0.8], 0).confidence_interval()
    below, above = (np.hypot(point - 0.7, run - 0.7) for point, run in zip(points, runs, strict=True))
    assert accuracy.share_interval(right) == pytest.approx((0.7, 0.7 - below, 0.7 + above))
    wide = (np.arange(100) < [[20], [95], [95]]).astype(float)
    assert accuracy.share_interval(wide)[1:] == (0, 1)
