"""How often a system, or an attention head, finds an antecedent of a mention."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from analysis.errors import InputError
from analysis.texts.chains import ANY, KINDS, Document

Pairs = Bool[np.ndarray, "mention mention"]  # row: the mention to resolve; column: a candidate
Condition = Callable[[Document], Pairs]

NOTHING = -1  # the choice of a system without a candidate
KEYS = ["document", "start", "end", "kind"]


def preceding(text: Document) -> Pairs:
    """Mentions that sort before the mention to resolve by (start, end) and have another head word."""
    order = np.arange(len(text.mentions))
    return (order < order[:, None]) & either_side(text)


def either_side(text: Document) -> Pairs:
    """All mentions, before or after, whose head word differs from that of the mention to resolve."""
    return ~_same(text, "head")


def anything(text: Document) -> Pairs:
    """Every mention; this sieve removes no candidate."""
    return np.full((len(text.mentions), len(text.mentions)), True)


def same_string(text: Document) -> Pairs:
    """Mentions with the same words, ignoring case."""
    return _same(text, "string")


def same_head_form(text: Document) -> Pairs:
    """Mentions with the same head word, ignoring case."""
    return _same(text, "form")


def same_features(text: Document) -> Pairs:
    """Mentions that agree in number, gender and person; an unknown number or gender agrees with any."""
    return _compatible(text, "number") & _compatible(text, "gender") & _same(text, "person")


def same_chain(text: Document) -> Pairs:
    """Mentions of the same chain in the gold coreference."""
    return _same(text, "chain")


def _same(text: Document, feature: str) -> Pairs:
    values = text.mentions[feature].to_numpy()
    return values[:, None] == values


def _compatible(text: Document, feature: str) -> Pairs:
    unknown = (text.mentions[feature] == ANY).to_numpy()
    return _same(text, feature) | unknown | unknown[:, None]


class System(NamedTuple):
    """A rule: the first sieve that any candidate passes selects candidates, and the rule chooses the nearest of them.

    Distance is between head words; of equally near mentions, the one that sorts first wins. The choice is right if it
    is in the same chain. If no candidate passes any sieve, the answer counts as wrong.
    """

    sieves: tuple[Condition, ...]
    candidates: Condition = preceding


# Clark 2019, Table 2, has `nearest`, `head match` and `rule-based`. It does not say whether the nearest mention may
# follow, nor whether head match backs off; its values are closer to `either side` and to no back-off.
SYSTEMS: dict[str, System] = {
    "nearest": System((anything,)),
    "nearest, either side": System((anything,), either_side),
    "head match": System((same_head_form,)),
    "head match, else nearest": System((same_head_form, anything)),
    "rule-based": System((same_string, same_head_form, same_features, anything)),
}


def choices(system: System, text: Document) -> Int[np.ndarray, " mention"]:
    """The row of the mention that a system chooses for each mention, or NOTHING; the text must have mentions."""
    chosen = np.full(len(text.mentions), NOTHING)
    candidates = system.candidates(text)
    for sieve in system.sieves:
        passing = candidates & sieve(text)
        chosen = np.where((chosen == NOTHING) & passing.any(axis=1), _nearest(text, passing), chosen)
    return chosen


def _nearest(text: Document, passing: Pairs) -> Int[np.ndarray, " mention"]:
    heads = text.mentions["head"].to_numpy()
    distance = np.abs(heads - heads[:, None])
    return np.where(passing, distance, len(text.words)).argmin(axis=1)


def anaphors(text: Document) -> Bool[np.ndarray, " mention"]:
    """The mentions to resolve: those with a mention of their own chain among the preceding ones."""
    return (preceding(text) & same_chain(text)).any(axis=1)


def answers(documents: Sequence[Document], systems: Mapping[str, System] = SYSTEMS) -> pd.DataFrame:
    """Whether each system is right: document, start, end, kind and a boolean column per system.

    A row per anaphor, in the order of `anaphors`; documents without one have none. Source: Clark 2019, 4.3.
    """
    parts = []
    for text in documents:
        asked = anaphors(text)
        if not asked.any():
            continue
        rows, gold = np.arange(len(text.mentions)), same_chain(text)
        chosen = {name: choices(system, text) for name, system in systems.items()}
        right = {name: (gold[rows, choice] & (choice != NOTHING))[asked] for name, choice in chosen.items()}
        parts.append(text.mentions[asked].assign(document=text.name, **right)[[*KEYS, *systems]])
    if not parts:
        raise InputError("the documents have no mention with an antecedent: give longer or other documents")
    return pd.concat(parts, ignore_index=True)


def coreference_table(answers: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each system, as a proportion of anaphors: system, all, pronoun, proper, nominal, n.

    `answers` is that of `answers`; each of its columns after KEYS is a system. `n` counts all anaphors; NaN if there is
    none of a kind. Source: Clark 2019, Table 2.
    """
    right = answers.drop(columns=KEYS).astype(float)
    table = right.groupby(answers["kind"]).mean().reindex(KINDS).T.rename_axis(index="system", columns=None)
    table.insert(0, "all", right.mean())
    return table.assign(n=len(answers)).reset_index()


# The words among which an attention head chooses; the paper does not define them. `all_words` is its literal wording;
# `preceding_mention_heads` gives a fair comparison with the systems. None contains the mention's own head word.
CANDIDATES: dict[str, Callable[[Document], Bool[np.ndarray, "mention word"]]] = {
    "all_words": lambda text: np.arange(len(text.words)) != text.mentions["head"].to_numpy()[:, None],
    "mention_heads": lambda text: _at_heads(text, either_side(text)),
    "preceding_mention_heads": lambda text: _at_heads(text, preceding(text)),
}


def attended(
    attention: Float[np.ndarray, "*heads word word"], text: Document, candidates: str = "all_words"
) -> Bool[np.ndarray, "*heads anaphor"]:
    """Whether the head word of each anaphor attends most, among `candidates`, to the head word of an antecedent.

    `attention` is from (row) word to (column) word of the document. Of equal words, the first one wins. Raises
    InputError if `candidates` is not a key of CANDIDATES. Source: Clark 2019, 4.3.
    """
    if candidates not in CANDIDATES:
        raise InputError(f"candidates {candidates!r} is unknown; choose one of {', '.join(CANDIDATES)}")
    asked = anaphors(text)
    allowed = CANDIDATES[candidates](text)[asked]
    gold = _at_heads(text, preceding(text) & same_chain(text))[asked]
    rows = attention[..., text.mentions["head"].to_numpy()[asked], :]
    chosen = np.where(allowed, rows, -np.inf).argmax(axis=-1)
    return gold[np.arange(len(gold)), chosen]


def _at_heads(text: Document, pairs: Pairs) -> Bool[np.ndarray, "mention word"]:
    """The head words of each mention's candidates."""
    mention, candidate = np.nonzero(pairs)
    at_heads = np.full((len(text.mentions), len(text.words)), False)
    at_heads[mention, text.mentions["head"].to_numpy()[candidate]] = True
    return at_heads
