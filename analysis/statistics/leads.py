"""Is a classifier ahead of the constant answer? A run without a lead has learnt nothing and is no evidence."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int

from analysis.errors import InputError
from analysis.statistics.changes import BASELINE, Compared

Run = tuple[str, int | None]  # task, fine-tuning seed
Labels = Mapping[str, Int[np.ndarray, " sequence"]]  # by task


def compared(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], metric: str) -> Compared:
    """The comparison of the interventions in an array of logits with its row "none"."""
    base, others = logits.sel(intervention=[BASELINE]), logits.drop_sel(intervention=BASELINE)
    return Compared.of(metric, base.values, others.values, labels)


def constants(labels: Labels) -> dict[str, float]:
    """The accuracy of the most frequent answer, by task. Raises InputError for numbers, the labels of a regression."""
    for task, each in labels.items():
        if not np.issubdtype(each.dtype, np.integer):
            raise InputError(f"task {task!r} is a regression and has no accuracy: choose one with classes")
    return {task: float(np.bincount(each).max() / len(each)) for task, each in labels.items()}


def floor(metric: str, labels: Int[np.ndarray, " sequence"]) -> float:
    """The score of a constant answer: for accuracy the share of the most frequent label, for a correlation 0."""
    return constants({"": labels})[""] if metric == "accuracy" else 0.0


def margin(n: int, metric: str = "accuracy") -> float:
    """The largest 95 % margin of a proportion of n sequences; for a correlation, two standard errors of one of 0."""
    return n**-0.5 if metric == "accuracy" else 2 * n**-0.5


def has_lead(found: Compared, constant: float) -> bool:
    """Whether accuracy without intervention exceeds that of the constant answer by more than the margin."""
    return found.baseline - constant > margin(len(found.base))


def with_a_lead(logits: Mapping[Run, xr.DataArray], labels: Labels) -> dict[Run, xr.DataArray]:
    """The runs whose classifiers have a lead (see `has_lead`); the others have nothing to lose."""
    least = constants(labels)
    return {
        (task, seed): found
        for (task, seed), found in logits.items()
        if has_lead(compared(found, labels[task], "accuracy"), least[task])
    }


def trained_runs(finetune: pd.DataFrame) -> set[Run]:
    """The runs (task, seed) of a table of `00_finetune` that beat the constant answer by its margin.

    Accuracy decides where the table has it, as in `has_lead`, else the task's first metric.
    """
    found = set()
    for (task, seed), rows in finetune.groupby(["task", "seed"], sort=False):
        of_accuracy = rows[rows["metric"] == "accuracy"]
        row = (of_accuracy if len(of_accuracy) else rows).iloc[0]
        if row["finetuned"] - row["constant"] > margin(int(row["dev"]), row["metric"]):
            found.add((str(task), int(seed)))
    return found
