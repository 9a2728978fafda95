"""Heads as parsers on attention and on attribution: the same head on both maps, and the best head on each."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Bool

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.pascual2021.measures import ATTENTION, GLOBAL
from analysis.scores.attachment import DIRECTIONS, Attachment, cross_fitted, documents_of, halves, right
from analysis.scores.words import split_words
from analysis.statistics.resampling import bca_interval
from analysis.texts.dependencies import OFFSETS, arcs, best_offsets, offset_table
from analysis.texts.examples import sample

SYSTEMS = ("attention", "attribution_same_head", "attribution")
ENDS = ("low", "high")


def short_sentences(
    encoder: Encoder, words: pd.DataFrame, pieces: int, count: int, seed: int = 0
) -> pd.DataFrame:
    """Words of a sample of `count` sentences of at most `pieces` word pieces; raises InputError if none is left."""
    forms = {sentence: part["form"].tolist() for sentence, part in words.groupby("sentence", sort=False)}
    short = split_words(encoder.tokenizer, [*forms.values()], pieces).kept
    names = [*forms]
    sampled = {names[sentence.number] for sentence in sample(short, count, seed)}
    return words[words["sentence"].isin(sampled)].reset_index(drop=True)


def dependency_survival(
    attachments: Mapping[str, Attachment], minimum: int = 30, resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """Accuracy of the best heads on attention, of the same heads on attribution, and of the best heads on attribution.

    Columns relation, n (arcs), layer, head, direction (best on attention over all sentences), offset_accuracy; for each
    of SYSTEMS its accuracy, _low and _high; change (same head, attribution minus attention) with change_low and
    change_high. In each half of the documents, the score is that of the head that is best in the other half. Intervals
    are BCa, over sentences. Relations with fewer than `minimum` arcs are left out. Raises InputError if no relation has
    enough. Source: Clark 2019, 4.2 (protocol); departure: cross-fitting.
    """
    words = attachments[ATTENTION].words
    scored = arcs(words)
    halved = pd.Series(halves(documents_of(words, scored), seed), index=scored.index)
    rows = []
    for relation, part in scored.groupby("relation", sort=False):
        first_half = halved[part.index].to_numpy()
        if len(part) >= minimum and first_half.any() and not first_half.all():
            correct = {name: right(attachment, part) for name, attachment in attachments.items()}
            accuracy = correct[ATTENTION].mean(axis=0)
            layer, direction, head = np.unravel_index(accuracy.argmax(), accuracy.shape)
            row = {"relation": relation, "n": len(part)}
            row |= {"layer": int(layer), "head": int(head), "direction": DIRECTIONS[direction]}
            row["offset_accuracy"] = best_offsets(offset_table(part, OFFSETS))["accuracy"].iloc[0]
            rows.append(row | _compared(correct, first_half, part["sentence"].to_numpy(), resamples, seed))
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    return pd.DataFrame(rows).sort_values("n", ascending=False, kind="stable", ignore_index=True)


def _compared(
    correct: Mapping[str, Bool[np.ndarray, "arc layer direction head"]],
    first_half: Bool[np.ndarray, " arc"],
    sentences: np.ndarray,
    resamples: int,
    seed: int,
) -> dict[str, float]:
    """Accuracies of SYSTEMS and the change of the same head, with intervals."""
    attention, attribution = correct[ATTENTION], correct[GLOBAL]
    values = [
        cross_fitted(attention, first_half),
        cross_fitted(attention, first_half, attribution),
        cross_fitted(attribution, first_half),
    ]
    columns = np.stack([*values, values[1].astype(float) - values[0]], axis=1).astype(float)
    ends = dict(zip(ENDS, bca_interval(columns, sentences, resamples=resamples, seed=seed), strict=True))
    means = dict(zip((*SYSTEMS, "change"), columns.mean(axis=0), strict=True))
    ends = {f"{name}_{end}": ends[end][number] for number, name in enumerate(means) for end in ENDS}
    return means | ends
