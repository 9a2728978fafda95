import numpy as np
import pandas as pd
import pytest
import xarray as xr
from removals import logits

from analysis.papers.niven2019.accuracy import accuracy_table, difference_table, reliance_table, summary_table
from analysis.papers.niven2019.arguments import cue_table, follows_cue, load_arguments
from analysis.papers.niven2019.measures import CLAIMS, gap_by_cue, measures
from analysis.papers.niven2019.negation import adversarial
from analysis.statistics.claims import claim_table

TEST = load_arguments("bundled", "test", 40, 0, 0.75, 0.5)
DOUBLED = adversarial(TEST)
SIGNS, RIGHT = follows_cue(DOUBLED), np.array([argument.label for argument in DOUBLED])
# The warrant with "not", the first where neither or both have it.
FOLLOWER = np.select([SIGNS > 0, SIGNS < 0], [RIGHT, 1 - RIGHT], 0)
MIRROR = np.tile(RIGHT[:40], 2)  # blind to the claim: all originals right, all copies wrong
SHARE = (FOLLOWER == RIGHT)[:40].mean()


def answers_of(runs: list[tuple[str, str, str, int, np.ndarray]], unfit: tuple[int, ...] = ()) -> xr.Dataset:
    """Answers of runs: model, setup, trained_on, seed and the warrant that it takes at each point."""
    names = ("model", "setup", "trained_on", "seed")
    fitted = np.array([place not in unfit for place in range(len(runs))])
    of_runs = {name: ("run", [run[place] for run in runs]) for place, name in enumerate(names)}
    points = {
        "point": [argument.id for argument in DOUBLED],
        "half": ("point", ["original"] * 40 + ["adversarial"] * 40),
        "label": ("point", RIGHT),
    }
    variables = {
        "logits": (("run", "point", "warrant"), np.stack([np.eye(2)[choice] for *_, choice in runs])),
        "train_accuracy": ("run", np.where(fitted, 0.95, 0.79)),
        "fitted": ("run", fitted),
    }
    return xr.Dataset(variables, of_runs | points)


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


def test_summary_counts_runs_that_fit():
    row = summary_table(answers_of([(*W, 0, RIGHT), (*W, 1, FOLLOWER)], unfit=(1,))).iloc[0]
    assert row[["runs", "fitted", "fitted_mean", "degenerate", "non_degenerate"]].tolist() == [2, 1, 1, 1, 1]
    assert row["mean"] == pytest.approx((1 + SHARE) / 2)


def test_differences_are_paired():
    whole = difference_table(ANSWERS)
    assert whole["difference"].tolist() == pytest.approx([(1 - SHARE) / 2])
    assert (whole["low"] < whole["difference"]).all()
    assert whole[["model", "first", "second", "runs"]].to_numpy().tolist() == [["encoder", "full", "W", 2]]


def test_reliance_of_a_follower_and_of_one_who_knows():
    table = reliance_table(ANSWERS, TEST).set_index(["model", "setup", "which"])
    bag = table.loc[("bag of vectors", "full", "all")]
    assert (bag["follows"], bag["right"], bag["wrong"], bag["always_right"]) == (1, 1, 0, 1)
    assert bag["absent"] == pytest.approx((RIGHT[:40][SIGNS[:40] == 0] == 0).mean())
    full = table.loc[("encoder", "full", "all")]
    assert (full["follows"], full["right"], full["wrong"]) == pytest.approx(((0.75 + 1) / 2, 1, 0.5))
    assert (full["always_n"], full["always_right"]) == (15, 1)


DEV = load_arguments("bundled", "dev", 60, 0, 0.9, 0.5)
CUES = cue_table({"dev": DEV, "test": TEST}, resamples=99)
TWICE = [
    ("encoder", "full", "original", MIRROR),
    ("encoder", "W", "original", FOLLOWER),
    ("encoder", "RW", "original", FOLLOWER),
    ("encoder", "CW", "original", MIRROR),
    ("encoder", "full", "adversarial", RIGHT),
    ("encoder", "CW", "adversarial", MIRROR),
    ("bag of vectors", "full", "original", FOLLOWER),
    ("bag of vectors", "W", "original", FOLLOWER),
]
RUNS = [(*names, seed, choice) for *names, choice in TWICE for seed in (0, 1)]
# A run that follows the cue takes every other warrant without the cue heads; one random set changes nothing.
OFF = logits(np.stack([FOLLOWER[:40], 1 - FOLLOWER[:40], FOLLOWER[:40]]), ["cue heads", "random 0"], sure=1)
OFF = OFF.assign_coords(sequence=[argument.id for argument in TEST])


def frames(unfit: tuple[int, ...] = ()) -> dict[str, pd.DataFrame]:
    return measures(answers_of(RUNS, unfit), TEST, CUES, {("W", seed): OFF for seed in (0, 1)})


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
    assert table.loc["N1", "runs"] == 2


def test_runs_that_do_not_fit_are_no_evidence():
    by_claim = frames(unfit=(0, 3, 8))
    for name in ("N1", "N2", "N3", "N7", "N9"):  # one run of full or of W is left
        assert by_claim[name]["reason"].eq("fewer than two runs fit").all(), name
    assert values(by_claim["N5"]) == {"CW": 0}
    assert "encoder" not in values(by_claim["N8"])


def test_where_the_cue_is_right_minus_where_it_is_wrong():
    signs = np.array([1, 1, 1, -1, 0])
    right = np.array([[1.0, 1, 0, 0, 1], [1, 0, 0, 1, 1]])
    np.testing.assert_allclose(gap_by_cue(right, signs).mean(axis=1), [2 / 3, 1 / 3 - 1])
