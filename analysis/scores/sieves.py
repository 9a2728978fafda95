"""Attention sieves: which token pairs count for a role, as T x T weights that sum to 1.

A sieve is a function of the layout and the word pairs of one sequence. In its matrix W, every row (query token) that
counts has the same weight, and so has every marked token of a row. The sieve bias score of a map A is T * sum(W * A)
(Pande 2021). A head with uniform attention scores 1, except for block, whose rows are weighted by their entropy, and
for the windows of the released code. If the role is absent from a sequence, the function
returns None. A new role is a new function with the decorator `sieve`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int

from analysis.encoders.layout import Layout, WordPairs
from analysis.errors import InputError
from analysis.scores.forms import Cells, Columns, Form, Matrix, Ranges
from analysis.texts.syntax import RELATIONS, REVERSED, UNIVERSAL

Function = Callable[[Layout, WordPairs], Form | np.ndarray | None]

PUBLISHED = "_published"
TEXTS = np.array([[0], [1]])
EXCHANGED = np.array([2, 3, 0, 1])  # dependent and head, as ranges
NO_RANGES = Ranges(np.zeros(0, int), np.zeros((0, 4), int))


@dataclass(frozen=True)
class Sieve:
    """A role: its function and the kind of its score.

    The function returns a T x T array or one of the compact forms of `forms`, or None if the role is absent.
    `entropy` multiplies each row of a map by the row's entropy (nats). `bank` marks the elementary sieves, `by_length`
    those that depend only on the length of the sequence. `pooled` gives the word pairs over which the score of a
    relation is a mean, for many sequences at once.
    """

    function: Function
    entropy: bool = False
    bank: bool = False
    by_length: bool = False
    pooled: Callable[[Mapping[str, Ranges]], Ranges] | None = None

    def form(self, layout: Layout, pairs: WordPairs) -> Form | None:
        """The weights of the role for one sequence."""
        found = self.function(layout, pairs)
        return Cells.of(found) if isinstance(found, np.ndarray) else found

    def matrix(self, layout: Layout, pairs: WordPairs) -> Matrix | None:
        """The full T x T weights of the role for one sequence."""
        form = self.form(layout, pairs)
        return None if form is None else form.matrix()


SIEVES: dict[str, Sieve] = {}


def sieve(name: str, bank: bool = False, by_length: bool = False) -> Callable[[Function], Function]:
    """A decorator that registers a sieve under the name of a role and replaces an earlier one of that name.

    `bank` adds it to the elementary sieves, which `extract` scores by default; `by_length` says that the sieve depends
    only on the length of the sequence, which saves calls. Raises InputError for the name of a relation of Universal
    Dependencies, which is a role already.
    """
    if name.removesuffix(REVERSED) in UNIVERSAL:
        raise InputError(f"{name!r} is a relation of Universal Dependencies: give the sieve another name")

    def register(function: Function) -> Function:
        SIEVES[name] = Sieve(function, bank=bank, by_length=by_length)
        return function

    return register


def rows(mask: Bool[np.ndarray, "token token"]) -> Matrix | None:
    """A 0/1 mask as a sieve: all rows with a mark have the same weight, and so have all marks in a row."""
    counts = mask.sum(axis=1)
    used = counts > 0
    if not used.any():
        return None
    return (mask / np.where(used, counts, 1)[:, None] / used.sum()).astype(np.float32)


def columns(marks: Bool[np.ndarray, " token"]) -> Columns | None:
    """The marked tokens, for every token of the sequence."""
    count = np.count_nonzero(marks)
    return Columns(_every_row(len(marks)), marks[None] * np.float32(1 / count)) if count else None


@lru_cache(maxsize=4096)
def _every_row(length: int) -> np.ndarray:
    return np.full((1, length), 1 / length, np.float32)


def grouped(rows: Bool[np.ndarray, "group token"], marks: Bool[np.ndarray, "group token"]) -> Columns | None:
    """Marked tokens for marked rows, group by group; the rows of a group without marked tokens have no sieve."""
    kept = rows.any(axis=1) & marks.any(axis=1)
    if not kept.any():
        return None
    rows, columns = rows[kept].astype(np.float32), marks[kept].astype(np.float32)
    return Columns(rows / rows.sum(), columns / columns.sum(axis=1, keepdims=True))


@lru_cache(maxsize=4096)
def window(length: int, width: int) -> Cells:
    """Tokens at most `width` positions away, the token itself included (Pande 2021, local role: width 2)."""
    steps = np.arange(-width, width + 1)
    mask = neighbours(length, steps)
    return _band(mask / mask.sum(axis=1, keepdims=True) / length, steps)


@lru_cache(maxsize=4096)
def window_published(length: int, width: int) -> Cells:
    """The window with the divisor of the released code, which counts one position past the end of the sequence for the
    last `width` tokens: their rows sum to less than the others."""
    steps = np.arange(-width, width + 1)
    mask = neighbours(length, steps)
    sizes = mask.sum(axis=1) + (np.arange(length) >= length - width)
    return _band(mask / sizes[:, None] / length, steps)


@lru_cache(maxsize=4096)
def offset(length: int, step: int) -> Cells | None:
    """The token `step` positions after (before, if negative) the current one (Clark 2019, section 3.1)."""
    steps = np.array([step])
    mask = neighbours(length, steps)
    return _band(mask / mask.sum(), steps) if mask.any() else None


def _band(weights: Float[np.ndarray, "token diagonal"], steps: Int[np.ndarray, " diagonal"]) -> Cells:
    """The weights of every token for the neighbours that lie inside the sequence."""
    rows, diagonals = np.nonzero(weights)
    return Cells(rows, rows + steps[diagonals], weights[rows, diagonals].astype(np.float32), len(weights))


def neighbours(length: int, steps: Int[np.ndarray, " diagonal"]) -> Bool[np.ndarray, "token diagonal"]:
    """Whether the neighbour of each token at each step lies inside the sequence."""
    positions = np.arange(length)[:, None] + steps
    return (positions >= 0) & (positions < length)


def _register_positions() -> None:
    for width in range(6):
        sieve(f"window_{width}", bank=True, by_length=True)(
            lambda layout, pairs, width=width: window(len(layout), width)
        )
        sieve(f"window_{width}{PUBLISHED}", bank=True, by_length=True)(
            lambda layout, pairs, width=width: window_published(len(layout), width)
        )
    for step in range(-5, 6):
        sieve(f"offset_{step:+d}", bank=True, by_length=True)(
            lambda layout, pairs, step=step: offset(len(layout), step)
        )


_register_positions()
for _suffix in ("", PUBLISHED):
    SIEVES["local" + _suffix] = replace(SIEVES["window_2" + _suffix], bank=False)


@sieve("cls", bank=True)
def cls(layout: Layout, pairs: WordPairs) -> Columns | None:
    """[CLS]."""
    return columns(layout.cls)


@sieve("sep", bank=True)
def sep(layout: Layout, pairs: WordPairs) -> Columns | None:
    """Every [SEP]."""
    return columns(layout.sep)


@sieve("sep_first", bank=True)
def sep_first(layout: Layout, pairs: WordPairs) -> Columns | None:
    """The [SEP] that ends the first text."""
    return columns(layout.sep & (np.cumsum(layout.sep) == 1))


@sieve("sep_last", bank=True)
def sep_last(layout: Layout, pairs: WordPairs) -> Columns | None:
    """The [SEP] that ends a pair; absent from single texts, which have only one [SEP]."""
    return (
        None if layout.text.max() == 0 else columns(layout.sep & (np.cumsum(layout.sep) == layout.sep.sum()))
    )


@sieve("delimiter", bank=True)
def delimiter(layout: Layout, pairs: WordPairs) -> Columns | None:
    """[CLS] and every [SEP] (Pande 2021, delimiter role)."""
    return columns(layout.cls | layout.sep)


@sieve("punctuation", bank=True)
def punctuation(layout: Layout, pairs: WordPairs) -> Columns | None:
    """Every punctuation token."""
    return columns(layout.punctuation)


@sieve("stops")
def stops(layout: Layout, pairs: WordPairs) -> Columns | None:
    """Every full stop and comma (Clark 2019, section 3.2); not part of the bank."""
    return columns(_stops(layout))


@sieve("content")
def content(layout: Layout, pairs: WordPairs) -> Columns | None:
    """Every token but [CLS], [SEP], full stops and commas (the other tokens of Clark 2019, figure 3)."""
    return columns(~(layout.cls | layout.sep | _stops(layout)))


@sieve("cls_to_cls")
def cls_to_cls(layout: Layout, pairs: WordPairs) -> Columns | None:
    """[CLS], for [CLS]; what `sep_to_sep` is for an encoder that rests on [CLS]."""
    return grouped(layout.cls[None], layout.cls[None])


@sieve("sep_to_sep")
def sep_to_sep(layout: Layout, pairs: WordPairs) -> Columns | None:
    """Every [SEP], for each [SEP] (Clark 2019, section 3.2)."""
    return grouped(layout.sep[None], layout.sep[None])


@sieve("rest_to_sep")
def rest_to_sep(layout: Layout, pairs: WordPairs) -> Columns | None:
    """Every [SEP], for all other tokens (Clark 2019, section 3.2)."""
    return grouped(~layout.sep[None], layout.sep[None])


def same_pieces(layout: Layout) -> Bool[np.ndarray, "token token"]:
    """Which word pieces are spelt alike, case folded; special tokens and punctuation are like nothing."""
    words = (layout.text >= 0) & ~layout.punctuation
    _, spelling = np.unique([token.lstrip("Ġ▁").casefold() for token in layout.tokens], return_inverse=True)
    return (spelling == spelling[:, None]) & words & words[:, None]


def across(layout: Layout) -> Bool[np.ndarray, "token token"]:
    """Pairs of word pieces of different texts."""
    return (layout.text >= 0) & (layout.text == 1 - layout.text[:, None])


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


def _stops(layout: Layout) -> Bool[np.ndarray, " token"]:
    # Byte-level vocabularies and sentence pieces mark the blank before a token.
    return np.isin([token.lstrip("Ġ▁") for token in layout.tokens], [".", ","])


def _sentence(layout: Layout, same: bool) -> Columns | None:
    if layout.text.max() == 0:
        return None
    return grouped(layout.sentence == TEXTS, layout.text == (TEXTS if same else 1 - TEXTS))


@sieve("own_sentence", bank=True)
def own_sentence(layout: Layout, pairs: WordPairs) -> Columns | None:
    """The word pieces of the token's own text; [CLS] counts as part of the first text, every [SEP] of the second.

    Pairs only. Departure from the released code: special tokens are found by their ids, not by position.
    """
    return _sentence(layout, same=True)


@sieve("other_sentence", bank=True)
def other_sentence(layout: Layout, pairs: WordPairs) -> Columns | None:
    """The word pieces of the other text of a pair."""
    return _sentence(layout, same=False)


SIEVES["block"] = Sieve(own_sentence, entropy=True, bank=True)


@lru_cache(maxsize=4096)
def relation(*labels: str, backward: bool = False) -> Sieve:
    """The sieve of the pooled word pairs of grammatical relations: the word pieces of the head for each dependent.

    It is the mean over the pieces of both words, then over the word pairs. `backward` exchanges dependent and head (the
    released code has that direction but never runs it).
    """

    def pooled(pairs: Mapping[str, Ranges]) -> Ranges:
        found = [pairs[label] for label in labels if label in pairs] or [NO_RANGES]
        sequences, ranges = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
        return Ranges(sequences, ranges.take(EXCHANGED, axis=1) if backward else ranges)

    def function(layout: Layout, pairs: WordPairs) -> Cells | None:
        found = pooled(by_label([pairs]))
        return Cells(*found.cells()[1:], len(layout)) if len(found.ranges) else None

    return Sieve(function, pooled=pooled)


def by_label(batch: Sequence[WordPairs]) -> dict[str, Ranges]:
    """The word pairs of several sequences, by relation."""
    found = defaultdict(list)
    for sequence, pairs in enumerate(batch):
        for label, own in pairs.items():
            found[label].append((sequence, own.ranges))
    return {
        label: Ranges(
            np.repeat([sequence for sequence, _ in parts], [len(ranges) for _, ranges in parts]),
            np.concatenate([ranges for _, ranges in parts]),
        )
        for label, parts in found.items()
    }


SIEVES["syntactic"] = relation(*RELATIONS)


def resolve(roles: Sequence[str] | None, labels: set[str], arithmetic: str) -> dict[str, Sieve]:
    """The sieves of the named roles, by default those of the whole bank and of both directions of every label.

    `labels` are the relations in the data; roles may also name other relations of Universal Dependencies. With
    `published` arithmetic, a role has the sieve of the released code where it differs. Raises InputError for an unknown
    role, and for a relation with the name of a registered sieve.
    """
    if arithmetic not in ("corrected", "published"):
        raise InputError(f"arithmetic is {arithmetic!r}: choose corrected or published")
    found = {label: relation(label) for label in sorted(labels | UNIVERSAL)}
    found |= {label + REVERSED: relation(label, backward=True) for label in sorted(found)}
    if shared := sorted(found.keys() & SIEVES):
        raise InputError(f"{shared[0]!r} names a sieve and a relation of the data: rename one of them")
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
