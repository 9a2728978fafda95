"""Attention heads as parsers: the syntactic head that every attention head gives each word, and its accuracy."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import Bool

from analysis.errors import InputError
from analysis.scores.attachment import DIRECTIONS, Attachment, halves, right
from analysis.statistics.comparison import sign_flip
from analysis.statistics.intervals import mean_interval
from analysis.statistics.resampling import bootstrap
from analysis.statistics.significance import adjust
from analysis.texts.dependencies import OFFSETS, fixed_offset

MINIMUM = 100  # arcs per relation (Clark 2019, released code)


def cross_fitted(
    correct: Bool[np.ndarray, "case *place"], chooses: Bool[np.ndarray, " case"]
) -> Bool[np.ndarray, " case"]:
    """Whether each case is right at the place (a head) that is best in the half without the case.

    `chooses` marks one half. Each half chooses for the other; of equally good places it takes the first.
    """
    found = np.zeros(len(correct), bool)
    for chosen_on in (chooses, ~chooses):
        accuracy = correct[chosen_on].mean(axis=0)
        place = np.unravel_index(accuracy.argmax(), accuracy.shape)
        found[~chosen_on] = correct[(~chosen_on, *place)]
    return found


def best_heads(attachment: Attachment, scored: pd.DataFrame, minimum: int = MINIMUM) -> pd.DataFrame:
    """The best attention head of each relation, scored on the same arcs that chose it: an optimistic accuracy.

    Columns relation, n, layer, head, direction, accuracy; `scored` is that of `dependencies.arcs`. Relations with
    fewer than `minimum` arcs are left out. Source: Clark 2019, 4.2 (Table 1 chooses and scores in this way).
    """
    rows = []
    for relation, part in _relations(scored, minimum):
        accuracy = right(attachment, part).mean(axis=0)
        layer, direction, head = np.unravel_index(accuracy.argmax(), accuracy.shape)
        rows.append((relation, len(part), layer, head, DIRECTIONS[direction], accuracy.max()))
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
    """The best attention head and fixed offset; in each half of the sentences, the other half chooses them.

    Columns relation, n (arcs), layer, head, direction, accuracy, low, high, offset, offset_accuracy, p_adjusted; gain,
    gain_low and gain_high are accuracy minus that of the offset and its t interval over sentences.
    layer, head, direction and offset are the best over all sentences. The accuracies are cross-fitted over two folds,
    as proportions of all arcs; low and high are their BCa bootstrap interval over sentences, NaN if all arcs are right
    or all are wrong. p_adjusted is from the two-sided sign-flip test of attention head minus offset, which flips whole
    sentences, corrected over the relations by Benjamini and Yekutieli. `scored` is that of `dependencies.arcs`;
    relations with fewer than `minimum` arcs, or without arcs in one of the halves, are left out. Source: Clark 2019,
    4.2; departures: the paper chooses and scores on the same sentences and has no test.
    """
    best = best_heads(attachment, scored, minimum).set_index("relation")
    selecting = pd.Series(halves(scored["sentence"], seed), index=scored.index)
    rows, differences, offsets = {}, {}, sorted(OFFSETS, reverse=True)  # of equal ones the largest is best
    for relation, part in _relations(scored, minimum):
        chooses, sentences = selecting[part.index].to_numpy(), part["sentence"].to_numpy()
        if chooses.all() or not chooses.any():
            continue
        found = [fixed_offset(part, offset) == part["head"].to_numpy() for offset in offsets]
        by_place = np.stack(found, axis=1)
        by_head, by_offset = cross_fitted(right(attachment, part), chooses), cross_fitted(by_place, chooses)
        interval = bootstrap(by_head[:, None].astype(float), 0.0, sentences, alpha, resamples, seed)
        ends = {"low": interval.low[0], "high": interval.high[0]}
        offset = {"offset": offsets[by_place.mean(axis=0).argmax()], "offset_accuracy": by_offset.mean()}
        gain = mean_interval(by_head.astype(float) - by_offset, sentences)
        gains = dict(zip(("gain", "gain_low", "gain_high"), gain, strict=True))
        rows[relation] = {**best.loc[relation], "accuracy": by_head.mean(), **ends, **offset, **gains}
        differences[relation] = pd.Series(by_head.astype(float) - by_offset).groupby(sentences).sum()
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    p = sign_flip(pd.DataFrame(differences).to_numpy(), permutations=permutations, seed=seed)
    table = pd.DataFrame([*rows.values()], pd.Index(rows, name="relation")).reset_index()
    return table.assign(p_adjusted=adjust(p, "fdr_by"))


def _relations(scored: pd.DataFrame, minimum: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """The arcs of each relation with at least `minimum` arcs, the most frequent relation first."""
    counts = scored["relation"].value_counts(sort=True)
    groups = scored.groupby("relation", sort=False)
    return ((relation, groups.get_group(relation)) for relation in counts.index[counts >= minimum])
