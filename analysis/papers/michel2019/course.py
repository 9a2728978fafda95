"""Classifiers from the course of fine-tuning, each pruned by its own importance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch
import transformers
import xarray as xr

from analysis.cache import cached
from analysis.encoders.finetuning import Stops, finetune, recipe_of
from analysis.encoders.interventions import predict
from analysis.encoders.models import Encoder, load_encoder, load_tokenizer
from analysis.encoders.pruning import importance
from analysis.errors import InputError
from analysis.papers.michel2019.measures import IMPORTANCE
from analysis.papers.michel2019.pruning import by_importance, pruned_steps
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples


def course(
    encoder: str,
    task: str,
    checkpoint: Path,
    source: str,
    dev_sample: Sequence[Example],
    train_sample: Sequence[Example],
    fractions: Sequence[float],
    folder: Path,
    seed: int = 0,
    device: str = "cpu",
    precision: str = "float32",
    **options: Any,
) -> xr.DataArray:
    """Logits (fraction, intervention, sequence, class) of classifiers after fractions of fine-tuning, pruned in steps.

    The recipe of `checkpoint` runs again. Each classifier is pruned by its importance for `train_sample` and answers
    `dev_sample`. The result is cached in `folder`, and the classifiers are deleted. Raises InputError for a checkpoint
    that `finetune` did not write.
    """
    try:
        recipe = recipe_of(checkpoint)
    except InputError as error:
        raise InputError(f"{error}, or skip the course with course_tasks=[]") from error
    sizes = {split: recipe.pop(f"{split}_n") for split in ("train", "dev")}
    training = [load_examples(task, source, split, n, seed) for split, n in sizes.items()]
    examples = [example for part in (*training, dev_sample, train_sample) for example in part]
    texts = [(example.id, example.texts, example.label) for example in examples]
    arithmetic = [torch.__version__, transformers.__version__, device, precision]

    def make() -> xr.Dataset:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix="course-") as work:
            stops = Stops(Path(work), fractions, load_tokenizer(encoder))
            finetune(encoder, task, *training, Path(work) / "last", callbacks=[stops], **recipe)
            parts = []
            for fraction in fractions:
                classifier = load_encoder(stops.folders[fraction], device, precision, task)
                parts.append(pruned_logits(classifier, dev_sample, train_sample, folder, **options))
        logits = xr.concat(parts, pd.Index(fractions, name="fraction"), combine_attrs="drop_conflicts")
        return logits.to_dataset(name="logits")

    key = [load_encoder(encoder).digest, task, recipe, texts, [*fractions], arithmetic, options]
    return cached(folder, "course", key, make)["logits"]


def pruned_logits(
    classifier: Encoder,
    dev_sample: Sequence[Example],
    train_sample: Sequence[Example],
    folder: Path,
    **options: Any,
) -> xr.DataArray:
    """The logits for `dev_sample` of a classifier pruned step by step by its importance for `train_sample`."""
    importances = importance(classifier, train_sample, **options).sel(granularity="example", drop=True)
    steps = pruned_steps(classifier, {IMPORTANCE: by_importance(importances)})
    return predict(classifier, dev_sample, steps, cache=folder, **options)


def stages(courses: Mapping[str, xr.DataArray]) -> dict[tuple[str, float], xr.DataArray]:
    """The logits of every classifier of the courses, by task and fraction of the fine-tuning steps."""
    return {
        (task, fraction): course.sel(fraction=fraction)
        for task, course in courses.items()
        for fraction in course["fraction"].values
    }
