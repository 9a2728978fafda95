"""Heads and layers made to attend equally to all tokens: what changes, and whether disabling any head helps."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int, Shaped

from analysis.papers.kovaleva2019.names import HEAD
from analysis.statistics.answers import metrics_of
from analysis.statistics.changes import BASELINE, Compared, by_head, change_table, rises
from analysis.statistics.resampling import bca
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

COLUMNS = "task seed unit layer head metric baseline change low high p p_by".split()


def labels_of(examples: Sequence[Example]) -> Int[np.ndarray, " sequence"]:
    """The labels of examples."""
    return np.array([example.label for example in examples], dtype=np.int64)


def over_passes(
    make: Callable[..., pd.DataFrame],
    logits: Mapping[tuple[str, str, int], xr.DataArray],
    labels: Mapping[str, Int[np.ndarray, " sequence"]],
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
    labels: Int[np.ndarray, " sequence"],
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
    labels: Int[np.ndarray, " sequence"],
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
    labels: Int[np.ndarray, " sequence"],
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
