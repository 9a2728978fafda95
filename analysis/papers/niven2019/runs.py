"""Training runs: the list of runs, a file for each, and their answers on the test set."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float32
from tqdm import tqdm

from analysis.cache import cached, digest
from analysis.errors import InputError
from analysis.papers.niven2019.accuracy import RUN
from analysis.papers.niven2019.arguments import DOUBLED, ENCODER, ORIGINAL, SETUPS, Argument
from analysis.papers.niven2019.negation import ADVERSARIAL, adversarial
from analysis.statistics.training import floor, trained_successfully

# Set-ups that see the claim: only these can tell the halves of the adversarial set apart.
PROBED = ("full", "CW")
NEXT_SEED = 100  # is added to the seed of a run that is repeated because it does not fit
Logits = Float32[np.ndarray, "point warrant"]
Answer = Callable[[Sequence[Argument]], Logits]
Sets = Mapping[str, Mapping[str, Sequence[Argument]]]  # arguments by training set and split


@dataclass(frozen=True)
class Run:
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
    def can_fit(self) -> bool:
        """Whether the model can tell the training points apart.

        In the adversarial set every warrant is right as often as wrong: a model must see the claim, and must not score
        claim and warrant by a sum, as the small models do.
        """
        return self.trained_on == ORIGINAL or (self.model == ENCODER and self.setup in PROBED)


def plan(
    model: str,
    seeds: Iterable[int],
    setups: Sequence[str] = tuple(SETUPS),
    probed: Sequence[str] = PROBED,
) -> list[Run]:
    """The runs of a model: `setups` trained on the original arguments, `probed` on the adversarial set.

    The order is by seed, so that an unfinished series has complete seeds. Raises InputError for an unknown set-up.
    """
    if unknown := [setup for setup in (*setups, *probed) if setup not in SETUPS]:
        raise InputError(f"set-up {unknown[0]!r} is unknown; choose from {', '.join(SETUPS)}")
    pairs = [(setup, ORIGINAL) for setup in setups] + [(setup, DOUBLED) for setup in probed]
    return [Run(model, setup, trained_on, seed) for seed in seeds for setup, trained_on in pairs]


def training_sets(splits: Mapping[str, Sequence[Argument]]) -> Sets:
    """The splits of the original arguments, and those of the adversarial set that `negation.adversarial` makes."""
    return {ORIGINAL: splits, DOUBLED: {split: adversarial(part) for split, part in splits.items()}}


@dataclass(frozen=True)
class Trainer:
    """How models are trained; `about` holds everything that this depends on except the run and the arguments.

    `make` receives a run, the sets and the folder for a checkpoint; it returns the function that gives the logits of
    the model, and the digest of its weights.
    """

    make: Callable[[Run, Sets, Path], tuple[Answer, str]]
    about: Mapping[str, Any]

    def depends_on(self, run: Run, sets: Sets) -> list[Any]:
        """Everything that a run depends on."""
        texts = [list(map(vars, sets[run.trained_on][split])) for split in ("train", "dev")]
        return [asdict(run), dict(self.about), texts, list(map(vars, sets[DOUBLED]["test"]))]

    def place(self, run: Run, sets: Sets, folder: Path) -> Path:
        """Where a run may keep a checkpoint."""
        return folder / f"{run.name}-{digest(self.depends_on(run, sets))}"


def collect(
    runs: Sequence[Run], sets: Sets, folder: Path, train: Trainer, fits: float = 0.0, spare: int = 0
) -> dict[Run, xr.Dataset]:
    """The answers of every run on the adversarial test set, which begins with the original one.

    `logits` (point, warrant), `train_accuracy`, `dev_accuracy`, `fitted`, and the digest of the `weights`. A run is
    `fitted` if its train accuracy is at least `fits` and above the share of the most frequent label
    (`training.trained_successfully`). One that is not, but could be, is repeated with its seed plus 100, 200 and so on,
    until one is or `spare` runs of its set-up have been repeated; all are returned. The answers of each run are saved
    to a file of `folder` that is named after its recipe, so that a killed series resumes with the next run.
    """
    answers: dict[Run, xr.Dataset] = {}
    spares = {(run.setup, run.trained_on): spare for run in runs}
    bar = tqdm(runs, desc="training", unit="run")
    for run in bar:
        bar.set_postfix_str(f"{run.model}, {run.setup}, {run.trained_on}, seed {run.seed}")
        answers[run] = answered(run, sets, folder, train, fits)
        while run.can_fit and not answers[run]["fitted"] and spares[run.setup, run.trained_on]:
            spares[run.setup, run.trained_on] -= 1
            run = replace(run, seed=run.seed + NEXT_SEED)
            answers[run] = answered(run, sets, folder, train, fits)
    return answers


def joined(answers: Mapping[Run, xr.Dataset]) -> xr.Dataset:
    """The answers of all runs (run, point, warrant), with the digest of all their weights as an attribute.

    Coordinates: model, setup, trained_on and seed of a run; half (original or adversarial) and label of a point.
    Raises InputError if there are no runs.
    """
    if not answers:
        raise InputError("there is no run: give seeds to at least one model")
    coordinates = {name: ("run", [getattr(run, name) for run in answers]) for name in RUN}
    joint = xr.concat([*answers.values()], "run").assign_coords(coordinates)
    weights = "".join(joint["weights"].values.tolist())
    return joint.assign_attrs(weights=hashlib.sha256(weights.encode()).hexdigest())


def answered(run: Run, sets: Sets, folder: Path, train: Trainer, fits: float) -> xr.Dataset:
    """The answers of a run, from its file if there is one, and whether it has fitted its training set."""
    make = partial(_train_and_answer, run, sets, train, train.place(run, sets, folder))
    answers = cached(folder, run.name, train.depends_on(run, sets), make)
    labels = np.array([argument.label for argument in sets[run.trained_on]["train"]])
    accuracy = float(answers["train_accuracy"])
    trained = trained_successfully("accuracy", accuracy, len(labels), floor("accuracy", labels))
    return answers.assign(fitted=accuracy >= fits and trained)


def _train_and_answer(run: Run, sets: Sets, train: Trainer, path: Path) -> xr.Dataset:
    """Trains a run and collects its answers."""
    answer, weights = train.make(run, sets, path)

    def accuracy(arguments: Sequence[Argument]) -> float:
        labels = [argument.label for argument in arguments]
        return float((logits_of(answer, arguments, run.setup).argmax(1) == labels).mean())

    test = sets[DOUBLED]["test"]
    halves = [DOUBLED if argument.id.endswith(ADVERSARIAL) else ORIGINAL for argument in test]
    return xr.Dataset(
        {
            "logits": (("point", "warrant"), logits_of(answer, test, run.setup)),
            "train_accuracy": accuracy(sets[run.trained_on]["train"]),
            "dev_accuracy": accuracy(sets[run.trained_on]["dev"]),
            "weights": weights,
        },
        {
            "point": [argument.id for argument in test],
            "half": ("point", halves),
            "label": ("point", [argument.label for argument in test]),
        },
    )


def logits_of(answer: Answer, arguments: Sequence[Argument], setup: str) -> Logits:
    """The logits of arguments, computed once for those that look the same in the set-up."""
    keys = [
        (*(getattr(argument, part) for part in SETUPS[setup]), *argument.warrants) for argument in arguments
    ]
    first = {key: argument for key, argument in zip(reversed(keys), reversed(arguments), strict=True)}
    logits = answer([*first.values()])
    places = {key: place for place, key in enumerate(first)}
    return logits[[places[key] for key in keys]]
