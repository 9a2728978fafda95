"""How often a rule, or an attention head, finds an antecedent of a mention (Clark 2019, section 4.3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.clark2019.attachment import cross_fitted
from analysis.scores.attachment import halves
from analysis.scores.words import LIMIT, WordMaps, Words, piece_counts, read_word_maps, split_words
from analysis.statistics.resampling import bootstrap
from analysis.texts.chains import ANY, KINDS, Document, by_sentence, truncated, words_that_fit

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


UNITS = ("pieces", "words")
INPUTS = ("document", "sentence")
HELD_OUT, SAME_DATA = "best head, chosen on the other half", "best head, chosen on the same documents"
HALVES, EVERYTHING = "both halves in turn", "all documents"
# The words among which a head chooses, for each reading of `coreference.CANDIDATES`, as the table of systems says it.
AMONG = {
    "all_words": "all words",
    "mention_heads": "heads of mentions",
    "preceding_mention_heads": "heads of preceding mentions",
}
SYSTEM_COLUMNS = ["system", "all", *KINDS, "n"]
BOUNDS = [f"{side}_{kind}" for kind in KINDS for side in ("low", "high")]  # of the interval for each kind


class Texts(NamedTuple):
    """Texts with their word pieces, and the number of texts left out, by reason.

    `origins` names the document that each text is, or comes from.
    """

    documents: list[Document]
    pieces: list[Words]
    origins: list[str]
    left_out: dict[str, int]


def fit(
    encoder: Encoder,
    documents: Sequence[Document],
    limit: int = LIMIT,
    unit: str = "pieces",
    max_tokens: int | None = None,
    seen: str = "document",
) -> Texts:
    """The beginnings of documents, cut to `limit` word pieces (special tokens among them) or words.

    The encoder sees a whole document, or one sentence at a time (`seen` is one of INPUTS). A text is left out and
    counted if it has more than `max_tokens` pieces (None: more than the encoder can hold), a word without pieces, or,
    under "no anaphor", nothing to ask for. Raises InputError for another unit or input, and if nothing is left. Source:
    Clark 2019, 4.3, which does not say what the 128 "tokens" are.
    """
    for name, value, choices in (("unit", unit, UNITS), ("seen", seen, INPUTS)):
        if value not in choices:
            raise InputError(f"{name} is {value!r}: choose from {', '.join(choices)}")
    max_tokens = max_tokens or min(encoder.positions, encoder.tokenizer.model_max_length)
    cut = [truncated(each, _words(encoder, each, limit) if unit == "pieces" else limit) for each in documents]
    pairs = [
        (whole.name, part)
        for whole in cut
        for part in (by_sentence(whole) if seen == "sentence" else [whole])
    ]
    asked = [(name, text) for name, text in pairs if len(text.mentions) and anaphors(text).any()]
    if not asked:
        raise InputError("the documents have no mention with an antecedent: give longer or other documents")
    split = split_words(encoder.tokenizer, [text.words["form"].tolist() for _, text in asked], max_tokens)
    kept = [asked[each.number] for each in split.kept]
    left_out = split.left_out | {"no anaphor": len(pairs) - len(asked)}
    return Texts([text for _, text in kept], split.kept, [name for name, _ in kept], left_out)


def _words(encoder: Encoder, whole: Document, limit: int) -> int:
    # Every word has at least one piece, so words after `limit` cannot fit.
    return words_that_fit(piece_counts(encoder.tokenizer, whole.words["form"][:limit].tolist()), limit)


def attended_antecedents(
    encoder: Encoder,
    texts: Texts,
    candidates: str = "all_words",
    rows: str = "mean",
    budget: int = 2048,
    progress: bool = True,
) -> Bool[np.ndarray, "anaphor layer head"]:
    """Whether each attention head finds an antecedent of each anaphor, in the order of `coreference.answers`.

    The head is right if, among `candidates`, the anaphor's head word attends most to the head word of an antecedent
    (see `coreference.attended`). Maps are reduced batch by batch. Source: Clark 2019, 4.3.
    """
    found = [
        np.zeros((encoder.layers, encoder.heads, anaphors(text).sum()), bool) for text in texts.documents
    ]

    def read(indices: list[int], layer: int, maps: WordMaps) -> None:
        for index, each in zip(indices, maps.cpu().numpy(), strict=True):
            text = texts.documents[index]
            inside = each[:, : len(text.words), : len(text.words)]
            found[index][layer] = attended(inside, text, candidates)

    read_word_maps(encoder, texts.pieces, read, rows, special=False, budget=budget, progress=progress)
    return np.moveaxis(np.concatenate(found, axis=-1), -1, 0)


def antecedent_table(
    texts: Texts,
    by_head: Bool[np.ndarray, "anaphor layer head"],
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Accuracy of the rules and of the best attention head, chosen on the same documents and on the other half.

    Columns system, scored_on, all, pronoun, proper, nominal, low, high, BOUNDS, n, layer, head. Accuracies are
    proportions of the n anaphors. low and high are the BCa bootstrap interval of `all` over documents; with the name of
    a kind, that of the kind. Row HELD_OUT is cross-fitted: in each half of the documents (drawn by `seed`), the score
    is that of the head that the other half chose; the rules occur again for comparison. The head of row SAME_DATA is
    chosen and scored on all documents, as in Clark 2019, 4.3, and so is optimistic. layer and head are the best over
    all documents.
    """
    ruled = answers(texts.documents)
    owners = dict(zip([text.name for text in texts.documents], texts.origins, strict=True))
    documents = ruled["document"].map(owners)
    chooses = halves(documents, seed)
    accuracy = by_head.mean(axis=0)
    place = np.unravel_index(accuracy.argmax(), accuracy.shape)
    parts = []
    for scored_on, name, correct in (
        (EVERYTHING, SAME_DATA, by_head[:, *place]),
        (HALVES, HELD_OUT, cross_fitted(by_head, chooses)),
    ):
        shown = ruled.assign(**{name: correct})
        bounds = _intervals(shown, documents, (alpha, resamples, seed))
        table = coreference_table(shown).assign(scored_on=scored_on, **bounds)
        for column, value in zip(("layer", "head"), place, strict=True):
            table[column] = pd.array(
                [int(value) if system == name else None for system in table["system"]], "Int64"
            )
        parts.append(table)
    columns = ["system", "scored_on", "all", *KINDS, "low", "high", *BOUNDS, "n", "layer", "head"]
    return pd.concat(parts, ignore_index=True)[columns]


