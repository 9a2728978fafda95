"""Heads as parsers on attention and on attribution: the same head on both maps, and the best head on each."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.pascual2021.measures import ATTENTION, GLOBAL
from analysis.scores.words import DIRECTIONS, Attachment, documents_of, halves, right, split_words
from analysis.statistics.layers import cross_fitted
from analysis.statistics.resampling import bca_interval
from analysis.texts.dependencies import arcs, best_offsets, offset_table
from analysis.texts.examples import sample


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
    """The table `pascual_dependencies` (docs/tables.yaml), the most frequent relation first.

    The best heads on attention, the same heads on attribution, and the best heads on attribution: in each half of the
    documents, the score is that of the head that is best in the other half. layer, head and direction are the best on
    attention over all sentences; change is that of the same head. Intervals are BCa, over sentences. Relations with
    fewer than `minimum` arcs are left out. Raises InputError if no relation has enough. Source: Clark 2019, 4.2
    (protocol); departure: cross-fitting.
    """
    words = attachments[ATTENTION].words
    scored = arcs(words)
    halved = pd.Series(halves(documents_of(words, scored), seed), index=scored.index)
    rows = []
    for relation, part in scored.groupby("relation", sort=False):
        first_half = halved[part.index].to_numpy()
        if len(part) < minimum or first_half.all() or not first_half.any():
            continue
        attention, attribution = (right(attachments[name], part) for name in (ATTENTION, GLOBAL))
        accuracy = attention.mean(axis=0)
        layer, direction, head = np.unravel_index(accuracy.argmax(), accuracy.shape)
        row = {"relation": relation, "n": len(part)}
        row |= {"layer": layer, "head": head, "direction": DIRECTIONS[direction]}
        row["offset_accuracy"] = best_offsets(offset_table(part))["accuracy"].iloc[0]
        correct = {
            "attention": cross_fitted(attention, first_half).astype(float),
            "attribution_same_head": cross_fitted(attention, first_half, attribution).astype(float),
            "attribution": cross_fitted(attribution, first_half).astype(float),
        }
        correct["change"] = correct["attribution_same_head"] - correct["attention"]
        values = np.stack([*correct.values()], axis=1)
        low, high = bca_interval(values, part["sentence"].to_numpy(), resamples=resamples, seed=seed)
        row |= zip(correct, values.mean(axis=0), strict=True)
        for number, name in enumerate(correct):
            row |= {f"{name}_low": low[number], f"{name}_high": high[number]}
        rows.append(row)
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    return pd.DataFrame(rows).sort_values("n", ascending=False, kind="stable", ignore_index=True)
