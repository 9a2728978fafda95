"""Checkpoint folders and the record of how each was made, which is saved with the weights."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.files import read_text, write_text

RECIPE = "recipe.json"
OPTIONS = ("epochs", "batch_size", "learning_rate", "warmup", "seed", "max_tokens", "device", "precision")
UNLOGGED = ("_loss", "_runtime", "_per_second", "_time")  # endings of entries of the log that are no metric


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`; what killed runs left there is removed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for killed in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(killed)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as work:
        yield Path(work)


def keep(encoder: Encoder, folder: Path, record: dict[str, Any]) -> None:
    """Saves a checkpoint folder and the record of how it was made, whole or not at all; an earlier one is replaced."""
    with working_folder(folder) as work:
        encoder.model.save_pretrained(work / folder.name)
        encoder.tokenizer.save_pretrained(work / folder.name)
        write_text(work / folder.name / RECIPE, json.dumps(record, indent=1))
        if folder.exists():
            folder.rename(work / "earlier")
        (work / folder.name).rename(folder)


def record_of(folder: Path) -> dict[str, Any]:
    """The record that `keep` saved with a checkpoint; empty if the file is missing or damaged."""
    try:
        record = json.loads(read_text(folder / RECIPE))
    except ValueError:  # an InputError too
        return {}
    return record if isinstance(record, dict) else {}


def recipe_of(folder: Path) -> dict[str, Any]:
    """The options of `finetune` that made a checkpoint, by name, with the numbers of examples train_n and dev_n."""
    try:
        recipe = record_of(folder)["recipe"]
        sizes = dict(zip(("train_n", "dev_n"), recipe["sizes"], strict=True))
        return sizes | dict(zip(OPTIONS, recipe["options"], strict=True))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} does not tell how it was fine-tuned: take one that 00_finetune made"
        ) from error


def training_history(folder: Path) -> pd.DataFrame:
    """The log of the training that made a checkpoint: epoch, measure and value, a row per epoch and measure.

    The measures are "training loss" and the metrics on the dev examples, where training scored every epoch. A
    checkpoint that was made elsewhere has no rows.
    """
    rows = [
        (entry["epoch"], "training loss" if name == "loss" else name.removeprefix("eval_"), value)
        for entry in record_of(folder).get("log", [])
        for name, value in entry.items()
        if name == "loss" or (name.startswith("eval_") and not name.endswith(UNLOGGED))
    ]
    return pd.DataFrame(rows, columns=["epoch", "measure", "value"])
