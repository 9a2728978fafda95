"""What the claims measure, against counts by hand on made-up answers."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.papers.niven2019 import CLAIMS
from analysis.papers.niven2019.arguments import load_arguments
from analysis.papers.niven2019.cues import cue_table, follows_cue
from analysis.papers.niven2019.measures import measures
from analysis.papers.niven2019.negation import adversarial
from analysis.statistics.claim_tables import claim_table

TEST = load_arguments("bundled", "test", 40, 0, 0.75, 0.5)
DEV = load_arguments("bundled", "dev", 60, 0, 0.9, 0.5)
DOUBLED = adversarial(TEST)
CUES = cue_table({"dev": DEV, "test": TEST}, resamples=99)
SIGNS, LABELS = follows_cue(DOUBLED), np.array([each.label for each in DOUBLED])
RIGHT = LABELS
FOLLOWER = np.where(
    SIGNS > 0, LABELS, np.where(SIGNS < 0, 1 - LABELS, 0)
)  # the first where the cue is absent
MIRROR = np.tile(LABELS[:40], 2)  # blind to the claim: all originals right, all copies wrong
SHARE = (FOLLOWER == LABELS)[:40].mean()


def made(runs: list[tuple[str, str, str, int, np.ndarray]], unfit: tuple[int, ...] = ()) -> xr.Dataset:
    """Answers of runs: model, setup, trained_on, seed and the warrant that is taken at each point."""
    names = ("model", "setup", "trained_on", "seed")
    return xr.Dataset(
        {
            "logits": (("run", "point", "warrant"), np.stack([np.eye(2)[taken] for *_, taken in runs])),
            "train_accuracy": ("run", np.full(len(runs), 0.95)),
            "fitted": ("run", [place not in unfit for place in range(len(runs))]),
        },
        {
            **{name: ("run", [run[place] for run in runs]) for place, name in enumerate(names)},
            "point": [each.id for each in DOUBLED],
            "half": ("point", ["original"] * 40 + ["adversarial"] * 40),
            "label": ("point", LABELS),
        },
    )


def twice(model: str, setup: str, trained_on: str, taken: np.ndarray) -> list:
    return [(model, setup, trained_on, seed, taken) for seed in (0, 1)]


ANSWERS = made(
    [
        *twice("encoder", "full", "original", MIRROR),
        *twice("encoder", "W", "original", FOLLOWER),
        *twice("encoder", "RW", "original", FOLLOWER),
        *twice("encoder", "CW", "original", MIRROR),
        *twice("encoder", "full", "adversarial", RIGHT),
        *twice("encoder", "CW", "adversarial", MIRROR),
        *twice("bag of vectors", "full", "original", FOLLOWER),
        *twice("bag of vectors", "W", "original", FOLLOWER),
    ]
)


def without(setup: str, seed: int) -> xr.DataArray:
    """A run that follows the cue and is all right without the cue heads; one random set changes nothing."""
    taken = np.stack([FOLLOWER[:40], 1 - FOLLOWER[:40], FOLLOWER[:40]])
    names = {"intervention": ["none", "cue heads", "random 0"], "sequence": [each.id for each in TEST]}
    return xr.DataArray(np.eye(2)[taken], names, dims=("intervention", "sequence", "class"))


OFF = {("W", seed): without("W", seed) for seed in (0, 1)}


def found(answers: xr.Dataset = ANSWERS, off: dict = OFF) -> dict[str, pd.DataFrame]:
    return measures(answers, TEST, CUES, off, 199)


def sample(frame: pd.DataFrame, column: str = "value") -> dict[str, float]:
    rows = frame[frame["replicate"] == 0]
    return dict(zip(rows["unit"], rows[column], strict=True))


def test_values_by_hand():
    values = {name: sample(frame) for name, frame in found().items()}
    assert values["N1"] == {"": 1}
    assert values["N2"] == {"full - W": pytest.approx(1 - SHARE)}
    assert values["N3"] == {"RW - W": 0, "CW - W": pytest.approx(1 - SHARE)}
    rows = CUES[(CUES["cue"] == "not") & (CUES["rule"] == "expanded")].set_index("split")["productivity"]
    assert values["N4"] == {"dev": rows["dev"], "test": rows["test"]}
    assert values["N5"] == {"full": 0.5, "CW": 0}
    follows = (
        SIGNS[:40][SIGNS[:40] != 0] > 0
    ).mean()  # one who is always right takes the cue where it is right
    assert values["N6"] == {"bag of vectors": pytest.approx(1 - follows)}
    assert values["N7"] == {"": 0}
    assert values["N8"]["encoder, full"] == 0
    assert values["N8"]["bag of vectors, W"] == pytest.approx(1 - SHARE)
    assert values["N9"] == {"lost where it is right": 1, "gained where it is wrong": 1}


def test_controls_and_cases():
    frames = found()
    assert sample(frames["N2"], "control") == {"full - W": 0}
    assert sample(frames["N7"], "control") == {"": 1}
    assert set(frames["N4"]["control"]) == {0.5}
    assert sample(frames["N9"], "control") == {"lost where it is right": 0, "gained where it is wrong": 0}
    cued = SIGNS[:40]
    assert [*sample(frames["N9"], "n").values()] == [(cued > 0).sum(), (cued < 0).sum()]
    assert set(frames["N5"]["n"]) == {80}
    assert set(frames["N6"]["n"]) == {(cued != 0).sum()}


def test_verdicts_on_made_up_answers():
    table = claim_table(CLAIMS, found(), "runs and points")
    verdicts = dict(zip([claim.id for claim in CLAIMS], table["verdict"], strict=True))
    assert verdicts == {
        "N1": "holds",
        "N2": "does not hold",
        "N3": "does not hold",
        "N4": "holds",
        "N5": "does not hold",
        "N6": "holds",
        "N7": "does not hold",
        "N8": "undecided",  # 40 copies
        "N9": "holds",
    }


def test_runs_that_do_not_fit_are_no_evidence():
    places = [place for place in range(ANSWERS.sizes["run"]) if place != 2]
    answers = ANSWERS.assign(
        fitted=("run", [place not in (0, 3, 8) for place in range(ANSWERS.sizes["run"])])
    )
    frames = found(answers)
    for name in ("N1", "N2", "N3", "N6", "N7", "N9"):  # one run of full or of W is left
        assert frames[name]["value"].isna().all(), name
        assert "fewer than two runs fit" in frames[name]["note"].iloc[0]
    assert frames["N1"]["note"].iloc[0].endswith("1 of 2 runs of the encoder fit")
    assert sample(frames["N5"]) == {"CW": 0}
    assert "encoder, full" not in sample(frames["N8"])
    assert len(places) == answers.sizes["run"] - 1
