import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Trainer

from analysis.encoders.finetuning import CLUSTER, Recipe, evaluate, finetune
from analysis.encoders.measures import baselines, measure
from analysis.texts.examples import Example
from analysis.texts.tasks import Task

POSITIVE, NEGATIVE = "a warm and clever film", "a cold and boring film about nothing"


def reviews(count: int) -> list[Example]:
    """Film reviews of two kinds, every third of them positive."""
    return [Example(f"s-{i}", (NEGATIVE, POSITIVE)[i % 3 == 0], None, int(i % 3 == 0)) for i in range(count)]


def train(folder: Path, **options: int | float | list) -> dict[str, float]:
    """Scores after one short epoch of the tiny encoder."""
    examples = reviews(32)
    recipe = {"epochs": 1, "batch_size": 16, "learning_rate": 1e-3} | options
    return finetune("tiny", "sst-2", examples, examples[:11], folder, Recipe(**recipe))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, dict[str, float]]:
    """A checkpoint of the tiny encoder and the scores that training returned."""
    folder = tmp_path_factory.mktemp("models") / "sst-2"
    return folder, train(folder, epochs=2)


def test_checkpoint_holds_no_pickle(trained):
    folder, _ = trained
    assert {path.suffix for path in folder.rglob("*")} <= {".safetensors", ".json", ".txt"}
    assert [*folder.parent.iterdir()] == [folder]


def test_same_seed_same_bytes_and_another_seed_others(tmp_path: Path):
    weights = []
    for number, seed in enumerate((0, 0, 1)):
        torch.manual_seed(number)  # the earlier state of the generator must not matter
        train(tmp_path / f"{number}", seed=seed)
        weights.append((tmp_path / f"{number}" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["training_step", "evaluate", "_save_checkpoint"])
def test_failed_training_leaves_nothing(tmp_path: Path, monkeypatch, moment: str):
    monkeypatch.setattr(Trainer, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "sst-2", epochs=2)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"epochs": 1}, {"learning_rate": 1e-4}, {"max_tokens": 64}, {"blocked": [(0, 1)]}]
)
def test_the_same_recipe_is_not_trained_again_and_another_is(trained, monkeypatch, change: dict):
    folder, scores = trained
    monkeypatch.setattr(Trainer, "training_step", interrupt)
    assert train(folder, epochs=2) == scores
    with pytest.raises(KeyboardInterrupt):
        train(folder, **{"epochs": 2, **change})


def test_as_many_other_texts_are_another_recipe(trained, monkeypatch):
    monkeypatch.setattr(Trainer, "training_step", interrupt)
    examples, recipe = reviews(32), Recipe(2, 16, 1e-3)
    for others in ((examples[::-1], examples[:11]), (examples, examples[1:12])):
        with pytest.raises(KeyboardInterrupt):
            finetune("tiny", "sst-2", *others, trained[0], recipe)


def test_a_checkpoint_whose_weights_have_changed_is_made_again(trained, tmp_path: Path):
    folder, scores = trained
    copy = Path(shutil.copytree(folder, tmp_path / "sst-2")) / "model.safetensors"
    content = copy.read_bytes()
    copy.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert train(copy.parent, epochs=2) == scores
    assert copy.read_bytes() == content


def test_the_signs_of_a_cluster_in_the_environment_do_not_matter(trained, tmp_path: Path, monkeypatch):
    """In a script of one's own: a run takes them away."""
    for name in CLUSTER:
        monkeypatch.setenv(name, "1")
    assert train(tmp_path / "sst-2", epochs=2) == trained[1]
    assert os.environ["LOCAL_RANK"] == "1"


def test_metrics_by_hand():
    """Of 4 positives and 4 negatives, 2 and 3 are found; deviations from the means are (-1, 0, 1) and (-1, 1, 0)."""
    labels, predictions = np.array([1, 1, 1, 1, 0, 0, 0, 0]), np.array([1, 1, 0, 0, 1, 0, 0, 0])
    assert measure("mrpc", labels, predictions) == pytest.approx({"accuracy": 5 / 8, "f1": 4 / 7})
    matthews = (2 * 3 - 1 * 2) / (3 * 4 * 4 * 5) ** 0.5
    assert measure("cola", labels, predictions) == pytest.approx({"matthews": matthews, "accuracy": 5 / 8})
    result = measure("sts-b", np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0]))
    assert result == pytest.approx({"pearson": 0.5, "spearman": 0.5})


def test_bag_of_words_finds_the_word_that_decides():
    texts = [f"The {noun} was {word} ." for noun in ("plot", "cast", "music") for word in ("dull", "great")]
    examples = [Example(f"s-{i}", texts[i % 6], None, i % 2) for i in range(40)]
    scores = baselines("sst-2", examples[:30], examples[30:])
    assert scores == {"constant": {"accuracy": 0.5}, "bag_of_words": {"accuracy": 1.0}}


WARRANTS = Task("warrants", ("accuracy",), kind="multiple choice")


def arguments(count: int) -> list[Example]:
    """Claims with two reasons each; the right one, in either place, is warm."""
    return [
        Example(f"w-{i}", "a film for all", label=i % 2, choices=(NEGATIVE, POSITIVE)[:: 1 if i % 2 else -1])
        for i in range(count)
    ]


def swapped(examples: list[Example]) -> list[Example]:
    """The same examples, all with the wrong label."""
    return [replace(example, label=1 - example.label) for example in examples]


def test_regression_learns_and_its_checkpoint_gives_the_same_scores(tmp_path: Path):
    answers = [("they went", 5.0), ("we ate nothing", 1.0), ("we ate nothing", 2.0)]
    examples = [Example(f"r-{i}", f"they left {i}", *answers[i % 3]) for i in range(24)]
    scores = finetune("tiny", "sts-b", examples, examples[:9], tmp_path / "sts-b", Recipe(8, 8, 2e-3))
    assert evaluate(tmp_path / "sts-b", "sts-b", examples[:9]) == pytest.approx(scores)
    assert scores["pearson"] > 0.8


@pytest.mark.parametrize(
    ("task", "examples"), [("sst-2", reviews(40)), (WARRANTS, arguments(32))], ids=["texts", "choices"]
)
def test_training_learns_what_one_word_decides(tmp_path: Path, task: str | Task, examples: list[Example]):
    scores = finetune("tiny", task, examples[:24], examples[:11], tmp_path / "tuned", Recipe(6, 8, 1e-3))
    assert scores == evaluate(tmp_path / "tuned", task, examples[24:]) == {"accuracy": 1.0}
    assert evaluate(tmp_path / "tuned", task, swapped(examples)) == {"accuracy": 0.0}


def test_the_last_epoch_is_kept_whatever_it_scores(tmp_path: Path):
    examples = arguments(24)
    sets, recipe = (examples, swapped(examples[:11])), Recipe(6, 8, 1e-4)
    before_the_reverse_is_learnt = finetune("tiny", WARRANTS, *sets, tmp_path / "best", recipe)
    assert before_the_reverse_is_learnt == {"accuracy": 1.0}
    assert evaluate(tmp_path / "best", WARRANTS, examples)["accuracy"] < 0.9
    last = finetune("tiny", WARRANTS, *sets, tmp_path / "last", replace(recipe, best_epoch=False))
    assert last == {"accuracy": 0.0}
    assert evaluate(tmp_path / "last", WARRANTS, examples) == {"accuracy": 1.0}
