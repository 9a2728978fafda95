"""How often a rule, or an attention head, finds an antecedent of a mention (Clark 2019, section 4.3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.scores.words import LIMIT, Words, halves, piece_counts, split_words, word_maps
from analysis.statistics.bootstrap import bca_interval
from analysis.statistics.intervals import mean_interval
from analysis.statistics.layers import cross_fitted
from analysis.texts.chains import ANY, KINDS, Document, truncated, words_that_fit

Pairs = Bool[np.ndarray, "mention mention"]  # row: the mention to resolve; column: a candidate

NOTHING = -1  # the choice of a system without a candidate
ANAPHOR = ["document", "start", "end", "kind"]
# The ends of the intervals, of all anaphors and of each kind.
BOUNDS = [["low", "high"], *([f"low_{kind}", f"high_{kind}"] for kind in KINDS)]


def preceding(text: Document) -> Pairs:
    """Mentions that sort before the mention to resolve by (start, end) and have another head word."""
    order = np.arange(len(text.mentions))
    return (order < order[:, None]) & either_side(text)


def either_side(text: Document) -> Pairs:
    """All mentions, before or after, whose head word differs from that of the mention to resolve."""
    return ~agreeing(text, ["head"])


def agreeing(text: Document, features: Sequence[str]) -> Pairs:
    """Mentions with the same value of every feature; an unknown number or gender agrees with any."""
    pairs = np.full((len(text.mentions), len(text.mentions)), True)
    for feature in features:
        values = text.mentions[feature].to_numpy()
        unknown = (text.mentions[feature] == ANY).to_numpy() & (feature in ("number", "gender"))
        pairs &= (values[:, None] == values) | unknown | unknown[:, None]
    return pairs


# The sieves of a rule: features in which an antecedent agrees with the mention. Words are compared in lower case.
ANYTHING, STRING, HEAD_FORM, AGREEMENT = [], ["string"], ["form"], ["number", "gender", "person"]
# The candidates and the sieves of each rule. A rule chooses the nearest candidate that passes its first sieve; if no
# candidate passes, it tries the next sieve. Clark 2019, Table 2, has `nearest`, `head match` and `rule-based`. It does
# not say whether the nearest mention may follow, nor whether head match backs off; its values are closer to `either
# side` and to no back-off.
SYSTEMS: dict[str, tuple[Callable[[Document], Pairs], list[list[str]]]] = {
    "nearest": (preceding, [ANYTHING]),
    "nearest, either side": (either_side, [ANYTHING]),
    "head match": (preceding, [HEAD_FORM]),
    "head match, else nearest": (preceding, [HEAD_FORM, ANYTHING]),
    "rule-based": (preceding, [STRING, HEAD_FORM, AGREEMENT, ANYTHING]),
}


def choices(system: str, text: Document) -> Int[np.ndarray, " mention"]:
    """The row of the mention that a rule of SYSTEMS chooses for each mention, or NOTHING.

    Distance is between head words; of equally near mentions, the one that sorts first wins.
    """
    candidates_of, sieves = SYSTEMS[system]
    candidates, heads = candidates_of(text), text.mentions["head"].to_numpy()
    distance = np.abs(heads - heads[:, None])
    choice = np.full(len(heads), NOTHING)
    for features in sieves:
        passing = candidates & agreeing(text, features)
        nearest = np.where(passing, distance, len(text.words)).argmin(axis=1)
        choice = np.where((choice == NOTHING) & passing.any(axis=1), nearest, choice)
    return choice


def antecedents(text: Document) -> Pairs:
    """The preceding mentions of the same chain, by the gold annotation."""
    return preceding(text) & agreeing(text, ["chain"])


def rule_hits(documents: Sequence[Document]) -> pd.DataFrame:
    """Whether each rule finds an antecedent: document, start, end, kind and a boolean column per system.

    A row per anaphor, which is a mention with an antecedent. A choice is right if it is in the same chain; no choice is
    wrong. Source: Clark 2019, 4.3.
    """
    parts = []
    for text in documents:
        anaphors, same_chain = antecedents(text).any(axis=1), agreeing(text, ["chain"])
        if anaphors.any():
            hits = {}
            for system in SYSTEMS:
                choice = choices(system, text)
                hits[system] = same_chain[range(len(choice)), choice] & (choice != NOTHING)
            parts.append(text.mentions.assign(document=text.name, **hits).loc[anaphors, [*ANAPHOR, *SYSTEMS]])
    return pd.concat(parts, ignore_index=True)


def accuracies(hits: pd.DataFrame, alpha: float, resamples: int, seed: int) -> pd.DataFrame:
    """Accuracy of each system on all anaphors and on those of each kind, with BOUNDS; `n` counts all anaphors.

    `hits` is that of `rule_hits`, with systems after ANAPHOR. Proportions, with BCa intervals over documents. Source:
    Clark 2019, Table 2.
    """
    correct = hits.drop(columns=ANAPHOR).astype(float)
    table = pd.DataFrame({"system": correct.columns, "n": len(hits)})
    for kind, ends in zip(("all", *KINDS), BOUNDS, strict=True):
        rows = (hits["kind"] == kind) | (kind == "all")
        values, documents = correct[rows], hits.loc[rows, "document"].to_numpy()
        table[kind] = values.mean().to_numpy()
        table[ends] = np.transpose(bca_interval(values.to_numpy(), documents, alpha, resamples, seed))
    return table


# The words among which an attention head chooses; the paper does not define them. `all_words` is its literal wording;
# `preceding_mention_heads` gives a fair comparison with the rules. Neither contains the mention's own head word.
CANDIDATES: dict[str, Callable[[Document], Bool[np.ndarray, "mention word"]]] = {
    "all_words": lambda text: np.arange(len(text.words)) != text.mentions["head"].to_numpy()[:, None],
    "preceding_mention_heads": lambda text: _head_words(text, preceding(text)),
}
# The candidates in names of systems.
AMONG = {"all_words": "all words", "preceding_mention_heads": "preceding mentions"}


def head_hits(
    attention: Float[np.ndarray, "*heads word word"], text: Document, candidates: str = "all_words"
) -> Bool[np.ndarray, "*heads anaphor"]:
    """Whether the head word of each anaphor attends most, among `candidates`, to the head word of an antecedent.

    `attention` is from (row) word to (column) word of the document, `candidates` a key of CANDIDATES. Of equal words,
    the first one wins. Source: Clark 2019, 4.3.
    """
    pairs = antecedents(text)
    anaphors = pairs.any(axis=1)
    allowed, correct = CANDIDATES[candidates](text)[anaphors], _head_words(text, pairs)[anaphors]
    rows = attention[..., text.mentions["head"].to_numpy()[anaphors], :]
    choice = np.where(allowed, rows, -np.inf).argmax(axis=-1)
    return correct[np.arange(len(correct)), choice]


def _head_words(text: Document, pairs: Pairs) -> Bool[np.ndarray, "mention word"]:
    """The head words of each mention's candidates."""
    mention, candidate = np.nonzero(pairs)
    is_head = np.full((len(text.mentions), len(text.words)), False)
    is_head[mention, text.mentions["head"].to_numpy()[candidate]] = True
    return is_head


