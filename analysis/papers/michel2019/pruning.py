"""Heads pruned step by step: the orders, scores along them, the share that can be pruned, the course of fine-tuning."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers
import xarray as xr
from jaxtyping import Float, Int
from tqdm import tqdm

from analysis.cache import cached
from analysis.encoders.classifiers import load_classifier
from analysis.encoders.finetuning import Stops, finetune, recipe_of
from analysis.encoders.interventions import Intervention, cumulative, predict
from analysis.encoders.measures import metrics_of
from analysis.encoders.models import Encoder, load_encoder, load_tokenizer
from analysis.encoders.pruning import importance, normalised
from analysis.errors import InputError
from analysis.papers.michel2019.ablation import DRAWS, harmless, ranked_heads
from analysis.papers.michel2019.measures import IMPORTANCE, RANDOM, main_metric, published
from analysis.roles import Head
from analysis.statistics.bootstrap import resampled
from analysis.statistics.changes import BASELINE, change_table, compared
from analysis.statistics.effects import AUC
from analysis.statistics.intervals import draws_interval, mean_interval
from analysis.statistics.training import LabelsByTask, TaskSeed, floor, trained_successfully
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples
from analysis.texts.tasks import task_named

PRUNING = "task seed order heads metric value low high p".split()
STEPS = 10  # of pruning
ALL_TASKS = "all tasks"


def cached_importance(
    encoder: Encoder,
    examples: Sequence[Example],
    folder: Path,
    gate: np.ndarray | None = None,
    **options: int,
) -> xr.DataArray:
    """`importance`, cached in `folder` by weights, examples, gate and options."""
    texts = [(example.id, example.texts, example.label) for example in examples]
    pruned = [] if gate is None else np.argwhere(gate == 0).tolist()
    key = [encoder.digest, encoder.device.type, texts, pruned, options]

    def make() -> xr.Dataset:
        return importance(encoder, examples, gate=gate, **options).to_dataset(name="importance")

    return cached(folder, "importance", key, make)["importance"]


def step_counts(heads: int) -> list[int]:
    """How many heads are pruned after each of STEPS equal steps; the last prunes all. Source: the authors' code."""
    counts = {heads * step // STEPS for step in range(1, STEPS + 1)}
    return sorted(counts - {0})  # a small encoder has fewer heads than steps


def by_importance(importances: xr.DataArray) -> list[Head]:
    """Heads from the least to the most important, after `importances` (layer, head) are normalised in each layer.

    Source: Michel 2019, with the normalisation of Molchanov 2017.
    """
    return [*normalised(importances).to_series().sort_values(kind="stable").index]


def by_score(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> list[Head]:
    """Heads by the score when each is ablated alone, best score first; of equal scores, the lower loss comes first.

    `logits` are those of single ablations. Where pruning is scored on the same sequences, as in the paper, this favours
    the order.
    """
    return [*ranked_heads(logits, labels, task)[["layer", "head"]].itertuples(index=False, name=None)]


def by_reestimated_importance(
    encoder: Encoder, examples: Sequence[Example], folder: Path, **options: int
) -> list[Head]:
    """Heads by importance that is measured again after every step, with the heads pruned so far ablated."""
    gate, order = np.ones((encoder.layers, encoder.heads), np.float32), []
    for count in step_counts(gate.size):
        importances = cached_importance(encoder, examples, folder, gate, **options)
        ranked = by_importance(importances.sel(granularity="example", drop=True))
        order += [head for head in ranked if gate[head]][: count - len(order)]
        gate[tuple(np.transpose(order))] = 0
    return order


def at_random(encoder: Encoder, count: int) -> dict[str, list[Head]]:
    """`count` random orders, named "random 0", "random 1" and so on after their seeds."""
    heads, orders = [*np.ndindex(encoder.layers, encoder.heads)], {}
    for seed in range(count):
        places = np.random.default_rng(seed).permutation(len(heads))
        orders[f"{RANDOM} {seed}"] = [heads[place] for place in places]
    return orders


def pruned_steps(encoder: Encoder, orders: Mapping[str, Sequence[Head]]) -> list[Intervention]:
    """The interventions of every order after each step, named as "importance 36"."""
    counts = step_counts(encoder.layers * encoder.heads)
    return [
        Intervention(f"{name} {step.name}", step.gate)
        for name, order in orders.items()
        for step in cumulative(encoder, order, counts)
    ]


def steps_of(interventions: Iterable[str]) -> pd.DataFrame:
    """Order and number of pruned heads of the interventions of `pruned_steps`, from their names; "none" is left out."""
    steps = pd.Series([*interventions]).str.extract(r"(?P<order>.+) (?P<heads>\d+)").dropna()
    return steps.astype({"heads": int}).reset_index(drop=True)


def prune_curves(
    logits: Mapping[tuple, xr.DataArray],
    labels: LabelsByTask,
    keys: Sequence[str] = ("task", "seed"),
    **options: float,
) -> pd.DataFrame:
    """Scores by the number of pruned heads in every order, and the paired change from the whole classifier.

    `logits` have the values of `keys` as keys, the task first, and `pruned_steps` as interventions. `low` and `high`
    are the score of the whole classifier plus the ends of the interval of the change; p is that of the change. Rows
    with 0 heads are the whole classifier.
    """
    columns = [*keys, *PRUNING[2:], "change"]
    parts = []
    for key, answers in tqdm(logits.items(), desc="tests", unit="run"):
        table = change_table(answers, labels[key[0]], metrics_of(key[0]), **options)
        table = table.join(steps_of(table["intervention"])).assign(**dict(zip(keys, key, strict=True)))
        whole = table.drop_duplicates(["order", "metric"])
        whole = whole.assign(heads=0, change=0.0, low=0.0, high=0.0, p=1.0)
        parts.append(pd.concat([whole, table]).sort_values(["order", "metric", "heads"], kind="stable"))
    if not parts:
        return pd.DataFrame(columns=columns)
    table = pd.concat(parts, ignore_index=True)
    table["value"] = table["baseline"] + table["change"]
    table[["low", "high"]] = table[["low", "high"]].add(table["baseline"], axis=0)
    return table[columns]


def shares_of_lead(curves: pd.DataFrame, labels: LabelsByTask, trained: Collection[TaskSeed]) -> pd.DataFrame:
    """The curves of the runs `trained`, in the task's metric, as shares of the lead over the constant answer.

    Columns share (pruned heads, proportion) and kept, kept_low, kept_high (1: all of the lead, 0: none; NaN where the
    sample shows no lead).
    """
    main = main_metric(curves)
    main = main[[run in trained for run in zip(main["task"], main["seed"], strict=True)]]
    constants = {task: floor(task_named(task).metrics[0], labels[task]) for task in main["task"].unique()}
    constant = main["task"].map(constants).astype(float)
    lead = main["value"] - main["change"] - constant
    lead = lead.where(lead > 0)
    return main.assign(
        share=main["heads"] / main.groupby("task")["heads"].transform("max"),
        kept=(main["value"] - constant) / lead,
        kept_low=(main["low"] - constant) / lead,
        kept_high=(main["high"] - constant) / lead,
    )


def prunable_table(
    logits: Mapping[TaskSeed, xr.DataArray], labels: LabelsByTask, trained: Collection[TaskSeed]
) -> pd.DataFrame:
    """The table `michel_prunable`: the largest share of heads that each order prunes so that every step is `harmless`.

    Heads go in steps of a tenth. share is estimated; with shown every step is shown to be harmless. NaN for runs that
    are not in `trained`. bert_base_published is the share that the paper reports.
    """
    reference, rows = published("prunable").set_index("task")["share"], []
    for (task, seed), answers in logits.items():
        steps = steps_of(answers["intervention"].values)
        without_loss = harmless(answers, labels[task], task)
        for order, counts in steps.groupby("order", sort=False)["heads"]:
            steps_so_far = np.vstack([without_loss.estimated, without_loss.shown])[:, counts.index]
            so_far = np.logical_and.accumulate(steps_so_far, axis=1)
            shares = (so_far * counts.to_numpy()).max(axis=1) / counts.max()
            in_trained_run = (task, seed) in trained
            values = (
                (*np.clip(draws_interval(shares[:-1]), 0, 1), shares[-1]) if in_trained_run else (np.nan,) * 4
            )
            metric = task_named(task).metrics[0]
            rows.append([task, seed, order, metric, *values, reference.get(task, np.nan)])
    columns = "task seed order metric share low high shown bert_base_published".split()
    return pd.DataFrame(rows, columns=columns)


def importance_agreement(importances: pd.DataFrame, effects: pd.DataFrame) -> pd.DataFrame:
    """The table `michel_importance_agreement`: rank correlation of importance and fall in AUC over heads, by task.

    `importances` and `effects` are the tables `michel_importance` and `michel_effects`. Importance is that of examples,
    not divided by the norm of its layer. Row ALL_TASKS is the mean, with its t interval over tasks, cut to [-1, 1].
    """
    keys = ["task", "seed", "layer", "head"]
    importance = importances[(importances["granularity"] == "example") & ~importances["normalised"]]
    heads = importance.merge(effects[effects["metric"] == AUC], on=keys)
    groups = heads.groupby("task")
    by_task = {task: rows["importance"].corr(rows["effect"], "spearman") for task, rows in groups}
    rows = [(task, value, np.nan, np.nan) for task, value in by_task.items()]
    rows.append((ALL_TASKS, *np.clip(mean_interval(np.array([*by_task.values()])), -1, 1)))
    return pd.DataFrame(rows, columns=["task", "value", "low", "high"])


def importance_table(importances: Mapping[TaskSeed, xr.DataArray]) -> pd.DataFrame:
    """Importance in every granularity, raw and divided by the norm of its layer (`normalised`), a row per head."""
    parts = {
        (*run, by_layer): values.to_series()
        for run, raw in importances.items()
        for by_layer, values in ((False, raw), (True, normalised(raw)))
    }
    table = pd.concat(parts, names=["task", "seed", "normalised"]).rename("importance").reset_index()
    return table[["task", "seed", "granularity", "normalised", "layer", "head", "importance"]]


def step_means(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], metric: str) -> pd.DataFrame:
    """A metric by draw: of the whole classifier ("none"), and its mean over the steps of each order but the last.

    Row 0 is the sample, the others are draws of its sequences. The last step leaves no head.
    """
    scores = compared(logits, labels, metric)
    before, after = scores.weighted(resampled(len(scores.base), DRAWS))
    orders = steps_of(logits["intervention"].values).groupby("order").groups
    means = {order: after[:, places[:-1]].mean(axis=1) for order, places in orders.items()}
    return pd.DataFrame({BASELINE: before[:, 0], **means})


def mean_scores(runs: Mapping[TaskSeed, xr.DataArray], labels: LabelsByTask) -> pd.DataFrame:
    """`step_means` of the task's metric, a row per task and replicate."""
    parts = {}
    for (task, _), answers in runs.items():
        parts[task] = step_means(answers, labels[task], task_named(task).metrics[0])
    return pd.concat(parts, names=["task", "replicate"]) if parts else pd.DataFrame()


def later_gain(
    courses: Mapping[str, xr.DataArray], labels: LabelsByTask
) -> dict[str, Float[np.ndarray, " draw"]]:
    """How much more of its lead the final classifier keeps under pruning than the first trained one, by task.

    `courses` as `course` gives them; shares are means over the steps of pruning. NaN if no earlier classifier
    trained successfully.
    """
    gains = {}
    for task, course in courses.items():
        constant, n = floor("accuracy", labels[task]), len(labels[task])
        by_fraction = course.transpose("fraction", ...)
        stages = [step_means(logits, labels[task], "accuracy") for logits in by_fraction]
        trained = [trained_successfully("accuracy", stage[BASELINE][0], n, constant) for stage in stages]
        gains[task] = np.full(1 + DRAWS, np.nan)
        if trained[-1] and any(trained[:-1]):
            leads = [stage - constant for stage in (stages[trained.index(True)], stages[-1])]
            first, last = (lead[IMPORTANCE] / lead[BASELINE].where(lead[BASELINE] > 0) for lead in leads)
            gains[task] = (last - first).to_numpy()
    return gains


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
        recipe, sizes = recipe_of(checkpoint)
    except InputError as error:
        raise InputError(f"{error}, or skip the course with course_tasks=[]") from error
    training = [load_examples(task, source, split, n, seed) for split, n in sizes.items()]
    examples = [example for part in (*training, dev_sample, train_sample) for example in part]
    texts = [(example.id, example.texts, example.label) for example in examples]
    arithmetic = [torch.__version__, transformers.__version__, device, precision]

    def make() -> xr.Dataset:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix="course-") as work:
            stops = Stops(Path(work), fractions, load_tokenizer(encoder))
            finetune(encoder, task, *training, Path(work) / "last", recipe, [stops])
            parts = []
            for fraction in fractions:
                classifier = load_classifier(stops.folders[fraction], task, device, precision)
                parts.append(pruned_logits(classifier, dev_sample, train_sample, folder, **options))
        logits = xr.concat(parts, pd.Index(fractions, name="fraction"), combine_attrs="drop_conflicts")
        return logits.to_dataset(name="logits")

    key = [load_encoder(encoder).digest, task, recipe.options, texts, [*fractions], arithmetic, options]
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
