"""Do effects of heads carry over between data sets? Correlations over heads; halves of one set give the ceiling."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.papers.michel2019.tables import Labels
from analysis.statistics.answers import LOSS
from analysis.statistics.leads import compared

TRANSFER = ["model", "data_a", "data_b", "r", "low", "high", "spearman"]
HALVES = ("one half", "the other half")


class Effects(NamedTuple):
    """Changes of the loss (nats) without each head, for one model on two sets of sequences."""

    model: str
    data_a: str
    data_b: str
    a: Float[np.ndarray, " head"]
    b: Float[np.ndarray, " head"]


def effects(
    logits: Mapping[tuple[str, str], xr.DataArray], labels: Labels, metric: str = LOSS, seed: int = 0
) -> list[Effects]:
    """The effects in each model on the two data sets, and on random halves of the set on which it was trained.

    `logits` have as keys the tasks of model and data. The metric is the loss, since accuracy moves in steps of one
    answer; the article uses accuracy.
    """
    found = []
    for model in dict.fromkeys(model for model, _ in logits):
        data = [name for of, name in logits if of == model]
        changes = {name: compared(logits[model, name], labels[name], metric).change for name in data}
        found.append(Effects(model, *data, *changes.values()))
        halves = _halves(logits[model, model], labels[model], metric, seed)
        found.append(Effects(model, *(f"{model}, {half}" for half in HALVES), *halves))
    return found


def transfer_table(found: list[Effects], resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Pearson's r of the effects with its BCa interval over heads, and Spearman's: columns TRANSFER."""
    rows = []
    for each in found:
        r = stats.pearsonr(each.a, each.b)
        method = stats.BootstrapMethod(n_resamples=resamples, method="BCa", rng=seed)
        low, high = r.confidence_interval(method=method)
        spearman = stats.spearmanr(each.a, each.b).statistic
        rows.append([each.model, each.data_a, each.data_b, r.statistic, low, high, spearman])
    return pd.DataFrame(rows, columns=TRANSFER)


def _halves(
    logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], metric: str, seed: int
) -> list[Float[np.ndarray, " head"]]:
    """The changes on two random halves of the sequences."""
    drawn = np.random.default_rng(seed).permutation(len(labels))
    parts = np.array_split(drawn, 2)
    return [compared(logits.isel(sequence=part), labels[part], metric).change for part in parts]
