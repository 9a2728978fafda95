"""What disabling heads and layers changes, and what pre-training gives (Kovaleva 2019, figures 8, 9 and Table 1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
import transformers
import xarray as xr
from jaxtyping import Bool, Float

from analysis.cache import cached
from analysis.encoders.classifiers import random_encoder, trainable_classifier
from analysis.encoders.finetuning import Recipe, finetune
from analysis.encoders.interventions import labels_of, predict
from analysis.encoders.measures import decide, measure, metrics_of
from analysis.encoders.models import Encoder, load_encoder, load_tokenizer
from analysis.errors import InputError
from analysis.papers.kovaleva2019.measures import PRETRAINED, RANDOM, UNTUNED
from analysis.statistics.answers import Labels
from analysis.statistics.changes import change_table, compared, rises
from analysis.statistics.intervals import crossed_interval
from analysis.statistics.training import TaskSeed
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

DISABLED_COLUMNS = (
    "task seed unit layer head metric baseline change low high p p_by n put_right put_wrong".split()
)


def disabled_tables(
    logits: Mapping[str, Mapping[TaskSeed, xr.DataArray]],
    labels: Mapping[str, Labels],
    alpha: float = 0.05,
    resamples: int = 999,
    permutations: int = 9999,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What disabling single heads or whole layers changes, and whether it raises a task's first metric beyond chance.

    `logits` are those of `predict`, by unit ("head" or "layer") and by fine-tuning run. The first table is
    `kovaleva_disable` (see `changes_by_head`), the second `kovaleva_rises`: the columns of `changes.rises`, and least,
    the median over heads or layers. Source: Kovaleva 2019, figures 8 and 9; departure: the paper has no test.
    """
    changes, risen = [], []
    for unit, by_run in logits.items():
        for (task, run), answers in by_run.items():
            key = {"task": task, "seed": run, "unit": unit}
            metric = task_named(task).metrics[0]
            table = changes_by_head(answers, labels[task], task, alpha, resamples, permutations, seed)
            changes.append(table.assign(**key).reindex(columns=DISABLED_COLUMNS))
            first = table[table["metric"] == metric]
            row = {"metric": metric, "baseline": first["baseline"].iloc[0]}
            row |= rises(answers, labels[task], metric, alpha, permutations, seed)
            risen.append(key | row | {"least": first["least"].median()})
    return pd.concat(changes, ignore_index=True), pd.DataFrame(risen)


def changes_by_head(answers: xr.DataArray, labels: Labels, task: str, *test: float | int) -> pd.DataFrame:
    """The changes of a task's metrics for every disabled head, or layer (`head` is missing).

    They are those of `change_table`, with its last arguments `test`. put_right and put_wrong count the answers.
    """
    table = change_table(answers, labels, metrics_of(task), *test)
    places = table["intervention"].str.extract(r"(\d+)(?:-(\d+))?$")  # "2-8" is a head, "layer 2" a layer
    heads = pd.to_numeric(places[1]).astype("Int64")
    table = table.assign(layer=places[0].astype(int), head=heads, n=len(labels))
    is_accuracy = table["metric"] == "accuracy"
    if is_accuracy.any():
        discordant = compared(answers, labels, "accuracy").discordant()
        table.loc[is_accuracy, ["put_right", "put_wrong"]] = np.stack(discordant, axis=1)
    return table


def chosen_rises(
    logits: Mapping[TaskSeed, xr.DataArray],
    labels: Mapping[str, Labels],
    clusters: Mapping[str, Sequence[str]],
    trained: Collection[TaskSeed],
) -> pd.DataFrame:
    """The table `kovaleva_chosen_rises`: how much the task's metric rises without the head that raises it most.

    The head is chosen on one half of the sequences (in whole clusters) and measured on the other, both ways. Runs that
    did not train successfully are left out; a task without any other has no value.
    """
    rows = []
    for task in dict.fromkeys(task for task, _ in logits):
        half = pd.factorize(np.asarray(clusters[task]))[0] % 2 == 0
        runs = [run for run in logits if run[0] == task and run in trained]
        by_run = [rise_of_chosen_head(logits[run], labels[task], task, half) for run in runs]
        interval = crossed_interval(np.stack(by_run)) if by_run else (np.nan,) * 3
        rows.append((task, *interval, len(by_run)))
    return pd.DataFrame(rows, columns=["task", "value", "low", "high", "runs"])


def rise_of_chosen_head(
    answers: xr.DataArray, labels: Labels, task: str, half: Bool[np.ndarray, " sequence"]
) -> Float[np.ndarray, " sequence"]:
    """What each sequence adds to the rise of the first metric without the head that is best in the other half."""
    metric = task_named(task).metrics[0]
    one, other = (compared(answers.isel(sequence=side), labels[side], metric) for side in (half, ~half))
    rise = np.empty(len(half))
    rise[half] = one.contributions[:, other.change.argmax()]
    rise[~half] = other.contributions[:, one.change.argmax()]
    return rise


