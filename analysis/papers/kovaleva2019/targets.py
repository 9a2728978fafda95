"""Where attention is measured: the word pieces of linguistic features, and subjects with their verbs."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from transformers import PreTrainedTokenizerBase

from analysis.encoders.layout import Layout, layouts, piece_ranges
from analysis.papers.kovaleva2019.names import ARGUMENTS, CLS, FEATURES, NEGATION, PARTS_OF_SPEECH, SEP
from analysis.papers.kovaleva2019.placements import Placements, every_pair, placements, zipped
from analysis.texts.examples import Example, Relation, Tag, clusters
from analysis.texts.syntax import Relations

MODES = ("faithful", "aligned")
# The article's list as words; a contraction is two words, and the second is n't.
NEGATIONS = (
    "neither nor not never none don't won't didn't hadn't haven't can't isn't wasn't shouldn't couldn't nothing nowhere"
).split()
NEGATIVE_WORDS = {word for word in NEGATIONS if "'" not in word} | {"n't", "n’t"}


@dataclass(frozen=True)
class Targets:
    """One sequence: its layout, the tokens of each feature, and its subjects and verbs.

    `cluster` is equal for sequences that share a text. `marked` says which tokens belong to a feature in a mode.
    `absent` is the value if none does: NaN leaves the sequence out, 0 is the value in the released code
    (except for negation). `verbs` are the placements from a subject to its verb, for every relation; `zipped` are the
    pairs of the released code, None if there are none.
    """

    layout: Layout
    cluster: str
    marked: Bool[np.ndarray, "mode feature token"]
    absent: Float[np.ndarray, "mode feature"]
    verbs: tuple[Placements, ...]
    zipped: Placements | None

    def __len__(self) -> int:
        return len(self.layout)


def find_targets(
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[Example],
    relations: Relations,
    tags: dict[str, Sequence[Tag]],
    max_tokens: int = 128,
) -> list[Targets]:
    """The targets of every example, from its relations and word tags (see `syntax.parse`, `syntax.tags`).

    Mode aligned: the pieces of the words themselves. Mode faithful, as in the released code: every piece of the
    sequence that is spelt like one of them, 0 if a feature is absent (except negation, whose absence leaves the
    sequence out), and negation by strings within the text ("not" in "another" counts). Departures: universal parts of
    speech and relations instead of spaCy's labels, so that auxiliaries do not count as verbs.
    """
    spelt = {word: tokenizer(word, add_special_tokens=False)["input_ids"] for word in NEGATIONS}
    found = layouts(tokenizer, examples, max_tokens)
    return [
        _targets(layout, cluster, example, relations[example.id], tags[example.id], spelt)
        for layout, cluster, example in zip(found, clusters(examples), examples, strict=True)
    ]


def _targets(
    layout: Layout,
    cluster: str,
    example: Example,
    relations: Sequence[Relation],
    tags: Sequence[Tag],
    spelt: dict[str, list[int]],
) -> Targets:
    words = {
        name: [*_words(name, example, relations, tags)] for name in (*PARTS_OF_SPEECH, *ARGUMENTS, NEGATION)
    }
    aligned = {name: _marked(layout, spans) for name, spans in words.items()}
    special = {"punctuation": layout.punctuation, CLS: layout.cls, SEP: layout.sep}
    anywhere = {name: np.isin(layout.input_ids, layout.input_ids[mask]) for name, mask in aligned.items()}
    text = " ".join(example.texts).lower()
    negated = [piece for word, pieces in spelt.items() if word in text for piece in pieces]
    anywhere[NEGATION] = np.isin(layout.input_ids, negated)
    found = [anywhere | special, aligned | special]
    marked = np.array([[mode[name] for name in FEATURES] for mode in found])
    absent = np.full(marked.shape[:2], np.nan, np.float32)
    absent[0, : len(words)] = 0
    if not negated:
        absent[0, FEATURES.index(NEGATION)] = np.nan
    return Targets(layout, cluster, marked, absent, *_verbs(layout, relations, tags))


def _words(
    name: str, example: Example, relations: Sequence[Relation], tags: Sequence[Tag]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The text and the character span of every word of a feature."""
    if name in PARTS_OF_SPEECH:
        yield from ((tag.text, tag.word) for tag in tags if tag.upos in PARTS_OF_SPEECH[name])
    elif name in ARGUMENTS:
        yield from ((each.text, each.dependent) for each in relations if each.label in ARGUMENTS[name])
    else:
        written = ((tag, example.texts[tag.text][slice(*tag.word)].lower()) for tag in tags)
        yield from ((tag.text, tag.word) for tag, word in written if word in NEGATIVE_WORDS)


def _marked(layout: Layout, words: Sequence[tuple[int, tuple[int, int]]]) -> Bool[np.ndarray, " token"]:
    mask = np.zeros(len(layout), bool)
    if words:
        texts, spans = np.array([text for text, _ in words]), np.array([span for _, span in words])
        for start, end in piece_ranges(layout, texts, spans):
            mask[start:end] = True
    return mask


def _verbs(
    layout: Layout, relations: Sequence[Relation], tags: Sequence[Tag]
) -> tuple[tuple[Placements, ...], Placements | None]:
    """The placements of subjects with their verbs, and the pairs of the released code."""
    verbs = {(tag.text, tag.word) for tag in tags if tag.upos == "VERB"}
    kept = [each for each in relations if each.label == "nsubj" and (each.text, each.head) in verbs]
    found: list[Placements] = []
    subjects: set[int] = set()
    heads: set[int] = set()
    ids = layout.input_ids.tolist()
    for relation in kept:
        spans = np.array([relation.dependent, relation.head])
        subject, verb = (
            range(*ends) for ends in piece_ranges(layout, np.array([relation.text] * 2), spans).tolist()
        )
        if len(subject) and len(verb):
            inside = np.flatnonzero(layout.text == relation.text)
            found.append(placements(*every_pair(subject, verb), inside[0], inside[-1] + 1))
            subjects |= {ids[piece] for piece in subject}
            heads |= {ids[piece] for piece in verb}
    if not found:
        return (), None
    # The released notebook takes every piece that is spelt like one of a subject or verb, wherever it stands, in order.
    pairs = zipped(
        *([place for place, each in enumerate(ids) if each in pieces] for pieces in (subjects, heads))
    )
    return tuple(found), Placements(*np.array(pairs)[:, None], own=0)


def targets_digest(targets: Sequence[Targets]) -> str:
    """A digest of the targets."""
    digest = hashlib.sha256()
    for each in targets:
        digest.update(
            each.layout.id.encode() + each.layout.input_ids.tobytes() + each.layout.type_ids.tobytes()
        )
        digest.update(each.marked.tobytes() + each.absent.tobytes())
        for places in (*each.verbs, *([each.zipped] if each.zipped else [])):
            digest.update(places.rows.tobytes() + places.columns.tobytes())
    return digest.hexdigest()
