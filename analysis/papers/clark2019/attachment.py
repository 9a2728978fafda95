"""Attention heads as parsers: how often the most attended word is the syntactic head (Clark 2019, 4.2)."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.errors import InputError
from analysis.scores.attachment import DIRECTIONS, Attachment, cross_fitted, documents_of, halves, right
from analysis.statistics.comparison import sign_flip
from analysis.statistics.intervals import mean_interval
from analysis.statistics.resampling import bca_interval
from analysis.statistics.significance import adjust
from analysis.texts.dependencies import OFFSETS, fixed_offset

MINIMUM = 100  # arcs per relation (Clark 2019, the authors' code)


def best_heads(attachment: Attachment, scored: pd.DataFrame, minimum: int = MINIMUM) -> pd.DataFrame:
    """The best attention head of each relation, chosen and scored on the same arcs: an optimistic accuracy.

    Columns relation, n, layer, head, direction, accuracy; `scored` is that of `dependencies.arcs`. Relations with
    fewer than `minimum` arcs are left out. Source: Clark 2019, 4.2 and Table 1.
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
    minimum: int = MINIMUM,
    alpha: float = 0.05,
    resamples: int = 999,
    permutations: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """The best attention head and the best fixed offset, each chosen on one half of the documents for the other half.

    Columns relation, n (arcs), layer, head, direction, accuracy, low, high, offset, offset_accuracy, gain, gain_low,
    gain_high, p_adjusted. layer, head, direction and offset are the best over all sentences. Accuracies are
    cross-fitted over two halves, as proportions of all arcs; low and high are the BCa interval over sentences, NaN if
    all arcs are right or all are wrong. gain is accuracy minus offset_accuracy, with its t interval over sentences.
    p_adjusted is from the two-sided sign-flip test of the gain, which flips whole sentences, corrected over relations
    by Benjamini and Yekutieli. `scored` is that of `dependencies.arcs`; relations with fewer than `minimum` arcs, or
    without arcs in one of the halves, are left out. Source: Clark 2019, 4.2; departures: the paper chooses and scores
    on the same sentences and has no test.
    """
    best = best_heads(attachment, scored, minimum).set_index("relation")
    in_first_half = pd.Series(halves(documents_of(attachment.words, scored), seed), index=scored.index)
    offsets = sorted(OFFSETS, reverse=True)  # of equally good offsets the largest is best
    rows, differences = {}, {}
    for relation, arcs in frequent_relations(scored, minimum):
        first_half, sentences = in_first_half[arcs.index].to_numpy(), arcs["sentence"].to_numpy()
        if first_half.all() or not first_half.any():
            continue
        gold = arcs["head"].to_numpy()
        by_offset = np.stack([fixed_offset(arcs, offset) == gold for offset in offsets], axis=1)
        head_right = cross_fitted(right(attachment, arcs), first_half).astype(float)
        offset_right = cross_fitted(by_offset, first_half).astype(float)
        (low,), (high,) = bca_interval(head_right[:, None], sentences, alpha, resamples, seed)
        gain, gain_low, gain_high = mean_interval(head_right - offset_right, sentences)
        rows[relation] = {
            **best.loc[relation],
            "accuracy": head_right.mean(), "low": low, "high": high,
            "offset": offsets[by_offset.mean(axis=0).argmax()], "offset_accuracy": offset_right.mean(),
            "gain": gain, "gain_low": gain_low, "gain_high": gain_high,
        }  # fmt: skip
        differences[relation] = pd.Series(head_right - offset_right).groupby(sentences).sum()
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    p = sign_flip(pd.DataFrame(differences).to_numpy(), permutations=permutations, seed=seed)
    table = pd.DataFrame([*rows.values()], pd.Index(rows, name="relation")).reset_index()
    return table.assign(p_adjusted=adjust(p, "fdr_by"))


def frequent_relations(scored: pd.DataFrame, minimum: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """The arcs of each relation with at least `minimum` arcs, the most frequent relation first."""
    counts = scored["relation"].value_counts(sort=True)
    groups = scored.groupby("relation", sort=False)
    return ((relation, groups.get_group(relation)) for relation in counts.index[counts >= minimum])
