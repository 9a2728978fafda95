"""Attention heads as parsers: how often the most attended word is the governor (Clark 2019, 4.2)."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.errors import InputError
from analysis.scores.words import DIRECTIONS, Attachment, documents_of, halves, right
from analysis.statistics.comparison import sign_flip
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import cross_fitted
from analysis.statistics.resampling import bca_interval
from analysis.statistics.significance import adjust
from analysis.texts.dependencies import OFFSETS, fixed_offset

DESCENDING = sorted(OFFSETS, reverse=True)  # of equally good offsets the first is best, the largest one


def best_heads(attachment: Attachment, scored: pd.DataFrame, minimum: int) -> pd.DataFrame:
    """The table `clark_best_heads` (docs/tables.yaml): each head is chosen and scored on the same arcs, so optimistic.

    `scored` is that of `dependencies.arcs`. Relations with fewer than `minimum` arcs are left out (100 in the authors'
    code). Source: Clark 2019, 4.2 and Table 1.
    """
    rows = []
    for relation, arcs in frequent_relations(scored, minimum):
        accuracy = right(attachment, arcs).mean(axis=0)
        layer, direction, head = np.unravel_index(accuracy.argmax(), accuracy.shape)
        rows.append((relation, len(arcs), layer, head, DIRECTIONS[direction], accuracy.max()))
    return pd.DataFrame(rows, columns=["relation", "n", "layer", "head", "direction", "accuracy"])


def dependency_table(
    attachment: Attachment,
    scored: pd.DataFrame,
    minimum: int,
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """The table `clark_dependencies` (docs/tables.yaml): the best attention head and the best fixed offset.

    layer, head, direction and offset are the best over all sentences. Accuracies are cross-fitted over two halves of
    the documents, with the BCa interval over sentences (NaN if all arcs are right or all are wrong); gain is the
    difference, with its t interval. p_adjusted is from the two-sided sign-flip test of the gain, which flips whole
    sentences, corrected over relations by Benjamini and Yekutieli. `scored` is that of `dependencies.arcs`; relations
    with fewer than `minimum` arcs, or without arcs in one of the halves, are left out. Source: Clark 2019, 4.2;
    departures: the paper chooses and scores on the same sentences and has no test.
    """
    best = best_heads(attachment, scored, minimum).set_index("relation")
    in_first_half = pd.Series(halves(documents_of(attachment.words, scored), seed), index=scored.index)
    rows, differences = [], {}
    for relation, arcs in frequent_relations(scored, minimum):
        first_half, sentences = in_first_half[arcs.index].to_numpy(), arcs["sentence"].to_numpy()
        if first_half.all() or not first_half.any():
            continue
        by_offset = np.stack([fixed_offset(arcs, offset) == arcs["head"] for offset in DESCENDING], axis=1)
        head_right = cross_fitted(right(attachment, arcs), first_half).astype(float)
        offset_right = cross_fitted(by_offset, first_half).astype(float)
        (low,), (high,) = bca_interval(head_right[:, None], sentences, alpha, resamples, seed)
        gain, gain_low, gain_high = mean_interval(head_right - offset_right, sentences)
        rows.append({
            "relation": relation, **best.loc[relation],
            "accuracy": head_right.mean(), "low": low, "high": high,
            "offset": DESCENDING[by_offset.mean(axis=0).argmax()], "offset_accuracy": offset_right.mean(),
            "gain": gain, "gain_low": gain_low, "gain_high": gain_high,
        })  # fmt: skip
        differences[relation] = pd.Series(head_right - offset_right).groupby(sentences).sum()
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    p = sign_flip(pd.DataFrame(differences).to_numpy(), seed=seed)
    return pd.DataFrame(rows).assign(p_adjusted=adjust(p, "fdr_by"))


def frequent_relations(scored: pd.DataFrame, minimum: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """The arcs of each relation with at least `minimum` arcs, the most frequent relation first."""
    counts = scored["relation"].value_counts(sort=True)
    groups = scored.groupby("relation", sort=False)
    return ((relation, groups.get_group(relation)) for relation in counts.index[counts >= minimum])
