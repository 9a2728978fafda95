"""CoNLL-U files: the text, the words and the tree of each sentence."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import accumulate, groupby, pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

import conllu
import numpy as np
from conllu.parser import DEFAULT_FIELDS, parse_token_and_metadata
from jaxtyping import Int

from analysis.errors import InputError
from analysis.files import read_text
from analysis.texts.parses import Parse

# As the conllu library divides a line: a form with two spaces would shift the rest.
DIVIDER = re.compile(r"\t| {2,}")
LEFT_OUT = {"-": "multiword tokens", ".": "empty nodes"}  # no words, by the mark in the number of their line


class Word(NamedTuple):
    """A syntactic word: `head` is 0 for ROOT, else from 1; `entity` is a field of MISC, or ""."""

    form: str
    upos: str
    xpos: str
    relation: str
    head: int
    entity: str


class Sentence(NamedTuple):
    """A sentence: its text, words, parse and comments, and a count of the lines left out."""

    text: str
    words: list[Word]
    parse: Parse
    comments: dict[str, str | None]
    left_out: Counter[str]


def read_sentences(path: Path) -> list[Sentence]:
    """The sentences of a CoNLL-U file; raises InputError, with the line, for a fault."""
    numbered = blocks(StringIO(read_text(path)))
    sentences = [read_sentence(block, f"{path}, line {line}") for line, block in numbered]
    if not any(sentence.words for sentence in sentences):
        raise InputError(f"{path} holds no word: give a CoNLL-U file")
    return sentences


def parses_of(path: Path, texts: Sequence[str]) -> dict[str, Parse]:
    """The parse of each text by the sentences of a CoNLL-U file; raises InputError for a text that it lacks."""
    parses = {sentence.text: sentence.parse for sentence in read_sentences(path)}
    if missing := [text for text in texts if text not in parses]:
        remedy = difference(missing[0], parses) or "parse it or use another parser"
        raise InputError(f"{path} has no sentence with the text {missing[0][:60]!r}: {remedy}")
    return parses


def appearance(text: str) -> str:
    """A text without what no reader sees: forms of one character, kinds of spaces, characters without a width."""
    characters = unicodedata.normalize("NFKC", text)
    return " ".join("".join(c for c in characters if unicodedata.category(c) != "Cf").split())


def difference(text: str, others: Iterable[str]) -> str:
    """Where a text differs from one that looks the same, and the remedy; empty if none of the others does."""
    twin = next((other for other in others if appearance(other) == appearance(text)), None)
    if twin is None:
        return ""
    place = next(place for place, pair in enumerate(zip_longest(text, twin)) if len({*pair}) > 1)
    ours, theirs = (
        f"U+{ord(c):04X} {unicodedata.name(c, '')}" if (c := other[place : place + 1]) else "the end"
        for other in (text, twin)
    )
    return f"one that looks the same has {theirs} at character {place} (from 0), not {ours}: write both in one form"


def blocks(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The first line number and the lines of each sentence; empty lines divide sentences."""
    for is_filled, block in groupby(enumerate(lines, 1), lambda numbered: bool(numbered[1].strip())):
        if is_filled:
            numbers, texts = zip(*block, strict=True)
            yield numbers[0], "".join(texts)


def paragraphs(sentences: Iterable[Sentence], path: Path) -> Iterator[tuple[str, int]]:
    """The document of each sentence, and the number of its paragraph in the file (0-based).

    `# newpar` begins a paragraph, `# newdoc` a document; `# newdoc id` names one. Before the first it is the file.
    """
    names, paragraph = [path.stem], 0
    for sentence in sentences:
        begins = {key.split()[0] for key in sentence.comments}
        if "newdoc" in begins:
            name = sentence.comments.get("newdoc id") or f"{path.stem}, document {len(names)}"
            if name in names[1:]:
                raise InputError(f"{path}: two documents are called {name!r}: give each its own name")
            names.append(name)
        paragraph += bool(begins & {"newdoc", "newpar"})
        yield names[-1], paragraph


def read_sentence(block: str, place: str) -> Sentence:
    """The sentence in a block of CoNLL-U; messages name its place, a file and the first line of the block."""
    try:
        return _sentence(block)
    except (conllu.exceptions.ParseException, ValueError) as error:
        raise InputError(f"{place}: {error}") from error


