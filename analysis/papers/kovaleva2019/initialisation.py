"""What pre-training gives: scores without fine-tuning, and after it from random weights (Kovaleva 2019, Table 1)."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch
import transformers
import xarray as xr

from analysis.encoders.finetuning import finetune
from analysis.encoders.interventions import predict
from analysis.encoders.measures import decide, measure
from analysis.encoders.models import (
    Encoder,
    load_classifier,
    load_encoder,
    load_tokenizer,
    random_encoder,
)
from analysis.errors import InputError
from analysis.papers.kovaleva2019.names import PRETRAINED, RANDOM
from analysis.papers.kovaleva2019.reading import kept
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

COLUMNS = ["task", "start", "seed", "metric", "value", "constant"]


def untuned_scores(
    name: str, task: str, dev: Sequence[Example], seed: int, max_tokens: int = 128, device: str = "cpu"
) -> dict[str, float]:
    """Dev scores of the encoder as it is, with a classification head whose random weights depend on the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = load_classifier(name, task_named(task).outputs)
    encoder = Encoder(str(name), model.eval().to(device), load_tokenizer(name))
    logits = predict(encoder, dev, [], max_tokens=max_tokens, progress=False)[0].values
    labels = pd.Series([example.label for example in dev]).to_numpy()
    return measure(task, labels, decide(task, logits))


def tuned_scores(
    folder: Path,
    start: str,
    name: str,
    task: str,
    train: Sequence[Example],
    dev: Sequence[Example],
    seed: int,
    **recipe: float | int | str,
) -> dict[str, float]:
    """Dev scores of an encoder trained on a task from a start: RANDOM (random weights by seed) or PRETRAINED.

    `recipe` holds further arguments of `finetune`. `folder` keeps the scores, so that the same recipe does not run
    again; the trained encoder is not kept. Raises InputError for another start.
    """
    if start not in (RANDOM, PRETRAINED):
        raise InputError(f"start {start!r} is unknown: choose {RANDOM} or {PRETRAINED}")

    def dataset() -> xr.Dataset:
        scores = _trained(start, name, task, train, dev, seed, recipe)
        return xr.Dataset({"value": ("metric", [*scores.values()])}, {"metric": [*scores]})

    texts = [(each.id, each.texts, each.label) for each in (*train, *dev)]
    about = {
        "encoder": load_encoder(name).digest,
        "examples": hashlib.sha256(repr(texts).encode()).hexdigest(),
        "versions": f"torch {torch.__version__}, transformers {transformers.__version__}",
        **recipe,
    }
    found = kept(folder / f"{start}-{task}-{seed}.nc", about, dataset)["value"]
    return dict(zip(found["metric"].values.tolist(), found.values.tolist(), strict=True))


def _trained(
    start: str,
    name: str,
    task: str,
    train: Sequence[Example],
    dev: Sequence[Example],
    seed: int,
    recipe: dict[str, float | int | str],
) -> dict[str, float]:
    with TemporaryDirectory() as work:
        source: str | Path = name
        if start == RANDOM:
            source = Path(work) / RANDOM
            drawn = random_encoder(name, seed)
            drawn.model.save_pretrained(source)
            drawn.tokenizer.save_pretrained(source)
        return finetune(source, task, train, dev, Path(work) / "trained", seed=seed, **recipe)


def start_name(start: str, rows: int, epochs: float | int) -> str:
    """The name of a start in the table, with the size of the training."""
    return f"{start}, {rows:,} rows, {epochs:g} epoch{'' if epochs == 1 else 's'}"


def initialisation_table(
    scores: Mapping[tuple[str, str, int], Mapping[str, float]], tuned: pd.DataFrame, epochs: float | int
) -> pd.DataFrame:
    """Dev scores by start: task, start, seed, metric, value, constant (the score of the most frequent class).

    `scores` maps task, start and seed to the scores of runs of this notebook; `tuned` holds the scores that 00_finetune
    saved (task, seed, metric, constant, finetuned, train), after `epochs`. The name of a start says how much training
    followed.
    """
    tasks = [*dict.fromkeys(task for task, *_ in scores)]
    kept_runs = tuned[tuned["task"].isin(tasks)]
    constant = kept_runs.groupby(["task", "metric"])["constant"].first()
    rows = [
        (task, start, seed, metric, value)
        for (task, start, seed), found in scores.items()
        for metric, value in found.items()
    ]
    rows += [
        (row.task, start_name(PRETRAINED, row.train, epochs), row.seed, row.metric, row.finetuned)
        for row in kept_runs.itertuples()
    ]
    table = pd.DataFrame(rows, columns=COLUMNS[:-1])
    table["constant"] = [constant[pair] for pair in zip(table["task"], table["metric"], strict=True)]
    return table.sort_values(["task", "metric", "seed"], kind="stable", ignore_index=True)
