"""Has a classifier trained successfully? Runs at chance are no evidence: ablation cannot lower their accuracy."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy import stats

from analysis.errors import InputError

TaskSeed = tuple[str, int | None]  # task, fine-tuning seed
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
    trained = scores.map(lambda score: trained_successfully(metric, score, len(labels), majority))
    return finetune.assign(trained=finetune["seed"].map(trained))


def trained_runs(finetune: pd.DataFrame) -> set[TaskSeed]:
    """The runs (task, seed) that trained successfully, from the table `finetune`; none from an empty one."""
    if finetune.empty:
        return set()
    rows = finetune[finetune["trained"].astype(bool)]
    return {(str(task), int(seed)) for task, seed in zip(rows["task"], rows["seed"], strict=True)}


LabelsByTask = Mapping[str, Int[np.ndarray, " sequence"]]


def constants(labels: LabelsByTask) -> dict[str, float]:
    """The accuracy of the most frequent answer, by task. Raises InputError for numbers, the labels of a regression."""
    for task, classes in labels.items():
        if not np.issubdtype(classes.dtype, np.integer):
            raise InputError(f"task {task!r} is a regression and has no accuracy: choose one with classes")
    return {task: float(np.bincount(classes).max() / len(classes)) for task, classes in labels.items()}


def floor(metric: str, labels: Int[np.ndarray, " sequence"]) -> float:
    """The score of a constant answer: for accuracy the share of the most frequent label, for a correlation 0."""
    return constants({"": labels})[""] if metric == "accuracy" else 0.0
