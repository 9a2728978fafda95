"""Attention sieves: which token pairs count for a role, as T x T weights that sum to 1.

A sieve is a function of the layout and the word pairs of one sequence. In its matrix W, every row (query token) that
counts has the same weight, and so has every marked token of a row. The sieve bias score of a map A is T * sum(W * A)
(Pande 2021). A head with uniform attention scores 1, except for block, whose rows are weighted by their entropy, and
for the windows of the authors' code. If the role is absent from a sequence, the function
returns None. A new role is a new function with the decorator `sieve`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from analysis.encoders.layout import Layout, WordPairs, across, same_pieces
from analysis.errors import InputError
from analysis.roles import RELATIONS, REVERSED
from analysis.texts.examples import UNIVERSAL

Matrix = Float[np.ndarray, "token token"]
Function = Callable[[Layout, WordPairs], Matrix | None]

PUBLISHED = "_published"


@dataclass(frozen=True)
class Sieve:
    """A role: its function, which gives T x T weights, or None if the role is absent, and the kind of its score.

    `entropy` multiplies each row of a map by the row's entropy (nats). `bank` marks the elementary sieves. `labels` are
    the relations whose word pairs the sieve pools; `backward` exchanges dependent and head.
    """

    function: Function
    entropy: bool = False
    bank: bool = False
    labels: tuple[str, ...] = ()
    backward: bool = False


SIEVES: dict[str, Sieve] = {}


def sieve(name: str, bank: bool = False) -> Callable[[Function], Function]:
    """A decorator that registers a sieve under the name of a role and replaces an earlier one of that name.

    `bank` adds it to the elementary sieves, which `extract` scores by default. The relations of Universal Dependencies
    are roles already.
    """
    if name.removesuffix(REVERSED) in UNIVERSAL:
        raise InputError(f"{name!r} is a relation of Universal Dependencies: give the sieve another name")

    def register(function: Function) -> Function:
        SIEVES[name] = Sieve(function, bank=bank)
        return function

    return register


def rows(mask: Bool[np.ndarray, "token token"]) -> Matrix | None:
    """A 0/1 mask as a sieve: all rows with a mark have the same weight, and so have all marks in a row."""
    counts = mask.sum(axis=1)
    used = counts > 0
    if not used.any():
        return None
    return (mask / np.where(used, counts, 1)[:, None] / used.sum()).astype(np.float32)


def columns(marks: Bool[np.ndarray, " token"]) -> Matrix | None:
    """The marked tokens, for every token of the sequence."""
    length, count = len(marks), np.count_nonzero(marks)
    return np.broadcast_to(marks * np.float32(1 / (count * length)), (length, length)) if count else None


@lru_cache(maxsize=64)  # the windows and offsets of two lengths: batches are sorted by length
def band(length: int, first: int, last: int, published: bool = False) -> Matrix | None:
    """The tokens `first` to `last` positions after the current one (before it, if negative), inside the sequence.

    The divisor of the authors' code (`published`) counts one position past the end of the sequence for the last `last`
    tokens: their rows sum to less than the others.
    """
    positions = np.arange(length)
    offsets = positions - positions[:, None]
    matrix = rows((offsets >= first) & (offsets <= last))
    if matrix is not None and published:
        sizes = np.count_nonzero(matrix, axis=1)
        matrix *= (sizes / (sizes + (positions >= length - last)))[:, None]
    return matrix


def _register_band(name: str, first: int, last: int, published: bool = False) -> None:
    sieve(name, bank=True)(lambda layout, pairs: band(len(layout), first, last, published))


for _width in range(6):  # the token itself included (Pande 2021, local role: width 2)
    _register_band(f"window_{_width}", -_width, _width)
    _register_band(f"window_{_width}{PUBLISHED}", -_width, _width, published=True)
for _step in range(-5, 6):  # Clark 2019, section 3.1
    _register_band(f"offset_{_step:+d}", _step, _step)
for _suffix in ("", PUBLISHED):
    SIEVES["local" + _suffix] = replace(SIEVES["window_2" + _suffix], bank=False)


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
    """The [SEP] that ends the first text; both of those between two texts, where a tokenizer puts two there."""
    return columns(layout.sep & (np.cumsum(layout.text == 1) == 0))


@sieve("sep_last", bank=True)
def sep_last(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The [SEP] that ends a pair; absent from single texts, which have only one [SEP]."""
    last = np.cumsum(layout.sep) == layout.sep.sum()
    return columns(layout.sep & last) if layout.text.max() > 0 else None


