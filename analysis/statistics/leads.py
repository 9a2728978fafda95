"""Has a classifier trained successfully? Runs at chance are no evidence: ablation cannot lower their accuracy."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int
from scipy import stats

from analysis.errors import InputError
from analysis.statistics.changes import BASELINE, Compared

Run = tuple[str, int | None]  # task, fine-tuning seed
Labels = Mapping[str, Int[np.ndarray, " sequence"]]  # by task
LEVEL = 0.05


def trained_successfully(metric: str, score: float, n: int, majority: float = 0.0) -> bool:
    """Whether a score on `n` sequences is above chance, one-sided p < .05.

    For accuracy it is the exact binomial test against `majority`, the share of the most frequent label; for a
    correlation (Spearman, Pearson, Matthews) the t test against 0.
    """
    if metric == "accuracy":
        return bool(stats.binomtest(round(score * n), n, majority, alternative="greater").pvalue < LEVEL)
    with np.errstate(divide="ignore"):
        t = score * np.sqrt(np.divide(n - 2, 1 - score**2))
    return bool(n > 2 and stats.t.sf(t, n - 2) < LEVEL)


def with_trained(finetune: pd.DataFrame, labels: Sequence[float | int]) -> pd.DataFrame:
    """The rows of one task in the table `finetune`, with the column `trained`: whether each run trained successfully.

    `labels` are those of the dev sequences. Accuracy decides, or Spearman's correlation for a regression.
    """
    majority = max(Counter(labels).values()) / len(labels)
    metric = "accuracy" if "accuracy" in {*finetune["metric"]} else "spearman"
    scores = finetune[finetune["metric"] == metric].set_index("seed")["finetuned"]
    trained = {
        run: trained_successfully(metric, score, len(labels), majority) for run, score in scores.items()
    }
    return finetune.assign(trained=finetune["seed"].map(trained))


def trained_runs(finetune: pd.DataFrame) -> set[Run]:
    """The runs (task, seed) that trained successfully, from the table `finetune`."""
    if len(finetune) and "trained" not in finetune:
        raise InputError("the table finetune has no column trained: run 00_finetune again")
    rows = (
        finetune[finetune["trained"].astype(bool)]
        if len(finetune)
        else pd.DataFrame(columns=["task", "seed"])
    )
    return {(str(task), int(seed)) for task, seed in zip(rows["task"], rows["seed"], strict=True)}


def compared(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], metric: str) -> Compared:
    """The comparison of the interventions in an array of logits with its row "none"."""
    base, others = logits.sel(intervention=[BASELINE]), logits.drop_sel(intervention=BASELINE)
    return Compared.of(metric, base.values, others.values, labels)


def constants(labels: Labels) -> dict[str, float]:
    """The accuracy of the most frequent answer, by task. Raises InputError for numbers, the labels of a regression."""
    for task, of_task in labels.items():
        if not np.issubdtype(of_task.dtype, np.integer):
            raise InputError(f"task {task!r} is a regression and has no accuracy: choose one with classes")
    return {task: float(np.bincount(of_task).max() / len(of_task)) for task, of_task in labels.items()}


def floor(metric: str, labels: Int[np.ndarray, " sequence"]) -> float:
    """The score of a constant answer: for accuracy the share of the most frequent label, for a correlation 0."""
    return constants({"": labels})[""] if metric == "accuracy" else 0.0
