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
from analysis.papers.niven2019.networks import Vocabulary, answers, points, published_recipe, train_words
from analysis.papers.niven2019.runs import Answer, Logits, Run, Sets, Trainer

WITH_CHECKPOINTS = ("full", "W")  # set-ups whose fine-tuned encoders stay on disk, so that heads can be read


def small_trainer(words: Vocabulary, epochs: int, hidden: int | None = None, fits: float = 0.0) -> Trainer:
    """Trains bags of vectors and BiLSTMs on word vectors, with `fits` until they fit (see `networks.train_words`)."""
    about = {
        "words": hashlib.sha256(json.dumps([*words.words]).encode() + words.vectors.tobytes()).hexdigest(),
        "epochs": epochs,
        "hidden": hidden,
        "fits": fits,
        "versions": torch.__version__,
    }

    def make(run: Run, sets: Sets, folder: Path) -> tuple[Answer, str]:
        def read(arguments: Sequence[Argument]):
            return points(arguments, run.setup, words.words, joined=run.model == BAG)

        recipe = published_recipe(run.model, run.setup, run.trained_on, epochs, hidden)
        train, dev = (read(sets[run.trained_on][split]) for split in ("train", "dev"))
        model = train_words(train, dev, words.vectors, recipe, run.seed, fits)
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
    fits: float = 0.0,
) -> Trainer:
    """Fine-tunes an encoder with a multiple-choice head; `epochs`, the most that are trained, depends on the training
    set. With `fits`, training ends with the epoch that fits (see `finetune`).

    Checkpoints that `finetuned_states` needs stay on disk; others are deleted as soon as they are loaded.
    """
    options = dict(batch_size=batch_size, learning_rate=learning_rate, max_tokens=max_tokens, fits=fits)
    versions = [torch.__version__, transformers.__version__]
    about = {**options, "weights": load_encoder(name).digest, "epochs": dict(epochs), "versions": versions,
             "device": device, "precision": precision}  # fmt: skip

    def make(run: Run, sets: Sets, folder: Path) -> tuple[Answer, str]:
        train, dev = (as_examples(sets[run.trained_on][split], run.setup) for split in ("train", "dev"))
        finetune(
            name, TASK, train, dev, folder, epochs[run.trained_on], seed=run.seed, device=device,
            precision=precision, **options,
        )  # fmt: skip
        encoder = load_encoder(folder, device, task=TASK)
        if not _has_checkpoint(run):
            shutil.rmtree(folder)

        def answer(arguments: Sequence[Argument]) -> Logits:
            examples = as_examples(arguments, run.setup)
            logits = predict(encoder, examples, [], max_tokens=max_tokens, progress=False)
            return logits.sel(intervention=NONE).values

        return answer, encoder.digest

    return Trainer(make, about)


def _has_checkpoint(run: Run) -> bool:
    return (run.model, run.trained_on) == (ENCODER, ORIGINAL) and run.setup in WITH_CHECKPOINTS


def finetuned_states(
    sets: Sets, folder: Path, train: Trainer, collected: xr.Dataset, device: str = "cpu"
) -> dict[Run, Encoder]:
    """The fine-tuned encoders of `collected` runs that have checkpoints and fit; all with checkpoints if none fits.

    A lost checkpoint is trained again.
    """
    keys = zip(*(collected[name].values.tolist() for name in RUN), strict=True)
    fitted = dict(zip([Run(*key) for key in keys], collected["fitted"].values.tolist(), strict=True))
    runs = [run for run in fitted if _has_checkpoint(run)]
    encoders = {}
    for run in [run for run in runs if fitted[run]] or runs:
        place = train.place(run, sets, folder)
        if not place.is_dir():
            train.make(run, sets, place)
        encoders[run] = load_encoder(place, device, task=TASK)
    return encoders
