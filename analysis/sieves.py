"""Attention sieves: which token pairs count for a role, as T x T weights that sum to 1.

A sieve is a function of one sequence's layout and word pairs. Its matrix W weighs the rows (query tokens)
that have a sieve equally, and equally the positions inside a row, so that the sieve bias score of a map A
is T * sum(W * A) and a head that attends uniformly scores exactly 1 (Pande 2021). Where the role is
absent from a sequence the function returns None. A new role is a new function with the decorator `sieve`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float

from .errors import InputError
from .layout import Layout
from .syntax import UNIVERSAL, WordPairs

Matrix = Float[np.ndarray, "token token"]
Function = Callable[[Layout, WordPairs], Matrix | None]

RELATIONS = ("nsubj", "dobj", "amod", "advmod")
REVERSED = "_reversed"
PUBLISHED = "_published"


@dataclass(frozen=True)
class Sieve:
    """A role: its function, and how its score is read.

    `entropy` multiplies each row of a map by the row's entropy (nats); `bank` marks the elementary sieves;
    `labels` names the relations whose word pairs the score is a mean over.
    """

    function: Function
    entropy: bool = False
    bank: bool = False
    labels: tuple[str, ...] = ()

    def units(self, matrix: Matrix, pairs: WordPairs) -> int:
        """Over how many word pairs (relations) or tokens (all other roles) the score is a mean."""
        if self.labels:
            return sum(len(pairs.get(label, ())) for label in self.labels)
        return int(np.count_nonzero(matrix.any(axis=1)))


SIEVES: dict[str, Sieve] = {}


def sieve(name: str, entropy: bool = False, bank: bool = False) -> Callable[[Function], Function]:
    """Decorator that registers a sieve under a role name, replacing an earlier one of that name.

    `bank` adds it to the elementary sieves that `extract` scores when no roles are named.
    """

    def register(function: Function) -> Function:
        SIEVES[name] = Sieve(function, entropy, bank)
        return function

    return register


def rows(mask: Bool[np.ndarray, "token token"], sizes: np.ndarray | None = None) -> Matrix | None:
    """A 0/1 mask as a sieve: every row that holds a mark weighs the same, every mark in a row the same.

    `sizes` replaces the number of marks a row is divided by.
    """
    counts = mask.sum(axis=1)
    used = counts > 0
    if not used.any():
        return None
    sizes = counts if sizes is None else sizes
    return (mask / np.where(used, sizes, 1)[:, None] / used.sum()).astype(np.float32)


@lru_cache(maxsize=512)
def distances(length: int) -> np.ndarray:
    """Key position minus query position."""
    positions = np.arange(length)
    return positions[None, :] - positions[:, None]


@lru_cache(maxsize=2048)
def window(length: int, width: int) -> Matrix:
    """Tokens at most `width` positions away, the token itself included (Pande 2021, local role: width 2)."""
    return rows(np.abs(distances(length)) <= width)


@lru_cache(maxsize=2048)
def window_published(length: int, width: int) -> Matrix:
    """The window as the released code divides it: the band of the last `width` tokens counts one position
    past the end of the sequence, so that such a row sums to less than the others."""
    mask = np.abs(distances(length)) <= width
    over = np.arange(length) >= length - width
    return rows(mask, mask.sum(axis=1) + over)


@lru_cache(maxsize=2048)
def offset(length: int, step: int) -> Matrix | None:
    """The token `step` positions after (before, if negative) the current one (Clark 2019, section 3.1)."""
    return rows(distances(length) == step)


def columns(marks: Bool[np.ndarray, " token"]) -> Matrix | None:
    """The marked tokens, for every token of the sequence."""
    return rows(np.broadcast_to(marks, (len(marks), len(marks))))


def _register_positions() -> None:
    for width in range(6):
        sieve(f"window_{width}", bank=True)(lambda layout, pairs, width=width: window(len(layout), width))
        sieve(f"window_{width}{PUBLISHED}", bank=True)(
            lambda layout, pairs, width=width: window_published(len(layout), width)
        )
    for step in range(-5, 6):
        sieve(f"offset_{step:+d}", bank=True)(lambda layout, pairs, step=step: offset(len(layout), step))


_register_positions()
SIEVES["local"] = Sieve(SIEVES["window_2"].function)
SIEVES["local" + PUBLISHED] = Sieve(SIEVES["window_2" + PUBLISHED].function)


@sieve("cls", bank=True)
def cls(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """[CLS]."""
    return columns(layout.cls)


@sieve("sep", bank=True)
def sep(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """Every [SEP]."""
    return columns(layout.sep)


@sieve("sep_first", bank=True)
def sep_first(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The [SEP] that ends the first text."""
    return columns(layout.sep & (np.cumsum(layout.sep) == 1))


