"""Heads pruned step by step: scores along an order, the share that can be pruned, and importance next to ablation."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from tqdm import tqdm

from analysis.encoders.importance import normalised
from analysis.encoders.interventions import Intervention, cumulative
from analysis.encoders.models import Encoder
from analysis.papers.michel2019.draws import (
    evidence,
    later_gain,
    mean_value,
    over_tasks,
)
from analysis.papers.michel2019.orders import Head, step_counts
from analysis.papers.michel2019.tables import IMPORTANCE, RANDOM, SCORE, Labels, Run
from analysis.statistics.answers import metrics_of
from analysis.statistics.changes import BASELINE, change_table
from analysis.statistics.leads import floor, margin
from analysis.texts.tasks import task_named

PRUNING = ["task", "seed", "order", "heads", "metric", "value", "low", "high", "p"]
IMPORTANCES = ["task", "seed", "granularity", "normalised", "layer", "head", "importance"]


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


def along(logits: xr.DataArray, order: str) -> xr.DataArray:
    """The logits of one order, and of the classifier with all heads."""
    names = [name for name in logits["intervention"].values if name.rsplit(" ", 1)[0] == order]
    return logits.sel(intervention=[BASELINE, *names])


def pruning_table(logits: Mapping[Run, xr.DataArray], labels: Labels, **options: float) -> pd.DataFrame:
    """Scores by the number of pruned heads in every order: columns PRUNING, and change and least of `change_table`.

    `low` and `high` are the score without pruning plus the ends of the paired interval of the change; p is that of the
    change. `heads` counts pruned heads; a row with 0 has all heads.
    """
    parts = []
    for (task, seed), found in tqdm(logits.items(), desc="tests", unit="run"):
        table = change_table(found, labels[task], metrics_of(task), **options)
        named = table["intervention"].str.rsplit(" ", n=1, expand=True)
        table = table.assign(order=named[0], heads=named[1].astype(int), task=task, seed=seed)
        whole = table.drop_duplicates(["order", "metric"]).assign(
            heads=0, change=0.0, low=0.0, high=0.0, p=1.0
        )
        parts.append(pd.concat([whole, table]).sort_values(["order", "metric", "heads"], kind="stable"))
    table = pd.concat(parts, ignore_index=True)
    for name in ("low", "high"):
        table[name] += table["baseline"]
    return table.assign(value=table["baseline"] + table["change"])[[*PRUNING, "change", "least"]]


def prunable_table(
    table: pd.DataFrame,
    labels: Labels,
    leading: Collection[Run],
    reference: pd.DataFrame,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """The share of heads that each order prunes before the first significant loss, in the task's metric.

    Shares are of heads, which go in steps of a tenth. The share also ends where the score has no lead over the
    constant answer, since a test on a small sample would miss even that; NaN for runs that are not in `leading`,
    those of `draws.with_a_lead`. Columns task, seed, order, metric, share, least (the smallest loss that the test
    detects at that step, power .8) and bert_base_published (`published.prunable`: without noticeable loss).
    """
    main = table[table["metric"] == table["task"].map(lambda task: task_named(task).metrics[0])]
    theirs = reference.set_index("task")["share"]
    rows = []
    for (task, seed, order, metric), steps in main.groupby(["task", "seed", "order", "metric"], sort=False):
        gone = steps["value"] - floor(metric, labels[task]) <= margin(len(labels[task]), metric)
        lost = (gone | (steps["p"] < alpha) & (steps["change"] < 0)).to_numpy()
        last = steps.iloc[max(lost.argmax() - 1, 0) if lost.any() else -1]
        share = last["heads"] / steps["heads"].max() if (task, seed) in leading else np.nan
        rows.append([task, seed, order, metric, share, last["least"], theirs.get(task, np.nan)])
    columns = ["task", "seed", "order", "metric", "share", "least", "bert_base_published"]
    return pd.DataFrame(rows, columns=columns)


def importance_table(measured: Mapping[Run, xr.DataArray]) -> pd.DataFrame:
    """Importance in every granularity, raw and divided by the norm of its layer: columns IMPORTANCES."""
    parts = []
    for (task, seed), found in measured.items():
        for by_layer, values in ((False, found), (True, normalised(found))):
            rows = values.rename("importance").to_dataframe().reset_index()
            parts.append(rows.assign(task=task, seed=seed, normalised=by_layer))
    return pd.concat(parts, ignore_index=True)[IMPORTANCES]


def agreement_table(importances: pd.DataFrame, ablation: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over heads of every importance with the article's, and with the effect of ablation.

    `ablation` as `michel_ablation.csv`. Columns task, seed, granularity, normalised, with_example (the granularity
    `example` with the same normalisation), with_ablation (the rise of the loss), with_accuracy (the fall of accuracy).
    """
    keys, kinds = ["task", "seed", "layer", "head"], ["task", "seed", "granularity", "normalised"]
    sizes = importances.set_index([*kinds, "layer", "head"])["importance"].unstack(["layer", "head"])
    effects = ablation[ablation["metric"].isin(["loss", "accuracy"])].set_index([*keys, "metric"])["change"]
    effects = effects.unstack("metric")
    rows = []
    for kind, values in sizes.iterrows():
        task, seed, _, by_layer = kind
        removed = effects.loc[task, seed].reindex(values.index)
        others = [sizes.loc[task, seed, "example", by_layer], removed["loss"], -removed["accuracy"]]
        rows.append([*kind, *(stats.spearmanr(values, other).statistic for other in others)])
    return pd.DataFrame(rows, columns=[*kinds, "with_example", "with_ablation", "with_accuracy"])


def pruning_evidence(
    leading: Mapping[Run, xr.DataArray], courses: Mapping[str, xr.DataArray], labels: Labels
) -> pd.DataFrame:
    """The evidence for M6 and M8, from the pruned runs with a lead (`draws.with_a_lead`): rows of `evidence`."""
    names = {name.rsplit(" ", 1)[0] for found in leading.values() for name in found["intervention"].values}
    ordered = {
        name: {key: along(found, name) for key, found in leading.items()}
        for name in sorted(names - {BASELINE})
    }
    randoms = [found for name, found in ordered.items() if name.startswith(RANDOM)]
    best, scored = (ordered.get(name, {}) for name in (IMPORTANCE, SCORE))
    means = partial(evidence, "M6", labels=labels, measure=mean_value)
    parts = [
        over_tasks("M6", means(best), means(scored)),
        *(over_tasks("M6 at random", means(best, draws=0), means(found, draws=0)) for found in randoms),
        later_gain("M8", courses, labels),
    ]
    return pd.concat(parts, ignore_index=True)
