"""How few heads matter in the course of fine-tuning: checkpoints from it, each pruned by its own importance."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers
import xarray as xr

from analysis.encoders.checkpoints import recipe_of
from analysis.encoders.finetuning import Stops, finetune
from analysis.encoders.importance import importance
from analysis.encoders.interventions import predict
from analysis.encoders.models import Encoder, load_encoder, load_tokenizer
from analysis.errors import InputError
from analysis.papers.michel2019.orders import by_importance, digest, kept
from analysis.papers.michel2019.pruning import pruned_steps
from analysis.papers.michel2019.tables import Labels
from analysis.statistics.answers import metrics_of
from analysis.statistics.changes import change_table
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples

DYNAMICS = ["task", "fraction", "heads", "metric", "value", "low", "high"]
ORDER = "importance"


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
    recipe = _recipe(checkpoint)
    examples = {
        split: load_examples(task, source, split, recipe.pop(f"{split}_n"), seed)
        for split in ("train", "dev")
    }
    parts = (*examples.values(), scored, measured)
    texts = [(each.id, each.texts, each.label) for part in parts for each in part]
    made = [torch.__version__, transformers.__version__, device, precision]
    name = digest([load_encoder(encoder).digest, task, recipe, texts, [*fractions], made, options])

    def make() -> xr.DataArray:
        work = folder / f"course-{name}"
        stops = Stops(work, fractions, load_tokenizer(encoder))
        finetune(encoder, task, *examples.values(), work / "last", callbacks=[stops], **recipe)
        found = [
            _pruned(
                load_encoder(stops.folders[each], device, precision, task), scored, measured, folder, options
            )
            for each in fractions
        ]
        shutil.rmtree(work)
        return xr.concat(found, pd.Index(fractions, name="fraction"), combine_attrs="drop_conflicts")

    return kept(folder / f"course-{name}.nc", make)


def _recipe(checkpoint: Path) -> dict[str, Any]:
    """The recipe of a checkpoint; the error without one says how to do without."""
    try:
        return recipe_of(checkpoint)
    except InputError as error:
        raise InputError(f"{error}, or skip the course with course_tasks=[]") from error


def _pruned(
    encoder: Encoder,
    scored: Sequence[Example],
    measured: Sequence[Example],
    folder: Path,
    options: dict[str, Any],
) -> xr.DataArray:
    """Logits of one classifier, pruned step by step by its importance."""
    order = by_importance(importance(encoder, measured, **options).sel(granularity="example", drop=True))
    return predict(encoder, scored, pruned_steps(encoder, {ORDER: order}), cache=folder, **options)


def dynamics_table(courses: dict[str, xr.DataArray], labels: Labels, **options: float) -> pd.DataFrame:
    """Scores of the classifiers of each course by the number of pruned heads: columns DYNAMICS.

    `low` and `high` are the score without pruning plus the ends of the paired interval of the change.
    """
    if not courses:
        return pd.DataFrame(columns=DYNAMICS)
    parts = []
    for task, found in courses.items():
        for fraction in found["fraction"].values:
            table = change_table(found.sel(fraction=fraction), labels[task], metrics_of(task), **options)
            heads = table["intervention"].str.rsplit(" ", n=1).str[1].astype(int)
            table = table.assign(heads=heads, task=task, fraction=fraction)
            whole = table.drop_duplicates("metric").assign(heads=0, change=0.0, low=0.0, high=0.0)
            parts.append(pd.concat([whole, table]).sort_values(["metric", "heads"], kind="stable"))
    table = pd.concat(parts, ignore_index=True)
    value, low, high = (table["baseline"] + table[name] for name in ("change", "low", "high"))
    return table.assign(value=value, low=low, high=high)[DYNAMICS]
