"""Training runs of small models and encoders, and their answers on the test set, a file for each run."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
import xarray as xr
from jaxtyping import Float32
from tqdm import tqdm

from analysis.cache import cached, digest
from analysis.encoders.classifiers import load_classifier
from analysis.encoders.finetuning import Recipe, finetune
from analysis.encoders.interventions import NONE, predict
from analysis.encoders.models import Encoder, load_encoder, weights_digest
from analysis.errors import InputError
from analysis.papers.niven2019.accuracy import HALVES, RUN
from analysis.papers.niven2019.arguments import (
    ARCT,
    BAG,
    DOUBLED,
    ENCODER,
    ORIGINAL,
    SETUPS,
    Argument,
    as_examples,
    released_sets,
)
from analysis.papers.niven2019.negation import adversarial
from analysis.papers.niven2019.networks import Vocabulary, answers, points, published_recipe, train_words
from analysis.statistics.training import floor, trained_successfully

WITH_CHECKPOINTS = ("full", "W")  # set-ups whose fine-tuned encoders stay on disk, so that heads can be read
Logits = Float32[np.ndarray, "point warrant"]
Answer = Callable[[Sequence[Argument]], Logits]
Sets = Mapping[str, Mapping[str, Sequence[Argument]]]  # arguments by training set and split


@dataclass(frozen=True)
class TrainingRun:
    """One training run: the model, what it sees, what it is trained on, and its seed."""

    model: str
    setup: str
    trained_on: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the run in files."""
        return f"{self.model.replace(' ', '_')}-{self.setup}-{self.trained_on}-{self.seed}"

    @property
    def has_checkpoint(self) -> bool:
        """Whether the fine-tuned encoder stays on disk."""
        return (self.model, self.trained_on) == (ENCODER, ORIGINAL) and self.setup in WITH_CHECKPOINTS


def plan(
    model: str,
    seeds: Iterable[int],
    setups: Sequence[str] = tuple(SETUPS),
    probed: Sequence[str] = (),
    sets: Sequence[str] = (DOUBLED,),
) -> list[TrainingRun]:
    """The runs of a model: `setups` trained on the original arguments, `probed` on the adversarial training `sets`.

    The order is by seed, so that an unfinished series has complete seeds. Raises InputError for an unknown set-up.
    """
    if unknown := [setup for setup in (*setups, *probed) if setup not in SETUPS]:
        raise InputError(f"set-up {unknown[0]!r} is unknown; choose from {', '.join(SETUPS)}")
    pairs = [(setup, ORIGINAL) for setup in setups] + [(setup, name) for name in sets for setup in probed]
    return [TrainingRun(model, setup, trained_on, seed) for seed in seeds for setup, trained_on in pairs]


def training_sets(splits: Mapping[str, Sequence[Argument]], folder: str | Path | None = None) -> Sets:
    """The splits of the original arguments, and of adversarial sets: those of the authors' files in a folder.

    Without a folder there is one, DOUBLED, that `negation.adversarial` makes.
    """
    if folder:
        return {ORIGINAL: splits} | released_sets(folder, splits)
    return {ORIGINAL: splits, DOUBLED: {split: adversarial(part) for split, part in splits.items()}}


@dataclass(frozen=True)
class Trainer:
    """How models are trained; `about` holds everything that this depends on except the run and the arguments.

    `make` receives a run, the sets and the folder for a checkpoint; it returns the function that gives the logits of
    the model, and the digest of its weights.
    """

    make: Callable[[TrainingRun, Sets, Path], tuple[Answer, str]]
    about: Mapping[str, Any]

    def depends_on(self, run: TrainingRun, sets: Sets) -> list[Any]:
        """Everything that a run depends on."""
        arguments = sets[run.trained_on]["train"], sets[DOUBLED]["test"]
        return [asdict(run), dict(self.about), *([vars(argument) for argument in part] for part in arguments)]

    def place(self, run: TrainingRun, sets: Sets, folder: Path) -> Path:
        """Where a run may keep a checkpoint."""
        return folder / f"{run.name}-{digest(self.depends_on(run, sets))}"


def small_trainer(words: Vocabulary, epochs: int, hidden: int | None = None) -> Trainer:
    """Trains bags of vectors and BiLSTMs on word vectors (see `networks.train_words`)."""
    vectors = json.dumps([*words.words]).encode() + words.vectors.tobytes()
    about = {"words": hashlib.sha256(vectors).hexdigest(), "epochs": epochs, "hidden": hidden}
    about["versions"] = torch.__version__

    def make(run: TrainingRun, sets: Sets, folder: Path) -> tuple[Answer, str]:
        def read(arguments: Sequence[Argument]):
            return points(arguments, run.setup, words.words, joined=run.model == BAG)

        recipe = published_recipe(run.model, run.setup, run.trained_on, epochs, hidden)
        model = train_words(read(sets[run.trained_on]["train"]), words.vectors, recipe, run.seed)
        return lambda arguments: answers(model, read(arguments)), weights_digest(model)

    return Trainer(make, about)


