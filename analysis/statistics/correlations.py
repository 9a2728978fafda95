"""Correlations along an axis, for arrays of any shape; scipy's compute a p-value for each as well, which is slow."""

import numpy as np
from jaxtyping import Num, Shaped
from scipy import stats


def pearson(
    first: Num[np.ndarray, "..."], second: Num[np.ndarray, "..."], axis: int = -1
) -> Shaped[np.ndarray, "..."]:
    """Pearson's correlation; NaN where one side is constant."""
    first, second = (values - values.mean(axis, keepdims=True) for values in (first, second))
    squares = (first**2).sum(axis) * (second**2).sum(axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((first * second).sum(axis) / np.sqrt(squares))


def spearman(
    first: Num[np.ndarray, "..."], second: Num[np.ndarray, "..."], axis: int = -1
) -> Shaped[np.ndarray, "..."]:
    """Spearman's correlation: that of the ranks."""
    return pearson(stats.rankdata(first, axis=axis), stats.rankdata(second, axis=axis), axis)
