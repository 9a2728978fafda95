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
from analysis.texts.treebank import read_trees

KINDS = ("pronoun", "proper", "nominal")
LIMIT = 128  # words of a document that are read (Clark 2019 cut documents to 128 tokens)
ROOT = -1  # the position of the head of the word at the root of a tree
SINGULAR, PLURAL, ANY = "singular", "plural", "any"
THIRD = 3
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
# One bracket of `Entity`: an opening, a closing or a mention of one word. The name of the chain ends at the first
# hyphen; the rest (type, information status and others) describes the mention.
BRACKET = re.compile(
    r"(?P<opens>\()(?P<opened>[^()\[\]-]+)(?:-[^()\[\]]*)?(?P<both>\))?|(?P<closed>[^()\[\]-]+)\)"
)


class Span(NamedTuple):
    """A mention: its first and its last word (from 0, in the document) and the name of its chain."""

    start: int
    end: int
    chain: str


@dataclass(frozen=True)
class Document:
    """The words of a document and its mentions, sorted by (start, end).

    `words` has the columns of `treebank.Treebank.words`, a row per word of the document;
    `mentions` has start, end (its last word), chain, head (the head word), kind (one of KINDS), string and
    form (of the mention and its head word, in lower case), number, gender and person. Places are words of
    the document, from 0.
    """

    name: str
    words: pd.DataFrame
    mentions: pd.DataFrame


class Chains(NamedTuple):
    """Documents, and how many multiword tokens, empty nodes and duplicate mentions were left out."""

    documents: list[Document]
    left_out: dict[str, int]


def read_chains(files: Sequence[str | Path]) -> Chains:
    """The documents of CoNLL-U files with the mentions of their `Entity` fields.

    Raises InputError as `treebank.read_trees` does, and with file and line for brackets that are not balanced within
    a sentence or are not of the form `(3`, `3)`, `(3)`.
    """
    documents, left_out = [], Counter({"duplicate mentions": 0})
    for path in map(expand, files):
        trees = read_trees([path])
        left_out.update(trees.left_out)
        for name, part in trees.words.groupby("document", sort=False):
            part = part.reset_index(drop=True)
            spans = list(_spans(part, path))
            documents.append(_document(str(name), part, spans))
            left_out["duplicate mentions"] += len(spans) - len(documents[-1].mentions)
    return Chains(documents, dict(left_out))


def _spans(words: pd.DataFrame, file: Path) -> Iterator[Span]:
    """The mentions that the `Entity` brackets of one document mark; the inner mention of a chain closes first."""
    for _, sentence in words[words["entity"] != ""].groupby("sentence", sort=False):
        opened: dict[str, list[int]] = defaultdict(list)
        for word in sentence.itertuples():
            for bracket in _brackets(word.entity, file, word.line):
                chain = bracket["opened"] or bracket["closed"]
                if bracket["opens"]:
                    opened[chain].append(word.Index)
                if bracket["opens"] and not bracket["both"]:
                    continue
                if not opened[chain]:
                    raise InputError(
                        f"{file}, line {word.line}: {bracket[0]!r} closes a mention that its sentence does not open: "
                        "correct the brackets"
                    )
                yield Span(opened[chain].pop(), word.Index, chain)
        for chain, positions in opened.items():
            if positions:
                raise InputError(
                    f"{file}, line {words['line'][positions[-1]]}: '({chain}' opens a mention that its sentence does "
                    "not close: correct the brackets"
                )


def _brackets(entity: str, file: Path, line: int) -> list[re.Match]:
    brackets = list(BRACKET.finditer(entity))
    if "".join(bracket[0] for bracket in brackets) != entity:
        raise InputError(
            f"{file}, line {line}: Entity={entity} is no sequence of brackets such as '(3', '3)', '(3)'"
        )
    return brackets


def _document(name: str, words: pd.DataFrame, spans: Sequence[Span]) -> Document:
    """A document with the mentions at these spans; the same span of the same chain counts once.

    `words` has the columns word, form, upos, xpos and head of `treebank.Treebank.words`. The head word of a mention is
    its first word whose syntactic head lies outside the mention.
    """
    mentions = pd.DataFrame(sorted(set(spans)), columns=Span._fields)
    extents = mentions[["start", "end"]].to_numpy(dtype=int)
    heads = _head_words(words, extents)
    lower = words["form"].str.lower()
    head_words = words.iloc[heads].assign(form=lower.iloc[heads]).reset_index(drop=True)
    return Document(name, words, mentions.assign(
        head=heads, kind=_kinds(head_words), form=head_words["form"],
        string=[" ".join(lower.iloc[start : end + 1]) for start, end in extents],
        number=_numbers(head_words), gender=head_words["form"].map(GENDERS).fillna(ANY),
        person=head_words["form"].map(PERSONS).fillna(THIRD).astype(int),
    ))  # fmt: skip


def _head_words(words: pd.DataFrame, extents: Int[np.ndarray, "mention 2"]) -> Int[np.ndarray, " mention"]:
    heads = np.arange(len(words)) - words["word"].to_numpy() + words["head"].to_numpy() - 1
    heads[words["head"].to_numpy() == 0] = ROOT
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


def by_sentence(document: Document) -> list[Document]:
    """Every sentence of a document as a document of its own, for a model that reads one sentence at a time."""
    sentences = []
    for number, words in document.words.groupby("sentence", sort=False):
        mentions = document.mentions[document.mentions["start"].isin(words.index)].reset_index(drop=True)
        mentions[["start", "end", "head"]] -= words.index[0]
        name = f"{document.name}, sentence {number}"
        sentences.append(Document(name, words.reset_index(drop=True), mentions))
    return sentences


def words_that_fit(pieces: Int[np.ndarray, " word"], tokens: int = LIMIT) -> int:
    """The number of first words that fit in `tokens` word pieces, two of which are [CLS] and [SEP].

    `pieces` is the number of word pieces of each word; the result is a limit for `truncated`.
    """
    return int(np.searchsorted(np.cumsum(pieces), tokens - 2, side="right"))
