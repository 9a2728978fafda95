"""The scores of a constant answer, with which those of a classifier are compared."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Int

from analysis.errors import InputError

Labels = Mapping[str, Int[np.ndarray, " sequence"]]  # by task


def constants(labels: Labels) -> dict[str, float]:
    """The accuracy of the most frequent answer, by task. Raises InputError for numbers, the labels of a regression."""
    for task, classes in labels.items():
        if not np.issubdtype(classes.dtype, np.integer):
            raise InputError(f"task {task!r} is a regression and has no accuracy: choose one with classes")
    return {task: float(np.bincount(classes).max() / len(classes)) for task, classes in labels.items()}


def floor(metric: str, labels: Int[np.ndarray, " sequence"]) -> float:
    """The score of a constant answer: for accuracy the share of the most frequent label, for a correlation 0."""
    return constants({"": labels})[""] if metric == "accuracy" else 0.0
