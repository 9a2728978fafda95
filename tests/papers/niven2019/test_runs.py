from pathlib import Path

import numpy as np
import pytest

from analysis.papers.niven2019.arguments import BAG, ENCODER, SPLITS, load_arguments
from analysis.papers.niven2019.runs import Run, Sets, Trainer, collect, joined, plan, training_sets
from analysis.papers.niven2019.training import encoder_trainer, finetuned_states

ONE_HOT = np.eye(2, dtype=np.float32)


@pytest.fixture(scope="module")
def sets() -> Sets:
    return training_sets({split: load_arguments("bundled", split, 16) for split in SPLITS})


def counting(trained_runs: list[Run], value: float = 1.0) -> Trainer:
    """A trainer whose models always prefer the second warrant; it notes the runs that it trains."""

    def make(run: Run, sets: Sets, folder: Path):
        trained_runs.append(run)
        logits = np.array([[0.0, value]], np.float32)
        return lambda arguments: np.tile(logits, (len(arguments), 1)), f"{run.name} {value}"

    return Trainer(make, {"value": value})


def test_a_run_is_trained_once_and_again_with_another_recipe(sets: Sets, tmp_path: Path):
    trained_runs: list[Run] = []
    runs = plan(BAG, [0, 1], ["W"], ["full"])
    first = collect(runs[:3], sets, tmp_path, counting(trained_runs))
    assert trained_runs == runs[:3]
    again = collect(runs, sets, tmp_path, counting(trained_runs))
    assert trained_runs == runs
    assert all(again[run].identical(first[run]) for run in runs[:3])
    collect(runs[:1], sets, tmp_path, counting(trained_runs, 2.0))
    assert len(trained_runs) == 5
    assert len(list(tmp_path.glob("*.nc"))) == 5


def test_encoder_answers_and_its_checkpoint_stays(sets: Sets, tmp_path: Path):
    trainer = encoder_trainer("tiny", {"original": 1, "adversarial": 1}, 8, 1e-3, 64)
    runs = plan(ENCODER, [0], ["W"], ["CW"])
    answers = joined(collect(runs, sets, tmp_path, trainer))
    warrants_alone = answers["logits"].isel(run=0).values
    np.testing.assert_array_equal(warrants_alone[:16], warrants_alone[16:])
    assert sorted(path.is_dir() for path in tmp_path.iterdir()) == [False, False, True]
    (state,) = finetuned_states(sets, tmp_path, trainer, answers).values()  # none fits: all
    assert state.layers == 3
    answers["fitted"][1] = True  # the adversarial run, which keeps no checkpoint, does not count
    assert [run.setup for run in finetuned_states(sets, tmp_path, trainer, answers)] == ["W"]


def test_a_run_that_does_not_fit_is_repeated_up_to_a_limit(sets: Sets, tmp_path: Path):
    """Models are right if their seed is 1 or 100, and always take the second warrant if not."""

    def make(run: Run, sets: Sets, folder: Path):
        fits = run.seed in (1, 100)
        return lambda arguments: ONE_HOT[[point.label if fits else 1 for point in arguments]], run.name

    runs = plan(ENCODER, [0, 1, 2], ["RW"], ["CW", "W"])
    answers = joined(collect(runs, sets, tmp_path, Trainer(make, {}), fits=0.9, spare=2))
    reason_and_warrants = answers.isel(run=answers["setup"].values == "RW")
    assert reason_and_warrants["seed"].values.tolist() == [0, 100, 1, 2, 102]
    assert reason_and_warrants["fitted"].values.tolist() == [False, True, True, False, False]
    seeds = answers["seed"].values[answers["setup"].values == "W"]
    assert seeds.tolist() == [0, 1, 2]  # warrants alone cannot fit the adversarial set
    assert not plan(BAG, [0], [], ["full"])[0].can_fit