def _intervals(
    shown: pd.DataFrame, documents: pd.Series, options: tuple[float, int, int]
) -> dict[str, Float[np.ndarray, "system"]]:
    """Bounds of the accuracy of each system, over all anaphors and over those of each kind."""
    found = {}
    for kind in ("", *KINDS):
        rows = (shown["kind"] == kind).to_numpy() if kind else np.full(len(shown), True)
        values = shown.loc[rows].drop(columns=KEYS).to_numpy(dtype=float)
        interval = bootstrap(values, 0.0, documents[rows].to_numpy(), *options)
        suffix = f"_{kind}" if kind else ""
        found |= {f"low{suffix}": interval.low, f"high{suffix}": interval.high}
    return found


def held_out_systems(readings: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The systems of each reading of the candidates: the rules once, then the best heads, cross-fitted.

    `readings` maps keys of `coreference.CANDIDATES` to an `antecedent_table` each, all from the same texts. The columns
    are SYSTEM_COLUMNS, then low, high, BOUNDS, layer, head; the name of a best head says what it chooses among.
    """
    halved = {reading: table[table["scored_on"] == HALVES] for reading, table in readings.items()}
    rules = [table[table["system"] != HELD_OUT] for table in halved.values()][:1]
    heads = [
        table[table["system"] == HELD_OUT].assign(system=f"best head among {AMONG[reading]}")
        for reading, table in halved.items()
    ]
    return pd.concat([*rules, *heads], ignore_index=True)[
        [*SYSTEM_COLUMNS, "low", "high", *BOUNDS, "layer", "head"]
    ]
