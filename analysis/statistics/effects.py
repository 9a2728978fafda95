"""Ablation effects that no shift of all logits can mimic: on the AUC, and on the loss with slope and bias refitted.

Loss and accuracy mix what an encoder knows with a shift of all logits towards one class.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy import special, stats
from sklearn.linear_model import LogisticRegression

from analysis.errors import InputError
from analysis.statistics.answers import Logits, correct, losses
from analysis.statistics.changes import split_baseline
from analysis.statistics.intervals import crossed_interval

AUC, REFITTED = "auc", "refitted loss"
EFFECT_METRICS = (AUC, REFITTED, "loss", "accuracy")
BySequence = Float[np.ndarray, "*variant sequence"]
Classes = Int[np.ndarray, " sequence"]


def match_logit(logits: Float[np.ndarray, "*variant sequence class"], match: int = 1) -> BySequence:
    """The log odds of class `match` against all others: log p - log(1 - p)."""
    others = np.delete(logits.astype(np.float64), match, axis=-1)
    return logits[..., match] - special.logsumexp(others, axis=-1)


def auc_parts(scores: BySequence, positive: Bool[np.ndarray, " sequence"]) -> BySequence:
    """A number for every sequence; their mean is the AUC and their standard error is DeLong's.

    The AUC is the probability that a positive sequence has a higher score than a negative one; ties count half. NaN if
    one class is missing. Source: DeLong et al. 1988.
    """
    n, parts = len(positive), np.full(scores.shape, np.nan)
    counts = {True: positive.sum(), False: (~positive).sum()}
    if not all(counts.values()):
        return parts
    scores = np.round(scores, 9)  # rounding must not break ties
    ranks = stats.rankdata(scores, axis=-1)
    for side in (True, False):
        rows = positive == side
        # How many of the other class are ranked lower.
        ahead = ranks[..., rows] - stats.rankdata(scores[..., rows], axis=-1)
        parts[..., rows] = ahead / counts[not side] if side else 1 - ahead / counts[not side]
    auc = parts[..., positive].mean(axis=-1, keepdims=True)
    return auc + (parts - auc) * np.where(positive, n / counts[True], n / counts[False])


def stratified_halves(labels: Classes) -> Bool[np.ndarray, " sequence"]:
    """Two random halves with the same share of every label: True is the first."""
    order = np.random.default_rng(0).permutation(len(labels))
    places = order[np.argsort(labels[order], kind="stable")]
    half = np.zeros(len(labels), bool)
    half[places[::2]] = True
    return half


def refitted_losses(logits: Logits, labels: Classes) -> BySequence:
    """The cross entropy of every sequence (nats) under a logistic regression on logits, fitted on the other half."""
    half = stratified_halves(labels)
    cross_entropy = np.full(logits.shape[:2], np.nan)
    for variant, values in enumerate(logits.astype(np.float64)):
        for fitted in (half, ~half):
            if len(np.unique(labels[fitted])) < 2:
                continue
            model = LogisticRegression(C=100).fit(values[fitted], labels[fitted])
            log_shares = np.full((np.sum(~fitted), logits.shape[-1]), -np.inf)
            log_shares[:, model.classes_] = model.predict_log_proba(values[~fitted])
            cross_entropy[variant, ~fitted] = -log_shares[np.arange(len(log_shares)), labels[~fitted]]
    return cross_entropy


def costs_by_metric(logits: Logits, labels: Classes, match: int = 1) -> dict[str, BySequence]:
    """A number for every variant and sequence and each of EFFECT_METRICS, larger where the answers are worse.

    Their means are the losses (nats), and the AUC and the accuracy with a minus sign. `match` is the class whose log
    odds the AUC ranks.
    """
    return {
        AUC: -auc_parts(match_logit(logits, match), labels == match),
        REFITTED: refitted_losses(logits, labels),
        "loss": losses(logits, labels)[..., 0],
        "accuracy": -correct(logits, labels)[..., 0],
    }


def effect_table(
    logits: xr.DataArray, labels: Classes, match: int = 1, task: str = "the task"
) -> pd.DataFrame:
    """The effect of every intervention: a row per metric of EFFECT_METRICS and intervention.

    `logits` have the row "none"; `match` is the class whose log odds the AUC ranks. Columns as in `matching_effects`
    (docs/tables.yaml); intervals are over sequences. Raises InputError, which names the `task`, if all sequences or
    none have the label `match`.
    """
    positives = int((labels == match).sum())
    if positives in (0, len(labels)):
        raise InputError(
            f"{task}: {positives} of {len(labels)} dev examples have the label {match}, so the AUC is not defined: "
            "take more dev examples, or those of another label too"
        )
    base, others = split_baseline(logits)
    values = np.concatenate([base.values, others.values])
    odds = match_logit(values, match)
    shift, tables = (odds[1:] - odds[0]).mean(axis=-1), []
    for metric, costs in costs_by_metric(values, labels, match).items():
        rows = [crossed_interval(row[None]) for row in costs[1:] - costs[0]]
        table = pd.DataFrame(rows, columns=["effect", "low", "high"]).assign(shift=shift)
        table["rank"] = table["effect"].rank(ascending=False, method="min")
        table["baseline"] = abs(costs[0].mean())
        tables.append(table.assign(intervention=others["intervention"].values, metric=metric))
    columns = ["intervention", "metric", "baseline", "effect", "low", "high", "rank", "shift"]
    return pd.concat(tables, ignore_index=True)[columns]


def lead_of_weakest(
    measure: Callable[[Bool[np.ndarray, " sequence"]], Float[np.ndarray, "run variant part"]],
    half: Bool[np.ndarray, " sequence"],
    members: Bool[np.ndarray, " variant"],
) -> Float[np.ndarray, "run sequence"]:
    """How far the weakest member lies above the strongest other variant, for every run and sequence.

    `measure` gives the values of all variants on a part of the sequences. Both variants are chosen by their means on
    one half and read on the other, and the other way round, so that the choice does not flatter either.
    """
    parts = {side: measure(half == side) for side in (True, False)}
    differences = np.full((len(parts[True]), len(half)), np.nan)
    for side, values in parts.items():
        means = parts[not side].mean(axis=(0, 2))
        weakest = np.flatnonzero(members)[means[members].argmin()]
        strongest = np.flatnonzero(~members)[means[~members].argmax()]
        differences[:, half == side] = values[:, weakest] - values[:, strongest]
    return differences
