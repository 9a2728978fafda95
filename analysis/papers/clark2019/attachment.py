"""Attention heads as parsers: how often the most attended word is the governor (Clark 2019, 4.2), and heads at work."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.clark2019.coreference import Texts, antecedents, head_hits
from analysis.scores.words import (
    ARC_DIRECTIONS,
    Attachment,
    documents_of,
    halves,
    right,
    split_words,
    word_maps,
)
from analysis.statistics.bootstrap import bca_interval
from analysis.statistics.comparison import sign_flip
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import cross_fitted
from analysis.statistics.significance import adjust
from analysis.texts.chains import Document
from analysis.texts.dependencies import OFFSETS, fixed_offset

DESCENDING = sorted(OFFSETS, reverse=True)  # of equally good offsets the first is best, the largest one


def best_heads(attachment: Attachment, scored: pd.DataFrame, minimum: int) -> pd.DataFrame:
    """The table `clark_best_heads` (docs/tables.yaml): each head is chosen and scored on the same arcs, so optimistic.

    `scored` is that of `dependencies.arcs`. Relations with fewer than `minimum` arcs are left out (100 in the authors'
    code). Source: Clark 2019, 4.2 and Table 1.
    """
    rows = []
    for relation, arcs in frequent_relations(scored, minimum):
        accuracy = right(attachment, arcs).mean(axis=0)
        layer, direction, head = np.unravel_index(accuracy.argmax(), accuracy.shape)
        rows.append((relation, len(arcs), layer, head, ARC_DIRECTIONS[direction], accuracy.max()))
    return pd.DataFrame(rows, columns=["relation", "n", "layer", "head", "direction", "accuracy"])


def dependency_table(
    attachment: Attachment,
    scored: pd.DataFrame,
    minimum: int,
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """The table `clark_dependencies` (docs/tables.yaml): the best attention head and the best fixed offset.

    Accuracies are cross-fitted over two halves of the documents, with BCa intervals over sentences; p_adjusted is that
    of the sign-flip test of the gain, over whole sentences, by Benjamini and Yekutieli. `scored` are
    `dependencies.arcs`; a relation with fewer than `minimum`, or none in one half, is left out. Source: Clark 2019,
    4.2; departures: the paper chooses and scores on the same sentences and has no test.
    """
    best = best_heads(attachment, scored, minimum).set_index("relation")
    in_first_half = pd.Series(halves(documents_of(attachment.words, scored), seed), index=scored.index)
    rows, differences = [], {}
    for relation, arcs in frequent_relations(scored, minimum):
        first_half, sentences = in_first_half[arcs.index].to_numpy(), arcs["sentence"].to_numpy()
        if first_half.all() or not first_half.any():
            continue
        by_offset = np.stack([fixed_offset(arcs, offset) == arcs["head"] for offset in DESCENDING], axis=1)
        head_right = cross_fitted(right(attachment, arcs), first_half).astype(float)
        offset_right = cross_fitted(by_offset, first_half).astype(float)
        (low,), (high,) = bca_interval(head_right[:, None], sentences, alpha, resamples, seed)
        gain, gain_low, gain_high = mean_interval(head_right - offset_right, sentences)
        rows.append({
            "relation": relation, **best.loc[relation],
            "accuracy": head_right.mean(), "low": low, "high": high,
            "offset": DESCENDING[by_offset.mean(axis=0).argmax()], "offset_accuracy": offset_right.mean(),
            "gain": gain, "gain_low": gain_low, "gain_high": gain_high,
        })  # fmt: skip
        differences[relation] = pd.Series(head_right - offset_right).groupby(sentences).sum()
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    p = sign_flip(pd.DataFrame(differences).to_numpy(), seed=seed)
    return pd.DataFrame(rows).assign(p_adjusted=adjust(p, "fdr_by"))


def frequent_relations(scored: pd.DataFrame, minimum: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """The arcs of each relation with at least `minimum` arcs, the most frequent relation first."""
    counts = scored["relation"].value_counts(sort=True)
    groups = scored.groupby("relation", sort=False)
    return ((relation, groups.get_group(relation)) for relation in counts.index[counts >= minimum])


TO_ANTECEDENT = "mention to antecedent"
LENGTHS = (6, 12)  # fewest and most words of a sentence
DISTANCES = (4, 10)  # fewest and most words from the antecedent to the mention
LONGEST = 14  # characters of a word in an excerpt: addresses are neither legible nor for print
ARROWS = dict(zip(ARC_DIRECTIONS, ("dep→gov", "gov→dep"), strict=True)) | {
    TO_ANTECEDENT: "mention→antecedent"
}


class HeadExample(NamedTuple):
    """[CLS], words, [SEP], the attention of one head between them, and one gold arc: a hit or a miss of the head.

    `arc` is (attending word, attended word), places in `forms`. The head compares the words to which the attending
    word gives attention ("attended"), or which give it to the attended word ("attending"): neither [CLS] nor [SEP],
    nor a word itself.
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
        """An example with its title, from words and an arc between them; `attention` has [CLS] first and [SEP] last."""
        compared = "attending" if direction == ARC_DIRECTIONS[1] else "attended"
        title = f"{name}: {'hit' if hit else 'miss'}\n{ARROWS[direction]}"
        return cls(title, ["[CLS]", *forms, "[SEP]"], attention, (arc[0] + 1, arc[1] + 1), compared)


def head_examples(
    encoder: Encoder, attachment: Attachment, scored: pd.DataFrame, table: pd.DataFrame, rows: str = "mean"
) -> list[HeadExample]:
    """For each row of a `dependency_table`, the first arc of the relation that its head finds, and the first it misses.

    The arcs are the first ones in sentences of suitable LENGTHS, not the best. A head that only hits, or only misses,
    has one example. Source: Clark 2019, Figure 5; departure: a miss beside each hit.
    """
    examples, is_right = [], right(attachment, scored)
    suitable = (scored["head"] > 0) & scored["length"].between(*LENGTHS)
    for row in table.itertuples():
        hits = is_right[:, row.layer, ARC_DIRECTIONS.index(row.direction), row.head]
        for hit in (True, False):
            arcs = scored[suitable & (scored["relation"] == row.relation) & (hits == hit)]
            for arc in arcs.head(1).itertuples():
                forms = attachment.words.loc[attachment.words["sentence"] == arc.sentence, "form"].tolist()
                [pieces] = split_words(encoder.tokenizer, [forms]).kept
                attention = word_maps(encoder, pieces, rows)[row.layer, row.head]
                ends = (arc.word, arc.head - 1)[:: 1 if row.direction == ARC_DIRECTIONS[0] else -1]
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
        attention = word_maps(encoder, pieces, rows)[layer, head]
        hits = head_hits(attention[1:-1, 1:-1], text)
        for anaphor, mention, antecedent in pairs:
            hit, part = bool(hits[anaphor]), _excerpt(mention, antecedent)
            if hit not in examples:
                forms, arc = (
                    text.words["form"].iloc[part].tolist(),
                    (mention - part.start, antecedent - part.start),
                )
                places = [0, *range(part.start + 1, part.start + 1 + len(forms)), len(attention) - 1]
                excerpt = attention[np.ix_(places, places)]
                name = f"coreference {layer}-{head}"
                examples[hit] = HeadExample.of(name, hit, TO_ANTECEDENT, forms, excerpt, arc)
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
