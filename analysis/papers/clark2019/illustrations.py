"""Heads at work on one sentence or excerpt: dependencies and coreference (Clark 2019, figure 5)."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.papers.clark2019.coreference import Texts, antecedents, attended
from analysis.papers.clark2019.published import BOTH_HALVES
from analysis.scores.attachment import DIRECTIONS, Attachment, right
from analysis.scores.words import split_words, word_maps

TO_ANTECEDENT = "mention to antecedent"
LONGEST = 14  # characters of a word in an excerpt: addresses are neither legible nor for print
ARROWS = dict(zip(DIRECTIONS, ("dep→head", "head→dep"), strict=True)) | {TO_ANTECEDENT: "mention→antecedent"}


class HeadExample(NamedTuple):
    """Words, the attention of one head between them (each row sums to 1), and one arc: a hit or a miss of the head.

    `arc` is (attending word, attended word), both from 0, according to the gold annotation and the direction of the
    head. In a hit, the head attends most to the word of the annotation.
    """

    relation: str
    layer: int
    head: int
    direction: str
    hit: bool
    forms: list[str]
    attention: Float[np.ndarray, "word word"]
    arc: tuple[int, int]


def head_examples(
    encoder: Encoder,
    attachment: Attachment,
    scored: pd.DataFrame,
    table: pd.DataFrame,
    lengths: tuple[int, int] = (6, 12),
    rows: str = "mean",
) -> list[HeadExample]:
    """For each row of a `dependency_table`, the first arc of the relation that its head finds, and the first it misses.

    It takes the first arcs in sentences of a suitable length, not the best. `lengths` are the fewest and most words; if
    no sentence is suitable, the shortest are taken. A head that only hits, or only misses, has one example. Source:
    Clark 2019, Figure 5; departures: a miss beside each hit, and [CLS] and [SEP] are masked, as for the accuracy.
    """
    examples, is_right = [], right(attachment, scored)
    for row in table.itertuples():
        arcs = (scored["relation"] == row.relation) & (scored["head"] > 0)
        suitable = arcs & scored["length"].between(*lengths)
        if not suitable.any():
            suitable = arcs & (scored["length"] == scored.loc[arcs, "length"].min())
        hits = is_right[:, row.layer, DIRECTIONS.index(row.direction), row.head]
        for hit in (True, False):
            for arc in scored[suitable & (hits == hit)].head(1).itertuples():
                forms = attachment.words.loc[attachment.words["sentence"] == arc.sentence, "form"].tolist()
                [pieces] = split_words(encoder.tokenizer, [forms]).kept
                attention = _rescaled(word_maps(encoder, pieces, rows)[row.layer, row.head, 1:-1, 1:-1])
                ends = (arc.word, arc.head - 1)[:: 1 if row.direction == DIRECTIONS[0] else -1]
                place = row.relation, row.layer, row.head, row.direction
                examples.append(HeadExample(*place, hit, forms, attention, ends))
    return examples


def coreference_examples(
    encoder: Encoder,
    texts: Texts,
    systems: pd.DataFrame,
    distances: tuple[int, int] = (4, 10),
    rows: str = "mean",
) -> list[HeadExample]:
    """For each head of `held_out_systems`, the first excerpt in which it finds an antecedent, and the first it misses.

    The head chooses among all words, as in the article; the mention has a single antecedent, a few words before it, and
    no word between is long (see LONGEST). `distances` are the fewest and most words between both head words; without
    such a mention there is no example. The excerpt extends one word beyond both, and each row is divided by its sum
    over the excerpt: in a miss, the word that the head attends to most may lie outside.
    """
    places = systems.dropna(subset="layer")[["layer", "head"]].drop_duplicates().astype(int)
    keys = [(*place, hit) for place in places.itertuples(index=False, name=None) for hit in (True, False)]
    examples: dict[tuple[int, int, bool], HeadExample] = {}
    for text, pieces in zip(texts.documents, texts.pieces, strict=True):
        pairs = antecedents(text)
        heads, anaphors = text.mentions["head"].to_numpy(), pairs.any(axis=1)
        distance = (heads - np.where(pairs, heads, -np.inf).max(axis=1))[anaphors]
        near = (distance >= distances[0]) & (distance <= distances[1]) & (pairs.sum(axis=1)[anaphors] == 1)
        if not near.any():
            continue
        maps = word_maps(encoder, pieces, rows)[:, :, 1:-1, 1:-1]
        hits = attended(maps, text)
        for layer, head, hit in keys:
            for place in np.flatnonzero(near & (hits[layer, head] == hit)):
                mention = int(heads[anaphors][place])
                arc = mention, mention - int(distance[place])
                excerpt = _excerpt(text.words["form"].tolist(), maps[layer, head], arc)
                if max(map(len, excerpt[0])) <= LONGEST:
                    example = HeadExample("coreference", layer, head, TO_ANTECEDENT, hit, *excerpt)
                    examples.setdefault((layer, head, hit), example)
        if len(examples) == len(keys):
            break
    return [examples[key] for key in keys if key in examples]


def _excerpt(
    words: list[str], attention: Float[np.ndarray, "word word"], arc: tuple[int, int]
) -> tuple[list[str], Float[np.ndarray, "word word"], tuple[int, int]]:
    """Words, attention and arc from one word before the antecedent to one word after the mention."""
    mention, antecedent = arc
    start, stop = max(antecedent - 1, 0), mention + 2
    inside = _rescaled(attention[start:stop, start:stop])
    return words[start:stop], inside, (mention - start, antecedent - start)


def _rescaled(attention: Float[np.ndarray, "word word"]) -> Float[np.ndarray, "word word"]:
    """Each row divided by its sum."""
    return attention / np.maximum(attention.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)


def linguistic_heads(dependencies: pd.DataFrame, readings: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """The heads that find a relation better than the best offset (adjusted p below alpha), or antecedents.

    Columns layer, head, and finds: the relations and "coreference", joined. `dependencies` is a `dependency_table`,
    `readings` holds an `antecedent_table` for each set of candidates; its cross-fitted heads count.
    """
    better = dependencies[(dependencies["p_adjusted"] < alpha) & (dependencies["gain"] > 0)]
    held_out = readings[(readings["scored_on"] == BOTH_HALVES) & readings["layer"].notna()]
    finds = pd.concat([better.rename(columns={"relation": "finds"}), held_out.assign(finds="coreference")])
    finds = finds[["layer", "head", "finds"]].drop_duplicates().astype({"layer": int, "head": int})
    return finds.groupby(["layer", "head"])["finds"].agg(", ".join).reset_index()


def relation_labels(table: pd.DataFrame) -> list[str]:
    """For each row of a `dependency_table`: relation, number of arcs, head and its direction."""
    return [
        f"{row.relation} (n = {row.n}), head {row.layer}-{row.head} {ARROWS[row.direction]}"
        for row in table.itertuples()
    ]


def title(example: HeadExample) -> str:
    """Relation and head, hit or miss; below, the direction of the attention."""
    outcome = "hit" if example.hit else "miss"
    head = f"{example.layer}-{example.head}"
    return f"{example.relation} {head}: {outcome}\n{ARROWS[example.direction]}"