@sieve("delimiter", bank=True)
def delimiter(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """[CLS] and every [SEP] (Pande 2021)."""
    return columns(layout.cls | layout.sep)


@sieve("punctuation", bank=True)
def punctuation(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """Every punctuation token."""
    return columns(layout.punctuation)


@sieve("match", bank=True)
def match(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The same word piece in the other text (this study: matching heads)."""
    return rows(same_pieces(layout) & across(layout))


@sieve("match_control", bank=True)
def match_control(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """For the rows of `match`, the other word pieces of the other text."""
    same, other = same_pieces(layout), across(layout)
    words = ~layout.punctuation & (same & other).any(axis=1)[:, None]
    return rows(other & words & ~same)


@sieve("match_own", bank=True)
def match_own(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The same word piece elsewhere in its own text."""
    same = same_pieces(layout)
    return rows(same & (layout.text == layout.text[:, None]) & ~np.eye(len(layout), dtype=bool))


@sieve("own_sentence", bank=True)
def own_sentence(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The word pieces of the token's own text; [CLS] counts as part of the first text, every [SEP] of the second.

    Pairs only. Departure from the authors' code: special tokens are found by their ids, not by position.
    """
    return rows(layout.sentence[:, None] == layout.text) if layout.text.max() > 0 else None


@sieve("other_sentence", bank=True)
def other_sentence(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The word pieces of the other text of a pair."""
    return rows(layout.sentence[:, None] == 1 - layout.text) if layout.text.max() > 0 else None


SIEVES["block"] = Sieve(own_sentence, entropy=True, bank=True)


@lru_cache(maxsize=4096)
def relation(*labels: str, backward: bool = False) -> Sieve:
    """The sieve of the pooled word pairs of grammatical relations: the word pieces of the head for each dependent.

    It is the mean over the pieces of both words, then over the word pairs. `backward` exchanges dependent and head (the
    released code has that direction but never runs it).
    """

    def function(layout: Layout, pairs: WordPairs) -> Matrix | None:
        cells, _ = relation_cells([pairs], [entry])
        matrix = np.zeros((len(layout), len(layout)), np.float32)
        np.add.at(matrix, (cells.row, cells.column), cells.weight)
        return matrix if len(cells.row) else None

    entry = Sieve(function, labels=labels, backward=backward)
    return entry


class Cells(NamedTuple):
    """Single weights of sieves in a batch; a cell that is named twice counts twice."""

    sequence: Int[np.ndarray, " cell"]
    role: Int[np.ndarray, " cell"]
    row: Int[np.ndarray, " cell"]
    column: Int[np.ndarray, " cell"]
    weight: Float32[np.ndarray, " cell"]


def relation_cells(
    batch: Sequence[WordPairs], sieves: Sequence[Sieve]
) -> tuple[Cells, Int[np.ndarray, "sequence role"]]:
    """The cells of the word pairs that relations pool in a batch, and the number of pairs.

    All pairs of a role in a sequence have equal weights, and so have the cells of each pair.
    """
    pooled = [
        (i, j, pairs[label].ranges[:, [2, 3, 0, 1] if entry.backward else slice(None)])
        for i, pairs in enumerate(batch)
        for j, entry in enumerate(sieves)
        for label in entry.labels
        if label in pairs
    ]
    counts = [len(ranges) for *_, ranges in pooled]
    sequence, role = (np.repeat(np.array([part[axis] for part in pooled], int), counts) for axis in (0, 1))
    row, row_end, column, column_end = np.concatenate(
        [np.zeros((0, 4), int), *(part[2] for part in pooled)]
    ).T
    units = np.zeros((len(batch), len(sieves)), np.int32)
    np.add.at(units, (sequence, role), 1)
    widths = column_end - column
    sizes = (row_end - row) * widths
    weights = (1 / (sizes * units[sequence, role])).astype(np.float32)
    pair = np.repeat(np.arange(len(sizes)), sizes)
    down, right = np.divmod(np.arange(len(pair)) - (np.cumsum(sizes) - sizes)[pair], widths[pair])
    return Cells(sequence[pair], role[pair], row[pair] + down, column[pair] + right, weights[pair]), units


SIEVES["syntactic"] = relation(*RELATIONS)


def resolve(roles: Sequence[str] | None, labels: set[str], arithmetic: str) -> dict[str, Sieve]:
    """The sieves of the named roles, by default those of the whole bank and of both directions of every label.

    `labels` are the relations in the data; roles may also name other relations of Universal Dependencies. With
    `published` arithmetic, a role has the sieve of the authors' code where it differs.
    """
    if arithmetic not in ("corrected", "published"):
        raise InputError(f"arithmetic is {arithmetic!r}: choose corrected or published")
    relations = {label: relation(label) for label in sorted(labels | UNIVERSAL)}
    relations |= {label + REVERSED: relation(label, backward=True) for label in sorted(relations)}
    if shared := sorted(relations.keys() & SIEVES):
        raise InputError(f"{shared[0]!r} names a sieve and a relation of the data: rename one of them")
    if roles is None:
        bank = {name: entry for name, entry in SIEVES.items() if entry.bank}
        return bank | {
            name: entry for name, entry in relations.items() if name.removesuffix(REVERSED) in labels
        }
    entries = relations | SIEVES
    for role in roles:
        if role not in entries:
            named = ", ".join([*SIEVES, *sorted(labels | set(RELATIONS))])
            raise InputError(f"unknown role {role!r}: choose from {named}, or register it with @sieve")
    suffix = PUBLISHED if arithmetic == "published" else ""
    return {role: entries.get(role + suffix, entries[role]) for role in roles}
