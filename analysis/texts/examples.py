"""Examples: sequences of one or two texts, with their grammatical relations and word tags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import DisjointSet

from analysis.errors import InputError

T = TypeVar("T")


class Relation(NamedTuple):
    """One grammatical relation between two words of one text, labelled as in Universal Dependencies (`dobj` for `obj`).

    `text` is 0 for `text_a` and 1 for `text_b`; `dependent` and `head` are character spans (start, end) in that text.
    """

    label: str
    text: int
    dependent: tuple[int, int]
    head: tuple[int, int]


Relations = Mapping[str, Sequence[Relation]]
# Universal Dependencies v2, with `dobj` for `obj`.
UNIVERSAL = frozenset(
    """acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated dobj
    expl fixed flat goeswith iobj list mark nmod nsubj nummod obl orphan parataxis punct reparandum vocative
    xcomp""".split()
)


class Tag(NamedTuple):
    """The universal part of speech (UPOS) of one word; `text` and `word` are as in `Relation`."""

    upos: str
    text: int
    word: tuple[int, int]


@dataclass(frozen=True)
class Example:
    """One text or pair of texts, with its label, gold relations and gold word tags if they are known.

    `label` is a class index, a number (regression), or the index of the right one of several `choices`. An example
    with choices becomes several sequences (see `as_sequences`).
    """

    id: str
    text_a: str
    text_b: str | None = None
    label: int | float | None = None
    relations: tuple[Relation, ...] | None = None
    tags: tuple[Tag, ...] | None = None
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_text(str(self.id), f"id {self.id!r}")
        for text in self.texts:
            check_text(text, self.id)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts in order: one, two, or the shared one and all choices."""
        shared = (self.text_a,) if self.text_a or not self.choices else ()
        return (*shared, *(() if self.text_b is None else (self.text_b,)), *self.choices)


def check_text(text: object, place: str) -> None:
    """Raises InputError for a text that is no string, or contains half of a surrogate pair (an emoji cut in two)."""
    if not isinstance(text, str):
        raise InputError(f"{place}: a text is {text!r}: give a string, or remove the row")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{place}: half of a surrogate pair, {text[error.start]!r}, at character {error.start} (from 0): "
            "write the whole character in UTF-8, or remove it"
        ) from None


def sample(rows: list[T], n: int | None, seed: int) -> list[T]:
    """`n` of the rows, drawn uniformly without replacement, in their order; all if there are no more."""
    if n is None or n >= len(rows):
        return rows
    # The beginning of one permutation, so that a larger sample contains the smaller.
    numbers = np.random.default_rng(seed).permutation(len(rows))[:n]
    return [rows[number] for number in sorted(numbers)]


def as_sequences(examples: Sequence[Example]) -> list[Example]:
    """The sequences that an encoder reads: the examples themselves; for choices, `<id>#0`, `<id>#1` and on.

    A choice is the second text of its sequence, or the only one if `text_a` is empty.
    """
    sequences = []
    for example in examples:
        if not example.choices:
            sequences.append(example)
            continue
        if example.text_b is not None or len(example.choices) < 2:
            raise InputError(f"{example.id}: give two choices or more, and no text_b")
        shared = example.texts[: -len(example.choices)]
        sequences += [
            Example(f"{example.id}#{place}", *shared, text) for place, text in enumerate(example.choices)
        ]
    return sequences


def clusters(examples: Sequence[Example]) -> list[str]:
    """The cluster of each example: one name for examples that share a text, directly or through others.

    Scores of one question with several sentences are not independent, but those of different clusters are. Case does
    not count. The name of a cluster is the least id in it, in any order of the examples.
    """
    linked = DisjointSet(text.casefold() for example in examples for text in example.texts)
    for example in examples:
        first, *others = (text.casefold() for text in example.texts)
        for text in others:
            linked.merge(first, text)
    rows = [(example.id, linked[example.texts[0].casefold()]) for example in examples]
    table = pd.DataFrame(rows, columns=["id", "cluster"])
    return table.groupby("cluster")["id"].transform("min").tolist()
