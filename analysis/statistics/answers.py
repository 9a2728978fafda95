"""Metrics written as functions of per-example means, so that they can be bootstrapped; correlations along an axis."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num, Shaped
from scipy import special, stats

from analysis.statistics.resampling import ROUNDING, Numbers

LOSS = "loss"  # cross entropy (nats); of a regression the squared error (squared units of the labels)
PEARSON = "pearson"

Logits = Float[np.ndarray, "variant sequence class"]
Labels = Int[np.ndarray, " sequence"] | Float[np.ndarray, " sequence"]  # numbers are those of a regression


def correct(logits: Logits, labels: Labels) -> Float[np.ndarray, "variant sequence 1"]:
    """1 where the largest logit is that of the label, else 0."""
    return (logits.argmax(axis=-1) == labels)[..., None].astype(np.float64)


def losses(logits: Logits, labels: Labels) -> Float[np.ndarray, "variant sequence 1"]:
    """Cross entropy of every sequence (nats); squared error if the logits are the single output of a regression."""
    if logits.shape[-1] == 1:
        return (logits.astype(np.float64) - labels[:, None]) ** 2
    log_shares = special.log_softmax(logits.astype(np.float64), axis=-1)
    return -np.take_along_axis(log_shares, labels[None, :, None], axis=-1)


def confusion(logits: Logits, labels: Labels) -> Float[np.ndarray, "variant sequence 4"]:
    """1 in the cell of every answer: true positive, false positive, false negative, true negative (1 is positive)."""
    answers, true = logits.argmax(axis=-1) == 1, np.broadcast_to(labels == 1, logits.shape[:-1])
    cells = [answers & true, answers & ~true, ~answers & true, ~answers & ~true]
    return np.stack(cells, axis=-1).astype(np.float64)


def f1(cells: Float[np.ndarray, "... 4"]) -> Float[np.ndarray, "..."]:
    """F1 of class 1 from the shares of the four cells of `confusion`; 0 without true positives."""
    true_positive, false_positive, false_negative, _ = np.moveaxis(cells, -1, 0)
    return divided(2 * true_positive, 2 * true_positive + false_positive + false_negative)


def matthews(cells: Float[np.ndarray, "... 4"]) -> Float[np.ndarray, "..."]:
    """Matthews' correlation from the shares of the four cells of `confusion`; 0 where all answers are one."""
    a, b, c, d = np.moveaxis(cells, -1, 0)
    product = (a + b) * (a + c) * (d + b) * (d + c)
    return divided(a * d - b * c, np.sqrt(np.maximum(product, 0)))


def products(logits: Logits, labels: Labels) -> Float[np.ndarray, "variant sequence 5"]:
    """Answer, label, their squares and their product: a correlation is a function of their means."""
    answers, true = np.broadcast_arrays(logits[..., 0].astype(np.float64), labels.astype(np.float64))
    return np.stack([answers, true, answers**2, true**2, answers * true], axis=-1)


def correlation(means: Float[np.ndarray, "... 5"]) -> Float[np.ndarray, "..."]:
    """Pearson's correlation from the means of `products`; 0 for constant answers."""
    x, y, xx, yy, xy = np.moveaxis(means, -1, 0)
    # Differences no larger than rounding errors are exactly zero.
    varied, varied_true = (
        np.where(square - mean**2 > ROUNDING * square, square - mean**2, 0)
        for mean, square in ((x, xx), (y, yy))
    )
    return divided(xy - x * y, np.sqrt(varied * varied_true))


class Metric(NamedTuple):
    """A metric as a function `value` of the means of `columns`, which hold what each answer adds."""

    columns: Callable[[Logits, Labels], Float[np.ndarray, "variant sequence column"]]
    value: Callable[[Float[np.ndarray, "... column"]], Float[np.ndarray, "..."]]


METRICS = {
    "accuracy": Metric(correct, lambda means: means[..., 0]),
    LOSS: Metric(losses, lambda means: means[..., 0]),
    "f1": Metric(confusion, f1),
    "matthews": Metric(confusion, matthews),
    PEARSON: Metric(products, correlation),
}


def divided(numerator: Numbers, denominator: Numbers) -> Float[np.ndarray, "..."]:
    """The quotient, 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def pearson(
    first: Num[np.ndarray, "..."], second: Num[np.ndarray, "..."], axis: int = -1
) -> Shaped[np.ndarray, "..."]:
    """Pearson's correlation along an axis; NaN where one side is constant. Scipy computes p-values too: too slow."""
    varies = (np.ptp(first, axis) > 0) & (np.ptp(second, axis) > 0)
    first, second = (values - values.mean(axis, keepdims=True) for values in (first, second))
    squares = (first**2).sum(axis) * (second**2).sum(axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(varies, (first * second).sum(axis) / np.sqrt(squares), np.nan)


def spearman(
    first: Num[np.ndarray, "..."], second: Num[np.ndarray, "..."], axis: int = -1
) -> Shaped[np.ndarray, "..."]:
    """Spearman's correlation: that of the ranks."""
    return pearson(stats.rankdata(first, axis=axis), stats.rankdata(second, axis=axis), axis)
