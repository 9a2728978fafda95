"""Training runs: the plan, the files that make a series resume, and an encoder under a multiple-choice head."""

from pathlib import Path

import numpy as np
import pytest

from analysis.papers.niven2019.arguments import BAG, ENCODER, SPLITS, load_arguments
from analysis.papers.niven2019.runs import Run, Sets, Trained, Trainer, collect, plan
from analysis.papers.niven2019.training import encoder_trainer, finetuned_states

ONE_HOT = np.eye(2, dtype=np.float32)


@pytest.fixture(scope="module")
def sets() -> Sets:
    return Sets.of({split: load_arguments("bundled", split, 16) for split in SPLITS})


def counting(made: list[Run], value: float = 1.0) -> Trainer:
    """A trainer whose models always prefer the second warrant; it notes what it makes."""

    def make(run: Run, sets: Sets, folder: Path):
        made.append(run)
        logits = np.array([[0.0, value]], np.float32)
        return Trained(lambda arguments: np.tile(logits, (len(arguments), 1)), f"{run.name} {value}")

    return Trainer(make, {"value": value})


def test_a_run_is_made_once_and_another_recipe_anew(sets: Sets, tmp_path: Path):
    made: list[Run] = []
    runs = plan(BAG, [0, 1], ["W"], ["full"])
    first = collect(runs[:3], sets, tmp_path, counting(made), progress=False)
    assert made == runs[:3]
    again = collect(runs, sets, tmp_path, counting(made), progress=False)
    assert made == runs
    assert again.isel(run=slice(3)).identical(first)
    collect(runs[:1], sets, tmp_path, counting(made, 2.0), progress=False)
    assert len(made) == 5
    assert len(list(tmp_path.glob("*.nc"))) == 5


def test_encoder_answers_and_its_checkpoint_stays(sets: Sets, tmp_path: Path):
    trainer = encoder_trainer("tiny", {"original": 1, "adversarial": 1}, 8, 1e-3, 64)
    runs = plan(ENCODER, [0], ["W"], ["CW"])
    answers = collect(runs, sets, tmp_path, trainer, progress=False)
    warrants_alone = answers["logits"].isel(run=0).values
    np.testing.assert_array_equal(warrants_alone[:16], warrants_alone[16:])
    assert sorted(path.is_dir() for path in tmp_path.iterdir()) == [False, False, True]
    (state,) = finetuned_states(sets, tmp_path, trainer, answers).values()  # none fits: all
    assert state.layers == 3
    answers["fitted"][1] = True  # the adversarial run, which keeps no checkpoint, does not count
    assert [run.setup for run in finetuned_states(sets, tmp_path, trainer, answers)] == ["W"]


def test_a_run_that_does_not_fit_is_drawn_again_up_to_a_limit(sets: Sets, tmp_path: Path):
    """Models are right if their seed is 1 or 100, and always take the second warrant if not."""

    def make(run: Run, sets: Sets, folder: Path):
        fits = run.seed in (1, 100)
        return Trained(lambda arguments: ONE_HOT[[each.label if fits else 1 for each in arguments]], run.name)

    runs = plan(ENCODER, [0, 1, 2], ["RW"], ["CW", "W"])
    answers = collect(runs, sets, tmp_path, Trainer(make, {}), fits=0.9, spare=2, progress=False)
    found = answers.isel(run=answers["setup"].values == "RW")
    assert found["seed"].values.tolist() == [0, 100, 1, 2, 102]
    assert found["fitted"].values.tolist() == [False, True, True, False, False]
    seeds = answers["seed"].values[answers["setup"].values == "W"]
    assert seeds.tolist() == [0, 1, 2]  # warrants alone cannot fit the adversarial set
    assert not plan(BAG, [0], [], ["full"])[0].can_fit
