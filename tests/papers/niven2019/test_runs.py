"""Training runs: the plan, the files that make a series resume, and an encoder under a multiple-choice head."""

from pathlib import Path

import numpy as np
import pytest

from analysis.papers.niven2019 import training
from analysis.papers.niven2019.arguments import BAG, ENCODER, SPLITS, load_arguments
from analysis.papers.niven2019.networks import vocabulary
from analysis.papers.niven2019.runs import (
    Run,
    Sets,
    Trained,
    Trainer,
    collect,
    plan,
)
from analysis.papers.niven2019.training import encoder_trainer, finetuned_states, search, small_trainer


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


def test_bag_of_vectors_from_end_to_end(tiny, sets: Sets, tmp_path: Path):
    words = vocabulary(tiny, [each for part in sets.doubled.values() for each in part])
    answers = collect(
        plan(BAG, [0], ["full"], ["CW"]), sets, tmp_path, small_trainer(words, 1), progress=False
    )
    right = (answers["logits"].argmax("warrant") == answers["label"]).groupby("half").mean()
    # It adds one number for claim and reason to both warrants: its answers cannot depend on them.
    np.testing.assert_allclose(right.sum("half"), 1)


def test_encoder_answers_and_its_checkpoint_stays(sets: Sets, tmp_path: Path):
    trainer = encoder_trainer("tiny", {"original": 1, "adversarial": 1}, 8, 1e-3, 64)
    runs = plan(ENCODER, [0], ["W"], ["CW"])
    answers = collect(runs, sets, tmp_path, trainer, progress=False)
    warrants_alone = answers["logits"].isel(run=0).values
    np.testing.assert_array_equal(warrants_alone[:16], warrants_alone[16:])
    assert np.isfinite(answers["logits"].values).all()
    assert sorted(path.is_dir() for path in tmp_path.iterdir()) == [False, False, True]
    (state,) = finetuned_states(sets, tmp_path, trainer, answers).values()  # none fits: all
    assert state.layers == 3
    answers["fitted"][1] = True  # the adversarial run, which keeps no checkpoint, does not count
    assert [run.setup for run in finetuned_states(sets, tmp_path, trainer, answers)] == ["W"]


def learning(fitting: set[int], made: list[Run]) -> Trainer:
    """A trainer whose models are right if their seed is in `fitting`, and always take the second warrant if not."""

    def make(run: Run, sets: Sets, folder: Path):
        made.append(run)

        def answer(arguments):
            right = [each.label if run.seed in fitting else 1 for each in arguments]
            return np.eye(2, dtype=np.float32)[right]

        return Trained(answer, run.name)

    return Trainer(make, {"fitting": sorted(fitting)})


def test_a_run_that_does_not_fit_is_drawn_again_up_to_a_limit(sets: Sets, tmp_path: Path):
    made: list[Run] = []
    runs = plan(ENCODER, [0, 1, 2], ["RW"], ["CW", "W"])
    answers = collect(runs, sets, tmp_path, learning({1, 100}, made), fits=0.9, spare=2, progress=False)
    found = answers.isel(run=answers["setup"].values == "RW")
    assert found["seed"].values.tolist() == [0, 100, 1, 2, 102]
    assert found["fitted"].values.tolist() == [False, True, True, False, False]
    seeds = answers["seed"].values[answers["setup"].values == "W"]
    assert seeds.tolist() == [0, 1, 2]  # warrants alone cannot fit the adversarial set
    assert not plan(BAG, [0], [], ["full"])[0].can_fit
    assert plan(ENCODER, [0], [], ["full"])[0].can_fit
    again = collect(runs, sets, tmp_path, learning({1, 100}, made), fits=0.9, spare=2, progress=False)
    assert again.identical(answers)
    assert len(made) == answers.sizes["run"]


def test_search_takes_the_best_dev_accuracy_of_recipes_that_fit(sets: Sets, tmp_path: Path, monkeypatch):
    def trainer(name, epochs, learning_rate, **options):
        assert options == {"fits": 0.9, "kept": (), "batch_size": 4}

        def make(run: Run, sets: Sets, folder: Path):
            dev = {each.id for each in sets.original["dev"][: 4 if learning_rate == 1 else 8]}
            right = {each.id for each in sets.original["train"]} if learning_rate < 3 else set()
            rate = {3: {each.id for each in sets.original["dev"]}}.get(learning_rate, dev) | right
            return Trained(
                lambda a: np.eye(2, dtype=np.float32)[[e.label ^ (e.id not in rate) for e in a]], "w"
            )

        return Trainer(make, {"rate": learning_rate})

    monkeypatch.setattr(training, "encoder_trainer", trainer)
    found = search("tiny", sets, tmp_path, [1, 2, 3], [5], 0.9, batch_size=4)
    assert found["learning_rate"].tolist() == [2, 1, 3]
    assert found["fitted"].tolist() == [True, True, False]
    assert found["dev_accuracy"].tolist() == [0.5, 0.25, 1.0]
    alone = search("tiny", sets, tmp_path, [7], [5], 0.9, batch_size=4)
    assert alone["dev_accuracy"].isna().all()