def encoder_trainer(
    name: str,
    epochs: Mapping[str, int],
    batch_size: int,
    learning_rate: float,
    max_tokens: int = 80,
    device: str = "cpu",
    precision: str = "float32",
) -> Trainer:
    """Fine-tunes an encoder with a multiple-choice head; the number of epochs depends on the training set.

    Checkpoints that `finetuned_states` needs stay on disk; others are deleted as soon as they are loaded.
    """
    options = dict(batch_size=batch_size, learning_rate=learning_rate, max_tokens=max_tokens, device=device,
                   precision=precision, best_epoch=False)  # fmt: skip
    versions = [torch.__version__, transformers.__version__]
    about = options | {"weights": load_encoder(name).digest, "epochs": dict(epochs), "versions": versions}

    def make(run: TrainingRun, sets: Sets, folder: Path) -> tuple[Answer, str]:
        train, dev = (as_examples(sets[run.trained_on][split], run.setup) for split in ("train", "dev"))
        finetune(name, ARCT, train, dev, folder, Recipe(epochs[run.trained_on], seed=run.seed, **options))
        encoder = load_classifier(folder, ARCT, device)
        if not run.has_checkpoint:
            shutil.rmtree(folder)

        def answer(arguments: Sequence[Argument]) -> Logits:
            examples = as_examples(arguments, run.setup)
            logits = predict(encoder, examples, [], max_tokens=max_tokens, progress=False)
            return logits.sel(intervention=NONE).values

        return answer, encoder.digest

    return Trainer(make, about)


def finetuned_states(
    sets: Sets, folder: Path, train: Trainer, answers: xr.Dataset, device: str = "cpu"
) -> dict[TrainingRun, Encoder]:
    """The fine-tuned encoders, by run, of those that have a checkpoint and trained successfully, or all if none did.

    A lost checkpoint is trained again.
    """
    keys = zip(*(answers[name].values.tolist() for name in RUN), strict=True)
    trained = dict(zip((TrainingRun(*key) for key in keys), answers["trained"].values.tolist(), strict=True))
    runs = [run for run in trained if run.has_checkpoint]
    encoders = {}
    for run in [run for run in runs if trained[run]] or runs:
        place = train.place(run, sets, folder)
        if not place.is_dir():
            train.make(run, sets, place)
        encoders[run] = load_classifier(place, ARCT, device)
    return encoders


def collect(
    runs: Sequence[TrainingRun], sets: Sets, folder: Path, train: Trainer
) -> dict[TrainingRun, xr.Dataset]:
    """The answers of every run on the adversarial test set: `logits` (half, point, warrant).

    With them `train_accuracy`, the digest of the `weights`, and `trained`: whether the training accuracy is above the
    share of the most frequent label (see `training.trained_successfully`). The answers of each run are saved to a file
    of `folder` that is named after its recipe, so that a killed series resumes with the next run.
    """
    collected: dict[TrainingRun, xr.Dataset] = {}
    bar = tqdm(runs, desc="training", unit="run")
    for run in bar:
        bar.set_postfix_str(f"{run.model}, {run.setup}, {run.trained_on}, seed {run.seed}")
        make = partial(_train_and_answer, run, sets, train, train.place(run, sets, folder))
        collected[run] = cached(folder, run.name, train.depends_on(run, sets), make)
    return collected


def joined(collected: Mapping[TrainingRun, xr.Dataset]) -> xr.Dataset:
    """The answers of all runs (run, half, point, warrant), with the digest of all their weights as an attribute.

    Coordinates: model, setup, trained_on and seed of a run, and whether it trained successfully; the label of a point.
    Raises InputError if there are no runs.
    """
    if not collected:
        raise InputError("there is no run: give seeds to at least one model")
    coordinates = {name: ("run", [getattr(run, name) for run in collected]) for name in RUN}
    joint = xr.concat([*collected.values()], "run").assign_coords(coordinates).set_coords("trained")
    weights = "".join(joint["weights"].values.tolist())
    return joint.assign_attrs(weights=hashlib.sha256(weights.encode()).hexdigest())


def _train_and_answer(run: TrainingRun, sets: Sets, train: Trainer, path: Path) -> xr.Dataset:
    """Trains a run and collects its answers."""
    answer, weights = train.make(run, sets, path)
    learnt, test = sets[run.trained_on]["train"], sets[DOUBLED]["test"]
    labels, test_labels = (np.array([point.label for point in part]) for part in (learnt, test))
    accuracy = float((logits_of(answer, learnt, run.setup).argmax(1) == labels).mean())
    trained = trained_successfully("accuracy", accuracy, len(labels), floor("accuracy", labels))
    logits = ("half", "point", "warrant"), logits_of(answer, test, run.setup).reshape(2, -1, 2)
    points = [argument.id for argument in test[: len(test) // 2]]
    return xr.Dataset(
        {"logits": logits, "train_accuracy": accuracy, "trained": trained, "weights": weights},
        {"half": [*HALVES], "point": points, "label": (("half", "point"), test_labels.reshape(2, -1))},
    )


def logits_of(answer: Answer, arguments: Sequence[Argument], setup: str) -> Logits:
    """The logits of arguments, computed once for those that look the same in the set-up."""
    texts = ([getattr(argument, part) for part in SETUPS[setup]] for argument in arguments)
    keys = [(*parts, *argument.warrants) for parts, argument in zip(texts, arguments, strict=True)]
    first = {key: argument for key, argument in zip(reversed(keys), reversed(arguments), strict=True)}
    logits = answer([*first.values()])
    places = {key: place for place, key in enumerate(first)}
    return logits[[places[key] for key in keys]]