@sieve("sep_last", bank=True)
def sep_last(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The [SEP] that ends a pair; absent from single texts, where the first [SEP] is the last."""
    return (
        None if layout.text.max() == 0 else columns(layout.sep & (np.cumsum(layout.sep) == layout.sep.sum()))
    )


@sieve("delimiter", bank=True)
def delimiter(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """[CLS] and every [SEP] (Pande 2021, delimiter role)."""
    return columns(layout.cls | layout.sep)


@sieve("punctuation", bank=True)
def punctuation(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """Every punctuation token."""
    return columns(layout.punctuation)


def _sentence(layout: Layout, same: bool) -> Matrix | None:
    if layout.text.max() == 0:
        return None
    matches = (layout.sentence[:, None] == layout.sentence[None, :]) == same
    return rows(matches & (layout.text >= 0)[None, :])


@sieve("own_sentence", bank=True)
def own_sentence(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The word pieces of the token's own text; [CLS] counts with the first text, every [SEP] with the second.

    Pairs only. Departure from the released code: special tokens are found by what they are, not by position.
    """
    return _sentence(layout, same=True)


@sieve("other_sentence", bank=True)
def other_sentence(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The word pieces of the other text of a pair."""
    return _sentence(layout, same=False)


SIEVES["block"] = Sieve(own_sentence, entropy=True, bank=True)


def pooled(length: int, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Matrix | None:
    """Word pairs (pieces of the dependent, pieces of the head) as one sieve, each pair weighing the same."""
    if not pairs:
        return None
    matrix = np.zeros((length, length), np.float32)
    for dependent, head in pairs:
        matrix[np.ix_(dependent, head)] += 1 / (len(dependent) * len(head) * len(pairs))
    return matrix


def relation(*labels: str, backward: bool = False) -> Sieve:
    """Sieve of the pooled pairs of grammatical relations: the head's word pieces for each dependent.

    Mean over the pieces of the word looked at and of the word looking, then over the word pairs. `backward`
    exchanges dependent and head (the released code has that direction but never runs it).
    """

    def function(layout: Layout, pairs: WordPairs) -> Matrix | None:
        matrix = pooled(len(layout), [pair for label in labels for pair in pairs.get(label, ())])
        return matrix.T if backward and matrix is not None else matrix

    return Sieve(function, labels=labels)


SIEVES["syntactic"] = relation(*RELATIONS)


def resolve(roles: Sequence[str] | None, labels: set[str], arithmetic: str) -> dict[str, Sieve]:
    """The sieves of the named roles; without names the whole bank and both directions of every label.

    `labels` are the relations found in the data; any relation of Universal Dependencies may be named. With `published` arithmetic a role takes the sieve that the
    released code would have built, where that differs. Raises InputError for an unknown role.
    """
    if arithmetic not in ("corrected", "published"):
        raise InputError(f"arithmetic is {arithmetic!r}: choose corrected or published")
    found = {label: relation(label) for label in sorted(labels | UNIVERSAL)}
    found |= {label + REVERSED: relation(label, backward=True) for label in sorted(found)}
    if roles is None:
        bank = {name: entry for name, entry in SIEVES.items() if entry.bank}
        return bank | {name: entry for name, entry in found.items() if name.removesuffix(REVERSED) in labels}
    known = found | SIEVES
    for role in roles:
        if role not in known:
            named = ", ".join([*SIEVES, *sorted(labels | set(RELATIONS))])
            raise InputError(f"unknown role {role!r}: choose from {named}, or register it with @sieve")
    suffix = PUBLISHED if arithmetic == "published" else ""
    return {role: known.get(role + suffix, known[role]) for role in roles}
