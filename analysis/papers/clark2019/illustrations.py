"""Heads at work on one sentence or excerpt: dependencies and coreference (Clark 2019, figure 5)."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.papers.clark2019.coreference import Texts, antecedents, head_hits
from analysis.scores.words import DIRECTIONS, Attachment, right, split_words, word_maps
from analysis.texts.chains import Document

TO_ANTECEDENT = "mention to antecedent"
LENGTHS = (6, 12)  # fewest and most words of a sentence
DISTANCES = (4, 10)  # fewest and most words from the antecedent to the mention
LONGEST = 14  # characters of a word in an excerpt: addresses are neither legible nor for print
COMPARED = {"attending": 0, "attended": 1}  # the axis of the words that a head compares
ARROWS = dict(zip(DIRECTIONS, ("dep→gov", "gov→dep"), strict=True)) | {TO_ANTECEDENT: "mention→antecedent"}


class HeadExample(NamedTuple):
    """Words, the attention of one head between them, and one arc of the gold annotation: a hit or a miss of the head.

    `arc` is (attending word, attended word), both from 0. The head compares the words to which the attending word
    gives attention ("attended"), or which give it to the attended word ("attending"). Attention sums to 1 over the
    compared words, without that of a word to itself.
    """

    title: str
    forms: list[str]
    attention: Float[np.ndarray, "word word"]
    arc: tuple[int, int]
    compared: Literal["attended", "attending"]

    @classmethod
    def of(
        cls,
        name: str,
        hit: bool,
        direction: str,
        forms: list[str],
        attention: np.ndarray,
        arc: tuple[int, int],
    ) -> "HeadExample":
        """An example with its title; `attention` is that of the head before it is divided by its sums."""
        compared = "attending" if direction == DIRECTIONS[1] else "attended"
        others = attention * (1 - np.eye(len(attention)))
        sums = others.sum(axis=COMPARED[compared], keepdims=True)
        title = f"{name}: {'hit' if hit else 'miss'}\n{ARROWS[direction]}"
        return cls(title, forms, others / np.maximum(sums, np.finfo(np.float32).tiny), arc, compared)


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
                attention = word_maps(encoder, pieces, rows)[row.layer, row.head, 1:-1, 1:-1]
                ends = (arc.word, arc.head - 1)[:: 1 if row.direction == DIRECTIONS[0] else -1]
                name = f"{row.relation} {row.layer}-{row.head}"
                examples.append(HeadExample.of(name, hit, row.direction, forms, attention, ends))
    return examples


def coreference_examples(
    encoder: Encoder, texts: Texts, layer: int, head: int, rows: str = "mean"
) -> list[HeadExample]:
    """The first excerpt in which a head finds an antecedent, and the first in which it misses one.

    The head chooses among all words, as in the paper; the mention has a single antecedent, at one of DISTANCES. The
    excerpt extends one word beyond both: in a miss, the word that the head attends to most may lie outside.
    """
    examples: dict[bool, HeadExample] = {}
    for text, pieces in zip(texts.documents, texts.pieces, strict=True):
        pairs = [*_near_antecedents(text)]
        if not pairs or len(examples) == 2:
            continue
        attention = word_maps(encoder, pieces, rows)[layer, head, 1:-1, 1:-1]
        hits = head_hits(attention, text)
        for anaphor, mention, antecedent in pairs:
            hit, part = bool(hits[anaphor]), _excerpt(mention, antecedent)
            if hit not in examples:
                forms, arc = (
                    text.words["form"].iloc[part].tolist(),
                    (mention - part.start, antecedent - part.start),
                )
                name = f"coreference {layer}-{head}"
                examples[hit] = HeadExample.of(name, hit, TO_ANTECEDENT, forms, attention[part, part], arc)
    return [examples[hit] for hit in (True, False) if hit in examples]


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


def linguistic_heads(
    dependencies: pd.DataFrame, antecedent_heads: pd.DataFrame, alpha: float = 0.05
) -> pd.DataFrame:
    """The heads that find a relation better than the best offset (adjusted p below alpha), or antecedents.

    Columns layer, head, and finds: the relations and "coreference", joined. Arguments are the saved table
    `clark_dependencies` and the rows of heads in `clark_coreference`.
    """
    better = dependencies[(dependencies["p_adjusted"] < alpha) & (dependencies["gain"] > 0)]
    finds = pd.concat(
        [better.rename(columns={"relation": "finds"}), antecedent_heads.assign(finds="coreference")]
    )
    finds = finds[["layer", "head", "finds"]].drop_duplicates().astype({"layer": int, "head": int})
    return finds.groupby(["layer", "head"])["finds"].agg(", ".join).reset_index()