class Texts(NamedTuple):
    """Documents with their word pieces, and the number of documents left out, by reason."""

    documents: list[Document]
    pieces: list[Words]
    left_out: dict[str, int]


def beginnings(encoder: Encoder, documents: Sequence[Document], limit: int = LIMIT) -> Texts:
    """The beginnings of documents, cut to `limit` word pieces, [CLS] and [SEP] among them.

    A document is left out and counted if it has more pieces than the encoder can hold, a word without pieces, or no
    anaphor. Raises InputError if nothing is left. Source: Clark 2019, 4.3, which does not define its 128 "tokens".
    """
    texts = []
    for text in documents:
        # A word has at least one piece, so `limit` words are enough.
        pieces = piece_counts(encoder.tokenizer, text.words["form"][:limit].tolist())
        text = truncated(text, words_that_fit(pieces, limit))
        if antecedents(text).any():
            texts.append(text)
    if not texts:
        raise InputError("the documents have no mention with an antecedent: give longer or other documents")
    longest = min(encoder.positions, encoder.tokenizer.model_max_length)
    split = split_words(encoder.tokenizer, [text.words["form"].tolist() for text in texts], longest)
    readable = [texts[pieces.number] for pieces in split.kept]
    return Texts(readable, split.kept, split.left_out | {"no anaphor": len(documents) - len(texts)})


def hits_by_head(
    encoder: Encoder, texts: Texts, candidates: str = "all_words", rows: str = "mean"
) -> Bool[np.ndarray, "anaphor layer head"]:
    """The `head_hits` of every attention head for every anaphor, in the order of `rule_hits`."""
    hits = [
        head_hits(word_maps(encoder, pieces, rows)[:, :, 1:-1, 1:-1], text, candidates)
        for text, pieces in zip(texts.documents, texts.pieces, strict=True)
    ]
    return np.moveaxis(np.concatenate(hits, axis=-1), -1, 0)


SAME_DATA = ", chosen on the same documents"  # ends the name of a head that is scored where it was chosen


def coreference_tables(
    texts: Texts,
    by_reading: Mapping[str, Bool[np.ndarray, "anaphor layer head"]],
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `clark_coreference` and `clark_coreference_readings` (docs/tables.yaml).

    `by_reading` has the `hits_by_head` for keys of CANDIDATES. The best head of each is cross-fitted over two halves of
    the documents, and once more chosen and scored on all of them (SAME_DATA), as in Clark 2019, 4.3, and so optimistic.
    """
    by_rule = rule_hits(texts.documents)
    documents, first_half = by_rule["document"], halves(by_rule["document"], seed)
    hits, places, gains = by_rule.copy(), {}, []
    for reading, by_head in by_reading.items():
        name = best_head_among(reading)
        accuracy = by_head.mean(axis=0)
        place = np.unravel_index(accuracy.argmax(), accuracy.shape)
        hits[name], hits[name + SAME_DATA] = cross_fitted(by_head, first_half), by_head[(..., *place)]
        places |= {name: place, name + SAME_DATA: place}
        for rule in SYSTEMS:
            difference = hits[name].to_numpy(float) - by_rule[rule].to_numpy(float)
            gains.append((reading, rule, *place, *mean_interval(difference, documents.to_numpy())))
    best = pd.DataFrame.from_dict(places, orient="index", columns=["layer", "head"], dtype="Int64")
    table = accuracies(hits, alpha, resamples, seed).join(best, on="system")
    return table, pd.DataFrame(gains, columns="candidates system layer head gain gain_low gain_high".split())


def best_head_among(reading: str) -> str:
    """The name of the best head as a system."""
    return f"best head among {AMONG[reading]}"