def _sentence(block: str) -> Sentence:
    """The text is the comment `# text`, or the tokens with the spaces that MISC asks for."""
    for line in block.strip().split("\n"):
        columns = DIVIDER.split(line.strip())
        if len(columns) != len(DEFAULT_FIELDS) and not line.startswith("#"):
            raise ValueError(f"{len(columns)} columns: CoNLL-U has 10, divided by one tab each, not {line!r}")
    rows = parse_token_and_metadata(block)
    numbered = [row for row in rows if not isinstance(row["id"], tuple)]
    if [row["id"] for row in numbered] != [*range(1, len(numbered) + 1)]:
        raise ValueError("the sentence has words that are not numbered 1, 2, 3 and on: renumber it")
    words = [
        Word(row["form"], row["upos"], row["xpos"] or "", row["deprel"], row["head"], _misc(row, "Entity"))
        for row in numbered
    ]
    _check_tree(words)
    tokens = [*_tokens(rows, words)]
    if sum(len(members) for _, members in tokens) != len(words):
        raise ValueError("the multiword tokens do not fit the words after them: renumber them")
    spaced = "".join(row["form"] + " " * (_misc(row, "SpaceAfter") != "No") for row, _ in tokens)
    text = (rows.metadata.get("text") or spaced).strip()
    spans = [*_spans(text, tokens)]
    located = [*zip(words, spans, strict=True)]
    arcs = [(word.relation, *span, *spans[word.head - 1]) for word, span in located if word.head]
    parse = Parse(arcs, [(word.upos, *span) for word, span in located])
    left_out = Counter(LEFT_OUT[row["id"][1]] for row in rows if isinstance(row["id"], tuple))
    return Sentence(text, words, parse, rows.metadata, left_out)


def _misc(row: conllu.Token, name: str) -> str:
    return (row["misc"] or {}).get(name) or ""


def _tokens(rows: Iterable[conllu.Token], words: list[Word]) -> Iterator[tuple[conllu.Token, list[Word]]]:
    """The rows of tokens as written, with the words in each: `don't` has two."""
    covered = 0
    for row in rows:
        first, mark, last = row["id"] if isinstance(row["id"], tuple) else (row["id"], "", row["id"])
        if mark != "." and last > covered:
            covered = last
            yield row, words[first - 1 : last]


def _spans(text: str, tokens: Iterable[tuple[conllu.Token, list[Word]]]) -> Iterator[tuple[int, int]]:
    """The character span of each word in the text of its sentence.

    Each word of `don't` = do + n't has its part of the span; words spelled otherwise share the span of their token.
    """
    end = 0
    for row, words in tokens:
        token, forms = row["form"], [word.form for word in words]
        start = text.find(token, end)
        if start < 0:
            alike = " (in the characters that the token has)" * (appearance(token) in appearance(text[end:]))
            raise ValueError(f"{token!r} is not in its text: correct the # text line{alike}")
        end = start + len(token)
        if "".join(forms) == token:
            yield from pairwise(accumulate(map(len, forms), initial=start))
        else:
            yield from [(start, end)] * len(forms)
    if end and text[end:].strip():  # a block of comments alone has no word
        raise ValueError(f"the # text goes on after the last word with {text[end:]!r}: add the words")


def _check_tree(words: Sequence[Word]) -> None:
    for word in words:
        if word.head not in range(len(words) + 1):
            raise ValueError(
                f"the head {word.head} is no word of the sentence, which has {len(words)}: give 0 or one of them"
            )
    cyclic = unrooted(np.array([word.head for word in words], dtype=int))
    if len(cyclic):
        raise ValueError(f"the heads from word {cyclic[0] + 1} on form a cycle: correct the tree")


def unrooted(heads: Int[np.ndarray, " word"]) -> Int[np.ndarray, " unrooted"]:
    """The words (0-based) whose chain of heads does not end at ROOT (0): those in and below a cycle."""
    ancestor = np.concatenate([[0], heads])
    for _ in range(len(ancestor).bit_length()):  # each step doubles the height climbed
        ancestor = ancestor[ancestor]
    return np.flatnonzero(ancestor[1:])
