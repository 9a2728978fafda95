"""What disabling heads and layers changes, and what pre-training gives (Kovaleva 2019, figures 8, 9 and Table 1)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
import transformers
import xarray as xr
from jaxtyping import Float, Shaped

from analysis.cache import cached
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
from analysis.papers.kovaleva2019.names import HEAD, PRETRAINED, RANDOM
from analysis.statistics.answers import Labels, metrics_of
from analysis.statistics.changes import BASELINE, Compared, by_head, change_table, rises
from analysis.statistics.resampling import bca
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

COLUMNS = "task seed unit layer head metric baseline change low high p p_by".split()


def over_passes(
    make: Callable[..., pd.DataFrame],
    logits: Mapping[tuple[str, str, int], xr.DataArray],
    labels: Mapping[str, Labels],
    *options: float | int,
) -> pd.DataFrame:
    """The rows of `disable_table` or `rise_table` for every pass; a pass is named by unit, task and seed."""
    parts = [
        make(task, run, unit, found, labels[task], *options) for (unit, task, run), found in logits.items()
    ]
    return pd.concat(parts, ignore_index=True)


def disable_table(
    task: str,
    run: int,
    unit: str,
    logits: xr.DataArray,
    labels: Labels,
    alpha: float = 0.05,
    resamples: int = 999,
    permutations: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """The change of each metric of a task, a row per head or layer: the columns COLUMNS.

    `logits` are those of `predict` for single heads (unit "head") or whole layers ("layer", without a head). change,
    low, high, p, p_by are as in `change_table`: exact McNemar for accuracy, swapped answers for F1 and Matthews.
    Source: Kovaleva 2019, figures 8 and 9; departure: the article has no test.
    """
    table = change_table(logits, labels, metrics_of(task), alpha, resamples, permutations, seed)
    if unit == HEAD:
        table = by_head(table)
    else:
        layers = table["intervention"].str.removeprefix("layer ").astype(int)
        table = table.assign(layer=layers, head=pd.array([None] * len(table), "Int64"))
    return table.assign(task=task, seed=run, unit=unit)[COLUMNS]


def rise_table(
    task: str,
    run: int,
    unit: str,
    logits: xr.DataArray,
    labels: Labels,
    alpha: float = 0.05,
    resamples: int = 999,
    permutations: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Whether disabling raises a task's first metric beyond chance, in one row.

    Columns task, seed, unit, metric, baseline; those of `changes.Rises` (how many variants raise the metric, how many
    do so by chance, how many rise beyond chance, and the rise that stands out most from chance, with its simultaneous
    interval); mean_change, mean_low, mean_high: the mean over all variants with its BCa interval over sequences; least:
    the smallest loss that the paired test detects at power .8, median over the variants.
    """
    metric = task_named(task).metrics[0]
    found = rises(logits, labels, metric, alpha, permutations, seed)
    table = change_table(logits, labels, [metric], alpha, resamples, permutations, seed)
    mean, low, high = mean_change(logits, labels, metric, alpha, resamples, seed)
    row = {"task": task, "seed": run, "unit": unit, "metric": metric, "baseline": table["baseline"].iloc[0]}
    row |= found._asdict() | {"mean_change": mean, "mean_low": low, "mean_high": high}
    return pd.DataFrame([row | {"least": table["least"].median()}])


def mean_change(
    logits: xr.DataArray,
    labels: Labels,
    metric: str,
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> tuple[float, float, float]:
    """The mean change over all interventions (that of disabling a random one), with its BCa interval over sequences."""
    without = logits["intervention"].values == BASELINE
    scored = logits.transpose("intervention", "sequence", "class").values
    compared = Compared.of(metric, scored[without], scored[~without], labels)

    def changes(counts: Shaped[np.ndarray, "*draw sequence"]) -> Float[np.ndarray, " *draw"]:
        before, after = compared.drawn(counts)
        # Round so that equal values stay equal: BCa counts draws that equal the estimate.
        return np.asarray(np.round((after - before).mean(axis=-1), 12))

    mean = float(compared.change.mean())
    found = bca(changes, len(compared.base), compared.others.size, alpha, resamples, seed)
    low, high = (mean if np.isnan(end) else float(end) for end in found.confidence_interval)
    return mean, low, high


START_COLUMNS = ["task", "start", "seed", "metric", "value", "constant"]


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
    versions = [torch.__version__, transformers.__version__]
    key = [load_encoder(name).digest, texts, versions, recipe, seed]
    found = cached(folder, f"{start}-{task}", key, dataset)["value"]
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
    table = pd.DataFrame(rows, columns=START_COLUMNS[:-1])
    table["constant"] = [constant[pair] for pair in zip(table["task"], table["metric"], strict=True)]
    return table.sort_values(["task", "metric", "seed"], kind="stable", ignore_index=True)
