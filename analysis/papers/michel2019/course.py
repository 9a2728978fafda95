"""How few heads matter in the course of fine-tuning: checkpoints from it, each pruned by its own importance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch
import transformers
import xarray as xr

from analysis.cache import cached
from analysis.encoders.checkpoints import recipe_of
from analysis.encoders.finetuning import Stops, finetune
from analysis.encoders.importance import importance
from analysis.encoders.interventions import predict
from analysis.encoders.models import load_encoder, load_tokenizer
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
    scored: Sequence[Example],
    measured: Sequence[Example],
    fractions: Sequence[float],
    folder: Path,
    seed: int = 0,
    device: str = "cpu",
    precision: str = "float32",
    **options: Any,
) -> xr.DataArray:
    """Logits (fraction, intervention, sequence, class) of classifiers after fractions of fine-tuning, pruned in steps.

    The recipe of `checkpoint` runs again. Each classifier is pruned by its importance for the examples `measured` and
    then answers the sequences `scored`, with `device` and `precision` as in `load_encoder`. `folder` keeps the result;
    the classifiers are deleted. Raises InputError for a checkpoint that `finetune` did not write.
    """
    try:
        recipe = recipe_of(checkpoint)
    except InputError as error:
        raise InputError(f"{error}, or skip the course with course_tasks=[]") from error
    training = [
        load_examples(task, source, split, recipe.pop(f"{split}_n"), seed) for split in ("train", "dev")
    ]
    examples = [example for part in (*training, scored, measured) for example in part]
    texts = [(example.id, example.texts, example.label) for example in examples]
    arithmetic = [torch.__version__, transformers.__version__, device, precision]

    def pruned(place: Path) -> xr.DataArray:
        """The logits of one classifier, pruned step by step by its importance."""
        model = load_encoder(place, device, precision, task)
        order = by_importance(importance(model, measured, **options).sel(granularity="example", drop=True))
        return predict(model, scored, pruned_steps(model, {IMPORTANCE: order}), cache=folder, **options)

    def make() -> xr.Dataset:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix="course-") as work:
            stops = Stops(Path(work), fractions, load_tokenizer(encoder))
            finetune(encoder, task, *training, Path(work) / "last", callbacks=[stops], **recipe)
            parts = [pruned(stops.folders[fraction]) for fraction in fractions]
        logits = xr.concat(parts, pd.Index(fractions, name="fraction"), combine_attrs="drop_conflicts")
        return logits.to_dataset(name="logits")

    key = [load_encoder(encoder).digest, task, recipe, texts, [*fractions], arithmetic, options]
    return cached(folder, "course", key, make)["logits"]


def stages(courses: Mapping[str, xr.DataArray]) -> dict[tuple[str, float], xr.DataArray]:
    """The logits of every classifier of the courses, by task and fraction of the fine-tuning steps."""
    return {
        (task, fraction): course.sel(fraction=fraction)
        for task, course in courses.items()
        for fraction in course["fraction"].values
    }
