"""Heads at work on one sentence or excerpt: dependencies and coreference (Clark 2019, figure 5)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.papers.clark2019.coreference import Texts, preceding, same_chain
from analysis.scores.attachment import DIRECTIONS, Attachment
from analysis.scores.words import split_words, word_maps

COREFERENCE, TO_ANTECEDENT = "coreference", "mention to antecedent"
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
        part = part[part["sentence"] == part["sentence"].min()]
        sentence = part["sentence"].iloc[0]
        forms = attachment.words.loc[attachment.words["sentence"] == sentence, "form"].tolist()
        [pieces] = split_words(encoder.tokenizer, [forms]).kept
        pairs = list(zip(part["word"].tolist(), (part["head"] - 1).tolist(), strict=True))
        if row.direction == DIRECTIONS[1]:
            pairs = [(head, dependent) for dependent, head in pairs]
        attention = between_words(word_maps(encoder, pieces, rows)[row.layer, row.head])
        found.append(HeadExample(row.relation, row.layer, row.head, row.direction, forms, attention, pairs))
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
    place = next(_antecedents(texts, distances), None)
    if place is None:
        return []
    number, mention, antecedent = place
    text, pieces = texts.documents[number], texts.pieces[number]
    start, stop = max(antecedent - 1, 0), min(mention + 2, len(text.words))
    maps = word_maps(encoder, pieces, rows)[:, :, 1 + start : 1 + stop, 1 + start : 1 + stop]
    forms = text.words["form"].iloc[start:stop].tolist()
    heads = systems.dropna(subset="layer").drop_duplicates(["layer", "head"])
    arcs = [(mention - start, antecedent - start)]
    return [
        HeadExample(COREFERENCE, layer, head, TO_ANTECEDENT, forms, rescaled(maps[layer, head]), arcs)
        for layer, head in heads[["layer", "head"]].astype(int).itertuples(index=False, name=None)
    ]


def between_words(
    attention: Float[np.ndarray, "position position"],
) -> Float[np.ndarray, "word word"]:
    """Attention without [CLS] (first) and [SEP] (last) as rows and columns; each row is divided by its sum."""
    return rescaled(attention[1:-1, 1:-1])


def rescaled(attention: Float[np.ndarray, "word word"]) -> Float[np.ndarray, "word word"]:
    """Each row divided by its sum."""
    return attention / np.maximum(attention.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)


def _antecedents(texts: Texts, distances: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """Text, head word of a mention and head word of its nearest antecedent, at a suitable distance."""
    for number, text in enumerate(texts.documents):
        heads = text.mentions["head"].to_numpy()
        gold = preceding(text) & same_chain(text)
        for mention in np.flatnonzero(gold.any(axis=1)):
            antecedent = int(heads[gold[mention]].max())
            if distances[0] <= heads[mention] - antecedent <= distances[1]:
                yield number, int(heads[mention]), antecedent
