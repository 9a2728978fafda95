"""How the models are trained: small models and encoders."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import transformers
import xarray as xr

from analysis.encoders.finetuning import finetune
from analysis.encoders.interventions import NONE, predict
from analysis.encoders.models import Encoder, load_encoder, weights_digest
from analysis.papers.niven2019.accuracy import RUN
from analysis.papers.niven2019.arguments import BAG, ENCODER, ORIGINAL, TASK, Argument, as_examples
from analysis.papers.niven2019.networks import Vocabulary, answers, fitted_words, points, recipe
from analysis.papers.niven2019.runs import Logits, Run, Sets, Trained, Trainer

KEPT = ("full", "W")  # set-ups whose fine-tuned encoders are kept, to look at their heads


def small_trainer(words: Vocabulary, epochs: int, hidden: int | None = None, fits: float = 0.0) -> Trainer:
    """Trains bags of vectors and BiLSTMs on word vectors, with `fits` until they fit (see `networks.fitted_words`)."""
    about = {
        "words": hashlib.sha256(json.dumps([*words.words]).encode() + words.vectors.tobytes()).hexdigest(),
        "epochs": epochs,
        "hidden": hidden,
        "fits": fits,
        "versions": torch.__version__,
    }

    def make(run: Run, sets: Sets, folder: Path) -> Trained:
        def read(arguments: Sequence[Argument]):
            return points(arguments, run.setup, words.words, joined=run.model == BAG)

        made = recipe(run.model, run.setup, run.trained_on, epochs, hidden)
        splits = sets.trained_on(run)
        model = fitted_words(read(splits["train"]), read(splits["dev"]), words.vectors, made, run.seed, fits)
        return Trained(lambda arguments: answers(model, read(arguments)), weights_digest(model))

    return Trainer(make, about)


def encoder_trainer(
    name: str,
    epochs: Mapping[str, int],
    batch_size: int,
    learning_rate: float,
    max_tokens: int = 80,
    device: str = "cpu",
    precision: str = "float32",
    fits: float = 0.0,
    kept: Sequence[str] = KEPT,
) -> Trainer:
    """Fine-tunes an encoder with a multiple-choice head; `epochs`, the most that are trained, depends on the training
    set. With `fits`, training ends with the epoch that fits (see `finetune`).

    Checkpoints of the set-ups `kept` that are trained on the original arguments are kept; the others are deleted after
    they have answered.
    """
    options = {
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "max_tokens": max_tokens,
        "fits": fits,
    }
    versions = [torch.__version__, transformers.__version__]
    about = {**options, "weights": load_encoder(name).digest, "epochs": dict(epochs), "versions": versions,
             "device": device, "precision": precision}  # fmt: skip

    def make(run: Run, sets: Sets, folder: Path) -> Trained:
        splits = sets.trained_on(run)
        train, dev = (as_examples(splits[split], run.setup) for split in ("train", "dev"))
        finetune(
            name, TASK, train, dev, folder, epochs[run.trained_on], seed=run.seed, device=device,
            precision=precision, **options,
        )  # fmt: skip
        encoder = load_encoder(folder, device, task=TASK)
        if run.setup not in kept or run.trained_on != ORIGINAL:
            shutil.rmtree(folder)

        def answer(arguments: Sequence[Argument]) -> Logits:
            examples = as_examples(arguments, run.setup)
            return (
                predict(encoder, examples, [], max_tokens=max_tokens, progress=False)
                .sel(intervention=NONE)
                .values
            )

        return Trained(answer, encoder.digest)

    return Trainer(make, about)


def finetuned_states(
    sets: Sets, folder: Path, train: Trainer, collected: xr.Dataset, device: str = "cpu"
) -> dict[Run, Encoder]:
    """The fine-tuned encoders of `collected` runs that fit and whose checkpoints are kept (see KEPT); all if none fits.

    A lost checkpoint is trained again.
    """
    values = zip(*(collected[name].values.tolist() for name in RUN), strict=True)
    fitted = dict(zip([Run(*each) for each in values], collected["fitted"].values.tolist(), strict=True))
    kept = [run for run in fitted if (run.model, run.trained_on) == (ENCODER, ORIGINAL) and run.setup in KEPT]
    found = {}
    for run in [run for run in kept if fitted[run]] or kept:
        place = train.place(run, sets, folder)
        if not place.is_dir():
            train.make(run, sets, place)
        found[run] = load_encoder(place, device, task=TASK)
    return found
