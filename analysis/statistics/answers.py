"""How answers are scored: each metric as a function of the means of what every answer adds to it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from analysis.errors import InputError
from analysis.texts.tasks import CHOICE, CLASSIFICATION, Task, task_named

LOSS = "loss"  # cross entropy, nats

Logits = Float[np.ndarray, "variant sequence class"]
Labels = Int[np.ndarray, " sequence"]


def correct(logits: Logits, labels: Labels) -> Float[np.ndarray, "variant sequence 1"]:
    """1 where the largest logit is that of the label, else 0."""
    return (logits.argmax(axis=-1) == labels)[..., None].astype(np.float64)


def losses(logits: Logits, labels: Labels) -> Float[np.ndarray, "variant sequence 1"]:
    """Cross entropy of every sequence (nats)."""
    log_shares = special.log_softmax(logits.astype(np.float64), axis=-1)
    return -np.take_along_axis(log_shares, labels[None, :, None], axis=-1)


def confusion(logits: Logits, labels: Labels) -> Float[np.ndarray, "variant sequence 4"]:
    """True positive, false positive, false negative, true negative: 1 for what an answer is. Class 1 is positive."""
    if logits.shape[-1] != 2:
        raise InputError(f"F1 and Matthews need 2 classes: the logits have {logits.shape[-1]}")
    said, true = logits.argmax(axis=-1) == 1, np.broadcast_to(labels == 1, logits.shape[:-1])
    cells = [said & true, said & ~true, ~said & true, ~said & ~true]
    return np.stack(cells, axis=-1).astype(np.float64)


def f1(cells: Float[np.ndarray, "... 4"]) -> Float[np.ndarray, "..."]:
    """F1 of class 1 from the shares of the four cells of `confusion`; 0 without true positives."""
    right, false_alarm, missed, _ = np.moveaxis(cells, -1, 0)
    return divided(2 * right, 2 * right + false_alarm + missed)


def matthews(cells: Float[np.ndarray, "... 4"]) -> Float[np.ndarray, "..."]:
    """Matthews' correlation from the shares of the four cells of `confusion`; 0 where all answers are one."""
    a, b, c, d = np.moveaxis(cells, -1, 0)
    product = (a + b) * (a + c) * (d + b) * (d + c)
    return divided(a * d - b * c, np.sqrt(np.maximum(product, 0)))


class Metric(NamedTuple):
    """A metric as a function `value` of the means of `columns`, which hold what each answer adds."""

    columns: Callable[[Logits, Labels], Float[np.ndarray, "variant sequence column"]]
    value: Callable[[Float[np.ndarray, "... column"]], Float[np.ndarray, "..."]]


METRICS = {
    "accuracy": Metric(correct, lambda means: means[..., 0]),
    LOSS: Metric(losses, lambda means: means[..., 0]),
    "f1": Metric(confusion, f1),
    "matthews": Metric(confusion, matthews),
}


def metrics_of(task: str | Task) -> tuple[str, ...]:
    """The metrics that a task's changes are told in: its own, accuracy, and the loss.

    Raises InputError for a task without classes or choices.
    """
    task = task_named(task)
    if task.kind not in (CLASSIFICATION, CHOICE):
        raise InputError(f"task {task.name!r} is a {task.kind}: choose one with classes, such as mrpc")
    return tuple(dict.fromkeys([*task.metrics, "accuracy", LOSS]))


def divided(
    numerator: Float[np.ndarray, "..."] | float, denominator: Float[np.ndarray, "..."] | float
) -> Float[np.ndarray, "..."]:
    """The quotient, 0 where the denominator is 0."""
    above, below = np.asarray(numerator, float), np.asarray(denominator, float)
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))
