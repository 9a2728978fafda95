from pathlib import Path

import numpy as np
import pytest

from analysis.papers.niven2019 import runs as module
from analysis.papers.niven2019.arguments import BAG, ENCODER, SPLITS, load_arguments
from analysis.papers.niven2019.runs import Sets, Trainer, TrainingRun, collect, joined, plan


@pytest.fixture(scope="module")
def sets() -> Sets:
    return module.training_sets({split: load_arguments("bundled", split, 16) for split in SPLITS})


def counting(trained_runs: list[TrainingRun], value: float = 1.0) -> Trainer:
    """A trainer whose models always prefer the second warrant; it notes the runs that it trains."""

    def make(run: TrainingRun, sets: Sets, folder: Path):
        trained_runs.append(run)
        logits = np.array([[0.0, value]], np.float32)
        return lambda arguments: np.tile(logits, (len(arguments), 1)), f"{run.name} {value}"

    return Trainer(make, {"value": value})


def test_a_run_is_trained_once_and_again_with_another_recipe(sets: Sets, tmp_path: Path):
    trained_runs: list[TrainingRun] = []
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
    trainer = module.encoder_trainer("tiny", {"original": 1, "adversarial": 1}, 8, 1e-3, 64)
    runs = plan(ENCODER, [0], ["W"], ["CW"])
    answers = joined(collect(runs, sets, tmp_path, trainer))
    warrants_alone = answers["logits"].isel(run=0)
    np.testing.assert_array_equal(*warrants_alone.transpose("half", ...).values)
    assert sorted(path.is_dir() for path in tmp_path.iterdir()) == [False, False, True]
    answers["trained"] = "run", [False, True]  # the adversarial run has no checkpoint, and does not count
    states = module.finetuned_states(sets, tmp_path, trainer, answers)  # none trained: all
    assert [(run.setup, encoder.layers) for run, encoder in states.items()] == [("W", 3)]


def test_a_run_trained_successfully_if_it_learnt_its_training_set(sets: Sets, tmp_path: Path):
    """A model that knows the training points alone counts, one that always takes the second warrant does not."""
    learnt = {point.claim + point.reason: point.label for point in sets["original"]["train"]}

    def make(run: TrainingRun, sets: Sets, folder: Path):
        def answers(points) -> np.ndarray:
            choices = learnt if run.seed else {}
            return np.eye(2, dtype=np.float32)[[choices.get(p.claim + p.reason, 1) for p in points]]

        return answers, run.name

    answers = joined(collect(plan(ENCODER, [0, 1], ["full"], []), sets, tmp_path, Trainer(make, {})))
    assert answers["trained"].values.tolist() == [False, True]
    assert answers["train_accuracy"].values[1] == 1
