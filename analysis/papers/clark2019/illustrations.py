"""Heads at work on one sentence or excerpt: dependencies and coreference (Clark 2019, figure 5)."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.papers.clark2019.coreference import Texts, antecedents
from analysis.scores.attachment import DIRECTIONS, Attachment
from analysis.scores.words import split_words, word_maps

TO_ANTECEDENT = "mention to antecedent"
ARROWS = dict(zip(DIRECTIONS, ("dep→head", "head→dep"), strict=True)) | {TO_ANTECEDENT: "mention→antecedent"}


class HeadExample(NamedTuple):
    """Words, the attention of one head between them (each row sums to 1), and the arcs of one relation.

    `arcs` has rows of (attending word, attended word), both from 0, according to the gold annotation and the direction
    of the head.
    """

    relation: str
    layer: int
    head: int
    direction: str
    forms: list[str]
    attention: Float[np.ndarray, "word word"]
    arcs: list[tuple[int, int]]


def head_examples(
    encoder: Encoder,
    attachment: Attachment,
    scored: pd.DataFrame,
    table: pd.DataFrame,
    lengths: tuple[int, int] = (6, 12),
    rows: str = "mean",
) -> list[HeadExample]:
    """For each row of a `dependency_table`, its head on the first sentence of a suitable length with the relation.

    It takes the first sentence, not the best: whether the head is right does not count. `lengths` are the fewest and
    most words; if no sentence is suitable, the shortest is taken. Source: Clark 2019, Figure 5; departure: [CLS] and
    [SEP] are masked, as for the accuracy.
    """
    found = []
    for row in table.itertuples():
        part = scored[(scored["relation"] == row.relation) & (scored["head"] > 0)]
        suitable = part["length"].between(*lengths)
        part = part[suitable] if suitable.any() else part[part["length"] == part["length"].min()]
        sentence = part["sentence"].min()
        part = part[part["sentence"] == sentence]
        forms = attachment.words.loc[attachment.words["sentence"] == sentence, "form"].tolist()
        [pieces] = split_words(encoder.tokenizer, [forms]).kept
        ends = part["word"].tolist(), (part["head"] - 1).tolist()
        arcs = list(zip(*(ends if row.direction == DIRECTIONS[0] else ends[::-1]), strict=True))
        attention = _rescaled(word_maps(encoder, pieces, rows)[row.layer, row.head, 1:-1, 1:-1])
        found.append(HeadExample(row.relation, row.layer, row.head, row.direction, forms, attention, arcs))
    return found


def coreference_examples(
    encoder: Encoder,
    texts: Texts,
    systems: pd.DataFrame,
    distances: tuple[int, int] = (4, 10),
    rows: str = "mean",
) -> list[HeadExample]:
    """For each head of `held_out_systems`, the first excerpt in which a mention has its antecedent a few words before.

    It takes the first excerpt, not the best. `distances` are the fewest and most words between both head words; if no
    text has such a mention, there is no example. The excerpt extends one word beyond both. Each row is divided by its
    sum over the excerpt.
    """
    places = systems.dropna(subset="layer")[["layer", "head"]].drop_duplicates().astype(int)
    for text, pieces in zip(texts.documents, texts.pieces, strict=True):
        heads, gold = text.mentions["head"].to_numpy(), antecedents(text)
        apart = heads - np.where(gold, heads, -np.inf).max(axis=1)
        near = np.flatnonzero((apart >= distances[0]) & (apart <= distances[1]))
        if not len(near):
            continue
        mention, antecedent = int(heads[near[0]]), int(heads[near[0]] - apart[near[0]])
        start, stop = max(antecedent - 1, 0), min(mention + 2, len(text.words))
        maps = word_maps(encoder, pieces, rows)[:, :, 1 + start : 1 + stop, 1 + start : 1 + stop]
        shown = text.words["form"].iloc[start:stop].tolist()
        arcs = [(mention - start, antecedent - start)]
        return [
            HeadExample("coreference", layer, head, TO_ANTECEDENT, shown, _rescaled(maps[layer, head]), arcs)
            for layer, head in places.itertuples(index=False, name=None)
        ]
    return []


def _rescaled(attention: Float[np.ndarray, "word word"]) -> Float[np.ndarray, "word word"]:
    """Each row divided by its sum."""
    return attention / np.maximum(attention.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
