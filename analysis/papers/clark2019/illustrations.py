"""Heads at work on one sentence or excerpt: dependencies and coreference (Clark 2019, figure 5)."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.papers.clark2019.coreference import Texts, antecedents, head_hits
from analysis.papers.clark2019.published import BOTH_HALVES
from analysis.scores.attachment import DIRECTIONS, Attachment, right
from analysis.scores.words import split_words, word_maps
from analysis.texts.chains import Document

TO_ANTECEDENT = "mention to antecedent"
LENGTHS = (6, 12)  # fewest and most words of a sentence
DISTANCES = (4, 10)  # fewest and most words from the antecedent to the mention
LONGEST = 14  # characters of a word in an excerpt: addresses are neither legible nor for print
ARROWS = dict(zip(DIRECTIONS, ("dep→head", "head→dep"), strict=True)) | {TO_ANTECEDENT: "mention→antecedent"}


class HeadExample(NamedTuple):
    """Words, the attention of one head between them (each row sums to 1), and one arc: a hit or a miss of the head.

    `arc` is (attending word, attended word), both from 0, according to the gold annotation and the direction of the
    head. In a hit, the head attends most to the word of the annotation.
    """

    title: str
    forms: list[str]
    attention: Float[np.ndarray, "word word"]
    arc: tuple[int, int]


def _title(relation: str, layer: int, head: int, direction: str, hit: bool) -> str:
    return f"{relation} {layer}-{head}: {'hit' if hit else 'miss'}\n{ARROWS[direction]}"


def head_examples(
    encoder: Encoder,
    attachment: Attachment,
    scored: pd.DataFrame,
    table: pd.DataFrame,
    rows: str = "mean",
) -> list[HeadExample]:
    """For each row of a `dependency_table`, the first arc of the relation that its head finds, and the first it misses.

    The arcs are the first ones in sentences of suitable LENGTHS, not the best. A head that only hits, or only misses,
    has one example. Source: Clark 2019, Figure 5; departures: a miss beside each hit, and [CLS] and [SEP] are masked,
    as for the accuracy.
    """
    examples, is_right = [], right(attachment, scored)
    suitable = (scored["head"] > 0) & scored["length"].between(*LENGTHS)
    for row in table.itertuples():
        hits = is_right[:, row.layer, DIRECTIONS.index(row.direction), row.head]
        for hit in (True, False):
            arcs = scored[suitable & (scored["relation"] == row.relation) & (hits == hit)]
            for arc in arcs.head(1).itertuples():
                forms = attachment.words.loc[attachment.words["sentence"] == arc.sentence, "form"].tolist()
                [pieces] = split_words(encoder.tokenizer, [forms]).kept
                attention = _normalised(word_maps(encoder, pieces, rows)[row.layer, row.head, 1:-1, 1:-1])
                ends = (arc.word, arc.head - 1)[:: 1 if row.direction == DIRECTIONS[0] else -1]
                title = _title(row.relation, row.layer, row.head, row.direction, hit)
                examples.append(HeadExample(title, forms, attention, ends))
    return examples


def coreference_examples(
    encoder: Encoder, texts: Texts, systems: pd.DataFrame, rows: str = "mean"
) -> list[HeadExample]:
    """For each head of `held_out_systems`, the first excerpt in which it finds an antecedent, and the first it misses.

    The head chooses among all words, as in the paper; the mention has a single antecedent, at one of DISTANCES. The
    excerpt extends one word beyond both, and each row is divided by its sum over the excerpt: in a miss, the word that
    the head attends to most may lie outside.
    """
    places = systems.dropna(subset="layer")[["layer", "head"]].drop_duplicates()
    heads = places.astype(int).to_numpy().tolist()
    examples: dict[tuple[int, int, bool], HeadExample] = {}
    for text, pieces in zip(texts.documents, texts.pieces, strict=True):
        pairs = [*_near_antecedents(text)]
        if not pairs or len(examples) == 2 * len(heads):
            continue
        maps = word_maps(encoder, pieces, rows)[:, :, 1:-1, 1:-1]
        hits = head_hits(maps, text)
        for (layer, head), (anaphor, mention, antecedent) in product(heads, pairs):
            key, part = (layer, head, bool(hits[layer, head, anaphor])), _excerpt(mention, antecedent)
            if key not in examples:
                forms, attention = text.words["form"].iloc[part], _normalised(maps[layer, head, part, part])
                arc = (mention - part.start, antecedent - part.start)
                title = _title("coreference", layer, head, TO_ANTECEDENT, key[-1])
                examples[key] = HeadExample(title, forms.tolist(), attention, arc)
    keys = [(*head, hit) for head in heads for hit in (True, False)]
    return [examples[key] for key in keys if key in examples]


def _near_antecedents(text: Document) -> Iterator[tuple[int, int, int]]:
    """Mentions with a single antecedent that is near: the number of the anaphor, its head word, the antecedent's.

    Mentions with a long word in their excerpt are left out.
    """
    pairs, heads = antecedents(text), text.mentions["head"].tolist()
    for anaphor, mention in enumerate(np.flatnonzero(pairs.any(axis=1))):
        first, *others = np.flatnonzero(pairs[mention])
        is_near = DISTANCES[0] <= heads[mention] - heads[first] <= DISTANCES[1]
        forms = text.words["form"].iloc[_excerpt(heads[mention], heads[first])]
        if is_near and not others and forms.str.len().max() <= LONGEST:
            yield anaphor, heads[mention], heads[first]


def _excerpt(mention: int, antecedent: int) -> slice:
    """From one word before the antecedent to one word after the mention."""
    return slice(max(antecedent - 1, 0), mention + 2)


def _normalised(attention: Float[np.ndarray, "word word"]) -> Float[np.ndarray, "word word"]:
    """Each row divided by its sum."""
    return attention / np.maximum(attention.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)


def linguistic_heads(dependencies: pd.DataFrame, readings: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """The heads that find a relation better than the best offset (adjusted p below alpha), or antecedents.

    Columns layer, head, and finds: the relations and "coreference", joined. Arguments are the saved tables
    `clark_dependencies` and `clark_coreference_readings`, whose cross-fitted heads count.
    """
    better = dependencies[(dependencies["p_adjusted"] < alpha) & (dependencies["gain"] > 0)]
    held_out = readings[(readings["scored_on"] == BOTH_HALVES) & readings["layer"].notna()]
    finds = pd.concat([better.rename(columns={"relation": "finds"}), held_out.assign(finds="coreference")])
    finds = finds[["layer", "head", "finds"]].drop_duplicates().astype({"layer": int, "head": int})
    return finds.groupby(["layer", "head"])["finds"].agg(", ".join).reset_index()