def untuned_scores(
    name: str, task: str, dev: Sequence[Example], seed: int, max_tokens: int = 128, device: str = "cpu"
) -> dict[str, float]:
    """Dev scores of an encoder that is not fine-tuned, under a classification head with random weights (by seed)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = trainable_classifier(name, task_named(task).outputs)
    encoder = Encoder(str(name), model.eval().to(device), load_tokenizer(name))
    logits = predict(encoder, dev, [], max_tokens=max_tokens, progress=False)[0].values
    return measure(task, labels_of(dev), decide(task, logits))


def tuned_scores(
    folder: Path,
    start: str,
    name: str,
    task: str,
    train: Sequence[Example],
    dev: Sequence[Example],
    recipe: Recipe,
) -> dict[str, float]:
    """Dev scores of an encoder trained on a task from a start: RANDOM (random weights by seed) or PRETRAINED.

    The scores are cached in `folder`, the trained encoder is not.
    Raises InputError for another start.
    """
    if start not in (RANDOM, PRETRAINED):
        raise InputError(f"start {start!r} is unknown: choose {RANDOM} or {PRETRAINED}")

    def train_and_score() -> xr.Dataset:
        with TemporaryDirectory() as work:
            source: str | Path = name
            if start == RANDOM:
                source = Path(work) / RANDOM
                untrained = random_encoder(name, recipe.seed)
                untrained.model.save_pretrained(source)
                untrained.tokenizer.save_pretrained(source)
            scores = finetune(source, task, train, dev, Path(work) / "trained", recipe)
        return xr.Dataset({"value": ("metric", [*scores.values()])}, {"metric": [*scores]})

    texts = [(example.id, example.texts, example.label) for example in (*train, *dev)]
    versions = [torch.__version__, transformers.__version__]
    options = recipe.options
    seed = options.pop("seed")
    key = [load_encoder(name).digest, texts, versions, options, seed]
    return cached(folder, f"{start}-{task}", key, train_and_score)["value"].to_series().to_dict()


def scores_by_start(
    encoder: str,
    train: Mapping[str, Sequence[Example]],
    dev: Mapping[str, Sequence[Example]],
    starts: Sequence[str],
    seeds: Sequence[int],
    folder: Path,
    recipe: Recipe,
) -> dict[tuple[str, str, int], dict[str, float]]:
    """Dev scores without fine-tuning, and after training from each of `starts`, by task, name of the start and seed.

    Tasks without a training set in `train` have the first alone.
    """
    scores = {}
    for task, seed in product(dev, seeds):
        scores[task, UNTUNED, seed] = untuned_scores(
            encoder, task, dev[task], seed, recipe.max_tokens, recipe.device
        )
        for start in starts if task in train else ():
            name, sets = start_name(start, len(train[task]), recipe.epochs), (train[task], dev[task])
            scores[task, name, seed] = tuned_scores(
                folder, start, encoder, task, *sets, replace(recipe, seed=seed)
            )
    return scores


def start_name(start: str, rows: int, epochs: float | int) -> str:
    """The name of a start in the table, with the size of the training."""
    return f"{start}, {rows:,} rows, {epochs:g} epoch{'' if epochs == 1 else 's'}"


def initialisation_table(
    scores: Mapping[tuple[str, str, int], Mapping[str, float]], tuned: pd.DataFrame, epochs: Mapping[str, int]
) -> pd.DataFrame:
    """The table `kovaleva_initialisation`: dev scores by start, whose name says how much training followed.

    `scores` are those of `scores_by_start`; `tuned` is the table `finetune` of 00_finetune, which trains for
    `epochs` by task.
    """
    rows = [(*key, *score) for key, by_metric in scores.items() for score in by_metric.items()]
    table = pd.DataFrame(rows, columns=["task", "start", "seed", "metric", "value"])
    saved = tuned[tuned["task"].isin(table["task"])].rename(columns={"finetuned": "value"})
    names = (start_name(PRETRAINED, row.train, epochs[row.task]) for row in saved.itertuples())
    saved = saved.assign(start=[*names])
    constant = saved.groupby(["task", "metric"])["constant"].first()
    table = pd.concat([table, saved[table.columns]]).join(constant, on=["task", "metric"])
    return table.sort_values(["task", "metric", "seed"], kind="stable", ignore_index=True)


def gains_of_finetuning(starts: pd.DataFrame) -> pd.Series:
    """Accuracy (else the first metric) of the fine-tuned encoder minus that of the untuned one, by task.

    `starts` is the table `kovaleva_initialisation`. Source: Kovaleva 2019, section 4.3.
    """
    kind = starts["start"].str.partition(",")[0]
    means = starts.groupby([kind, "task", "metric"])["value"].mean()
    gains = (means[PRETRAINED] - means[UNTUNED]).dropna()
    metrics = {task: metrics_of(task) for task in gains.index.unique("task")}
    chosen = {task: "accuracy" if "accuracy" in names else names[0] for task, names in metrics.items()}
    return pd.Series({task: gains[task, metric] for task, metric in chosen.items()}, dtype=float)
