"""Attention heads as parsers: the syntactic head that every attention head gives each word, and its accuracy."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from analysis.errors import InputError
from analysis.scores.attachment import DIRECTIONS, Attachment, halves, right
from analysis.statistics.comparison import sign_flip
from analysis.statistics.resampling import bootstrap
from analysis.statistics.significance import adjust
from analysis.texts.dependencies import OFFSETS, best_offsets, fixed_offset, offset_table

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
    return pd.DataFrame(
        [
            {"relation": relation, "n": len(part), **_best(attachment, part)}
            for relation, part in _relations(scored, minimum).items()
        ],
        columns=["relation", "n", "layer", "head", "direction", "accuracy"],
    )


def dependency_table(
    attachment: Attachment,
    scored: pd.DataFrame,
    offsets: Sequence[int] = OFFSETS,
    minimum: int = MINIMUM,
    alpha: float = 0.05,
    resamples: int = 999,
    permutations: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """The best attention head and fixed offset; in each half of the sentences, the other half chooses them.

    Columns relation, n (arcs), layer, head, direction, accuracy, low, high, offset, offset_accuracy, p_adjusted.
    layer, head, direction and offset are the best over all sentences. The accuracies are cross-fitted over two folds,
    as proportions of all arcs; low and high are their BCa bootstrap interval over sentences, NaN if all arcs are right
    or all are wrong. p_adjusted is from the two-sided sign-flip test of attention head minus offset, which flips whole
    sentences, corrected over the relations by Benjamini and Yekutieli. `scored` is that of `dependencies.arcs`;
    relations with fewer than `minimum` arcs, or without arcs in one of the halves, are left out. Source: Clark 2019,
    4.2; departures: the paper chooses and scores on the same sentences and has no test.
    """
    selecting = pd.Series(halves(scored["sentence"], seed), index=scored.index)
    rows, differences = [], {}
    for relation, part in _relations(scored, minimum).items():
        chooses = selecting[part.index]
        if chooses.all() or not chooses.any():
            continue
        options = (alpha, resamples, seed)
        row, differences[relation] = _held_out(attachment, part, chooses.to_numpy(), offsets, options)
        rows.append({"relation": relation, **row})
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    table = pd.DataFrame(rows)
    p = sign_flip(pd.DataFrame(differences).to_numpy(), permutations=permutations, seed=seed)
    return table.assign(p_adjusted=adjust(p, "fdr_by"))


def _relations(scored: pd.DataFrame, minimum: int) -> dict[str, pd.DataFrame]:
    """The arcs of each relation with at least `minimum` arcs, the most frequent relation first."""
    counts = scored["relation"].value_counts(sort=True)
    groups = dict(iter(scored.groupby("relation", sort=False)))
    return {relation: groups[relation] for relation in counts.index[counts >= minimum]}


def _best(attachment: Attachment, part: pd.DataFrame) -> dict[str, object]:
    accuracy = right(attachment, part).mean(axis=0)
    layer, direction, head = np.unravel_index(accuracy.argmax(), accuracy.shape)
    found = {"layer": int(layer), "head": int(head), "direction": DIRECTIONS[direction]}
    return found | {"accuracy": float(accuracy.max())}


def _held_out(
    attachment: Attachment,
    part: pd.DataFrame,
    chooses: Bool[np.ndarray, " arc"],
    offsets: Sequence[int],
    options: tuple[float, int, int],
) -> tuple[dict[str, object], pd.Series]:
    """One relation's row, and how many more arcs the attention head has right than the offset, by sentence."""
    by_head = cross_fitted(right(attachment, part), chooses)
    by_offset = np.zeros(len(part), bool)
    for chosen_on in (chooses, ~chooses):
        guess = fixed_offset(part[~chosen_on], _best_offset(part[chosen_on], offsets))
        by_offset[~chosen_on] = guess == part["head"].to_numpy()[~chosen_on]
    alpha, resamples, seed = options
    sentences = part["sentence"].to_numpy()
    interval = bootstrap(by_head[:, None].astype(float), 0.0, sentences, alpha, resamples, seed)
    row = {"n": len(part), **_best(attachment, part), "accuracy": by_head.mean()}
    row |= {"low": interval.low[0], "high": interval.high[0]}
    row |= {"offset": _best_offset(part, offsets), "offset_accuracy": by_offset.mean()}
    return row, pd.Series(by_head.astype(float) - by_offset).groupby(sentences).sum()


def _best_offset(part: pd.DataFrame, offsets: Sequence[int]) -> int:
    return int(best_offsets(offset_table(part, offsets))["offset"].iloc[0])


def largest_gains(table: pd.DataFrame, count: int = 4) -> pd.DataFrame:
    """The relations in `dependency_table` whose attention head exceeds the offset most, without sums of relations."""
    own = table[~table["relation"].str.contains(r"all|\+")]
    gain = own["accuracy"] - own["offset_accuracy"]
    return own.loc[gain.sort_values(ascending=False, kind="stable").index[:count]]
