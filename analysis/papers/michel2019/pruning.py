"""Heads pruned step by step: the orders, scores along an order, the share that can be pruned."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from tqdm import tqdm

from analysis.cache import cached
from analysis.encoders.importance import importance, normalised
from analysis.encoders.interventions import Head, Intervention, cumulative
from analysis.encoders.models import Encoder
from analysis.papers.michel2019.ablation import ranked_heads, tolerated
from analysis.papers.michel2019.measures import RANDOM, main_metric
from analysis.statistics.answers import metrics_of
from analysis.statistics.changes import BASELINE, Compared, change_table
from analysis.statistics.intervals import draws_interval
from analysis.statistics.leads import Labels, compared, constants, floor
from analysis.statistics.resampling import resampled
from analysis.statistics.training import Run, trained_successfully
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

PRUNING = "task seed order heads metric value low high p".split()
DRAWS = 199  # of the sequences, for the claims

Counts = Int[np.ndarray, "draw sequence"]


def cached_importance(
    encoder: Encoder,
    examples: Sequence[Example],
    folder: Path,
    gate: np.ndarray | None = None,
    **options: int,
) -> xr.DataArray:
    """`importance`, saved in `folder` under a digest of weights, examples, gate and options."""
    texts = [(example.id, example.texts, example.label) for example in examples]
    pruned = [] if gate is None else np.argwhere(gate == 0).tolist()
    parts = [encoder.digest, encoder.device.type, texts, pruned, options]

    def make() -> xr.Dataset:
        return importance(encoder, examples, gate=gate, **options).to_dataset(name="importance")

    return cached(folder, "importance", parts, make)["importance"]


def step_counts(heads: int, steps: int = 10) -> list[int]:
    """How many heads are pruned after each step; the steps are equal, and the last prunes all (released code)."""
    counts = [heads * step // steps for step in range(1, steps + 1)]
    return [count for count in dict.fromkeys(counts) if count]  # there may be fewer heads than steps


def by_importance(importances: xr.DataArray) -> list[Head]:
    """Heads from the least to the most important; `importances` (layer, head) are first normalised in each layer.

    Source: Michel 2019, with the normalisation of Molchanov 2017 that the article uses.
    """
    return [*normalised(importances).to_series().sort_values(kind="stable").index]


def by_score(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> list[Head]:
    """Heads by the score when each is ablated, best score first; of equal scores, the lower loss comes first.

    `logits` are those of single removals. Order and pruning are scored on the same sequences, as in the article; this
    favours the order.
    """
    return [*ranked_heads(logits, labels, task)[["layer", "head"]].itertuples(index=False, name=None)]


def by_reestimated_importance(
    encoder: Encoder, examples: Sequence[Example], folder: Path, steps: int = 10, **options: int
) -> list[Head]:
    """The order by importance that is estimated again after every step, with the heads pruned so far ablated."""
    gate, order = np.ones((encoder.layers, encoder.heads), np.float32), []
    for count in step_counts(gate.size, steps):
        importances = cached_importance(encoder, examples, folder, gate, **options)
        ranked = by_importance(importances.sel(granularity="example", drop=True))
        order += [head for head in ranked if gate[head]][: count - len(order)]
        gate[tuple(np.transpose(order))] = 0
    return order


def at_random(encoder: Encoder, count: int) -> dict[str, list[Head]]:
    """`count` random orders, named "random 0", "random 1" and so on after their seeds."""
    heads = [*np.ndindex(encoder.layers, encoder.heads)]
    orders = {seed: np.random.default_rng(seed).permutation(len(heads)) for seed in range(count)}
    return {f"{RANDOM} {seed}": [heads[place] for place in places] for seed, places in orders.items()}


def pruned_steps(
    encoder: Encoder, orders: Mapping[str, Sequence[Head]], steps: int = 10
) -> list[Intervention]:
    """The interventions of every order after each step, named as "importance 36"."""
    counts = step_counts(encoder.layers * encoder.heads, steps)
    return [
        Intervention(f"{name} {step.name}", step.gate)
        for name, order in orders.items()
        for step in cumulative(encoder, order, counts)
    ]


def prune_curves(
    logits: Mapping[tuple, xr.DataArray],
    labels: Labels,
    keys: Sequence[str] = ("task", "seed"),
    **options: float,
) -> pd.DataFrame:
    """Scores by the number of pruned heads in every order, and change and least of `change_table`.

    `logits` have the values of `keys` as keys, the task first, and `pruned_steps` as interventions. `low` and `high`
    are the score without pruning plus the ends of the paired interval of the change; p is that of the change. `heads`
    counts pruned heads; a row with 0 has all heads.
    """
    columns = [*keys, *PRUNING[2:], "change", "least"]
    parts = []
    for key, answers in tqdm(logits.items(), desc="tests", unit="run"):
        table = change_table(answers, labels[key[0]], metrics_of(key[0]), **options)
        order = table["intervention"].str.rsplit(" ", n=1, expand=True)
        table = table.assign(order=order[0], heads=order[1].astype(int), **dict(zip(keys, key, strict=True)))
        whole = table.drop_duplicates(["order", "metric"])
        whole = whole.assign(heads=0, change=0.0, low=0.0, high=0.0, p=1.0)
        parts.append(pd.concat([whole, table]).sort_values(["order", "metric", "heads"], kind="stable"))
    if not parts:
        return pd.DataFrame(columns=columns)
    table = pd.concat(parts, ignore_index=True)
    scores = {name: table["baseline"] + table[end] for name, end in
              (("value", "change"), ("low", "low"), ("high", "high"))}  # fmt: skip
    return table.assign(**scores)[columns]


def shares_of_lead(curves: pd.DataFrame, labels: Labels, trained: Collection[Run]) -> pd.DataFrame:
    """The curves of the runs `trained`, in the task's metric, as shares of the lead over the constant answer.

    Columns share (pruned heads, proportion) and kept, kept_low, kept_high (1: all of the lead, 0: none; NaN where the
    sample shows no lead).
    """
    main = main_metric(curves)
    main = main[[run in trained for run in zip(main["task"], main["seed"], strict=True)]]
    least = np.array([floor(metric, labels[task]) for task, metric in main[["task", "metric"]].to_numpy()])
    lead = main["value"] - main["change"] - least
    ends = {"kept": "value", "kept_low": "low", "kept_high": "high"}
    lead = lead.where(lead > 0)
    kept_share = {name: (main[column] - least) / lead for name, column in ends.items()}
    return main.assign(share=main["heads"] / main.groupby("task")["heads"].transform("max"), **kept_share)


def prunable_table(
    logits: Mapping[Run, xr.DataArray], labels: Labels, trained: Collection[Run], reference: pd.DataFrame
) -> pd.DataFrame:
    """The largest share of heads that each order prunes without a loss above the margin at any step (see `tolerated`).

    Shares are of heads, which go in steps of a tenth; NaN for runs that are not in `trained`. Columns task, seed,
    order, metric, share, low, high (over sequences) and bert_base_published (published_prunable.csv: without
    noticeable loss).
    """
    published, rows = reference.set_index("task")["share"], []
    for (task, seed), answers in logits.items():
        metric = task_named(task).metrics[0]
        without_loss = tolerated(compared(answers, labels[task], metric), floor(metric, labels[task]))
        names = answers.drop_sel(intervention=BASELINE)["intervention"].values
        orders, heads = zip(*(str(name).rsplit(" ", 1) for name in names), strict=True)
        counts = np.array(heads, int)
        for order in dict.fromkeys(orders):
            steps = np.array(orders) == order
            so_far = np.logical_and.accumulate(without_loss[:, steps], axis=1)
            shares = (so_far * counts[steps]).max(axis=1) / counts.max()
            ends = draws_interval(shares) if (task, seed) in trained else (np.nan,) * 3
            rows.append([task, seed, order, metric, *ends, published.get(task, np.nan)])
    columns = ["task", "seed", "order", "metric", "share", "low", "high", "bert_base_published"]
    return pd.DataFrame(rows, columns=columns)


def importance_table(measured: Mapping[Run, xr.DataArray]) -> pd.DataFrame:
    """Importance in every granularity, raw and divided by the norm of its layer (`normalised`), a row per head."""
    parts = {
        (*run, by_layer): values.to_series()
        for run, importances in measured.items()
        for by_layer, values in ((False, importances), (True, normalised(importances)))
    }
    table = pd.concat(parts, names=["task", "seed", "normalised"]).rename("importance").reset_index()
    return table[["task", "seed", "granularity", "normalised", "layer", "head", "importance"]]


def mean_scores(runs: Mapping[Run, xr.DataArray], labels: Labels, draws: int = DRAWS) -> pd.DataFrame:
    """Mean of the task's metric over the steps of pruning: a column per order, a row per task and replicate.

    Replicate 0 is the sample, later ones are resamples of its sequences. The last step, which leaves no head, is out.
    """
    parts = {}
    for (task, _), answers in runs.items():
        pruned = compared(answers, labels[task], task_named(task).metrics[0])
        steps = pd.DataFrame(pruned.drawn(resampled(len(pruned.base), draws))[1])
        names = answers.drop_sel(intervention=BASELINE)["intervention"].values
        orders = [name.rsplit(" ", 1)[0] for name in names]
        parts[task] = steps.T.groupby(orders).apply(lambda rows: rows.iloc[:-1].mean()).T
    return pd.concat(parts, names=["task", "replicate"]) if parts else pd.DataFrame()


def retained(pruned: Compared, counts: Counts, constant: float) -> Float[np.ndarray, " draw"]:
    """The share of the lead over the constant answer that is left, mean over the steps of pruning but the last.

    NaN if the classifier has no lead.
    """
    before, after = pruned.drawn(counts)[..., :-1]
    ahead = np.where(before > constant, before - constant, np.nan)
    return ((after - constant) / ahead).mean(axis=-1)


def later_gain(
    courses: Mapping[str, xr.DataArray], labels: Labels, draws: int = DRAWS
) -> dict[str, Float[np.ndarray, " draw"]]:
    """How much more of its lead the final classifier keeps under pruning than the first trained one, by task.

    `courses` as `course.course` gives them. NaN if no earlier classifier trained successfully.
    """
    gains = {}
    for task, constant in constants({task: labels[task] for task in courses}).items():
        course = courses[task]
        counts = resampled(course.sizes["sequence"], draws)
        stages = [
            compared(course.sel(fraction=fraction), labels[task], "accuracy")
            for fraction in course["fraction"].values
        ]
        trained = [
            trained_successfully("accuracy", stage.baseline, len(stage.base), constant) for stage in stages
        ]
        gains[task] = np.full(len(counts), np.nan)
        if trained[-1] and any(trained[:-1]):
            first, last = (retained(stages[at], counts, constant) for at in (trained.index(True), -1))
            gains[task] = last - first
    return gains
