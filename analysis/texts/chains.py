"""Documents with their coreferent mentions, from the `Entity` brackets of CoNLL-U files."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from analysis.errors import InputError
from analysis.files import expand
from analysis.texts.dependencies import read_trees

Span = tuple[int, int, str]  # the first and last word of a mention (from 0) and its chain
KINDS = ("pronoun", "proper", "nominal")
LIMIT = 128  # words of a document that are read (Clark 2019 cut documents to 128 tokens)
SINGULAR, PLURAL, ANY = "singular", "plural", "any"
PRONOUN_TAGS = frozenset({"PRP", "PRP$", "WP", "WP$", "WDT"})
PLURAL_TAGS = frozenset({"NNS", "NNPS"})
PLURAL_WORDS = frozenset("they them their theirs themselves we us our ourselves these those".split())
EITHER_NUMBER = frozenset({"you", "your"})
GENDERS = {
    **dict.fromkeys("he him his himself".split(), "masculine"),
    **dict.fromkeys("she her hers herself".split(), "feminine"),
    **dict.fromkeys("it its itself".split(), "neuter"),
}
PERSONS = {
    **dict.fromkeys("i me my mine we us our ours myself ourselves".split(), 1),
    **dict.fromkeys("you your yours yourself".split(), 2),
}
# An opening bracket, a closing one, or both around a mention of one word. The name of the chain ends at the first
# hyphen; the rest (type, information status and others) describes the mention.
BRACKET = re.compile(
    r"(?P<opens>\()(?P<opened>[^()\[\]-]+)(?:-[^()\[\]]*)?(?P<both>\))?|(?P<closed>[^()\[\]-]+)\)"
)


@dataclass(frozen=True)
class Document:
    """The words of a document, as in `dependencies.Treebank`, and its mentions, sorted by start and end.

    `mentions` has start, end (its last word), chain, head (the head word), kind (one of KINDS), string and form (of the
    mention and its head word, in lower case), number, gender and person. Positions are words of the document, from 0.
    """

    name: str
    words: pd.DataFrame
    mentions: pd.DataFrame


class Chains(NamedTuple):
    """Documents, and how many multiword tokens, empty nodes and duplicate mentions were left out."""

    documents: list[Document]
    left_out: dict[str, int]


def read_chains(files: Sequence[str | Path]) -> Chains:
    """The documents of CoNLL-U files with the mentions of their `Entity` fields."""
    documents, left_out = [], Counter({"duplicate mentions": 0})
    for path in map(expand, files):
        trees = read_trees([path])
        left_out.update(trees.left_out)
        for name, words in trees.words.groupby("document", sort=False):
            words = words.reset_index(drop=True)
            spans = [*_spans(words, f"{path}, document {name!r}")]
            documents.append(_document(name, words, spans))
            left_out["duplicate mentions"] += len(spans) - len(documents[-1].mentions)
    return Chains(documents, dict(left_out))


def _spans(words: pd.DataFrame, place: str) -> Iterator[Span]:
    """The mentions in the brackets of a document; the inner one of two mentions of a chain closes first."""
    for _, sentence in words[words["entity"] != ""].groupby("sentence", sort=False):
        opened: dict[str, list[int]] = defaultdict(list)
        for position, entity in sentence["entity"].items():
            if BRACKET.sub("", entity):
                raise InputError(f"{place}: Entity={entity}: write brackets such as '(3', '3)', '(3)'")
            for bracket in BRACKET.finditer(entity):
                chain = bracket["opened"] or bracket["closed"]
                if bracket["opens"]:
                    opened[chain].append(position)
                if bracket["opens"] and not bracket["both"]:
                    continue
                if not opened[chain]:
                    raise InputError(
                        f"{place}: Entity={entity} closes a mention that its sentence does not open: correct it"
                    )
                yield opened[chain].pop(), position, chain
        if unclosed := [chain for chain, positions in opened.items() if positions]:
            raise InputError(
                f"{place}: a sentence opens the mention '({unclosed[0]}' and does not close it: correct the brackets"
            )


def _document(name: str, words: pd.DataFrame, spans: Sequence[Span]) -> Document:
    """A document with the mentions at these spans; the same span of the same chain counts once.

    The head word of a mention is its first word whose governor lies outside the mention.
    """
    mentions = pd.DataFrame(sorted(set(spans)), columns=["start", "end", "chain"])
    extents = mentions[["start", "end"]].to_numpy(dtype=int)
    heads = _head_words(words, extents)
    lower = words["form"].str.lower()
    head_words = words.iloc[heads].assign(form=lower.iloc[heads]).reset_index(drop=True)
    return Document(name, words, mentions.assign(
        head=heads, kind=_kinds(head_words), form=head_words["form"],
        string=[" ".join(lower.iloc[start : end + 1]) for start, end in extents],
        number=_numbers(head_words), gender=head_words["form"].map(GENDERS).fillna(ANY),
        person=head_words["form"].map(PERSONS).fillna(3).astype(int),
    ))  # fmt: skip


def _head_words(words: pd.DataFrame, extents: Int[np.ndarray, "mention 2"]) -> Int[np.ndarray, " mention"]:
    # The head of a root is the position before its sentence, which is outside every mention of the sentence.
    heads = np.arange(len(words)) - words["word"].to_numpy() + words["head"].to_numpy() - 1
    outside = [(heads[start : end + 1] < start) | (heads[start : end + 1] > end) for start, end in extents]
    return extents[:, 0] + np.array([is_outside.argmax() for is_outside in outside], dtype=int)


def _kinds(head_words: pd.DataFrame) -> np.ndarray:
    tag, upos = head_words["xpos"], head_words["upos"]
    pronoun = tag.isin(PRONOUN_TAGS) | ((tag == "DT") & (upos == "PRON"))
    proper = tag.str.startswith("NNP") | (upos == "PROPN")
    return np.select([pronoun, proper], KINDS[:2], KINDS[2])


def _numbers(head_words: pd.DataFrame) -> np.ndarray:
    plural = head_words["xpos"].isin(PLURAL_TAGS) | head_words["form"].isin(PLURAL_WORDS)
    return np.select([head_words["form"].isin(EITHER_NUMBER), plural], [ANY, PLURAL], SINGULAR)


def truncated(document: Document, limit: int = LIMIT) -> Document:
    """The first `limit` words of a document and the mentions whose last word is one of them."""
    mentions = document.mentions[document.mentions["end"] < limit].reset_index(drop=True)
    return replace(document, words=document.words[:limit], mentions=mentions)


def words_that_fit(pieces: Int[np.ndarray, " word"], tokens: int = LIMIT) -> int:
    """How many words fit in `tokens` word pieces with [CLS] and [SEP]; `pieces` has those of each word."""
    return int(np.searchsorted(np.cumsum(pieces), tokens - 2, side="right"))
