"""Attention heads that find antecedents: documents cut to fit an encoder, and each head's answers next to the rules."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.clark2019.attachment import cross_fitted
from analysis.papers.clark2019.coreference import KEYS, anaphors, answers, attended, coreference_table
from analysis.scores.attachment import halves
from analysis.scores.words import LIMIT, WordMaps, Words, piece_counts, read_word_maps, split_words
from analysis.statistics.resampling import bootstrap
from analysis.texts.chains import KINDS, Document, by_sentence, truncated, words_that_fit

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
