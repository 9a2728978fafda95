"""Two-paragraph inputs from running text, [CLS] paragraph-1 [SEP] paragraph-2 [SEP] (Clark 2019, section 3).

Consecutive paragraphs of a document are collected until they fill the budget of word pieces, divided in two at random,
and cut at either end if they are too long. The last passage of a document may be short. Departures: the authors' code
collects sentences, and where one sentence fills the budget it leaves the second text empty and skips the rest of the
document; words are cut as a whole, so that the texts keep their word pieces when they are tokenised again; passages are
sampled from all documents, not taken from the first ones.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from analysis.errors import InputError
from analysis.files import expand, read_text, suffix
from analysis.texts.examples import Example
from analysis.texts.glue import bundled_sample, bundled_text
from analysis.texts.syntax import CONLLU
from analysis.texts.treebank import paragraphs, read_sentences

if TYPE_CHECKING:  # importing it takes seconds and imports torch
    from transformers import PreTrainedTokenizerBase

TITLE = re.compile(r"= [^=].* =")
HEADING = re.compile(r"(= )+[^=].*( =)+")
SPACING = (  # of WikiText, and of the original text
    (re.compile(r" @([-,.])@ "), r"\1"),
    (re.compile(r'" ([^"]*) "'), r'"\1"'),
    (re.compile(r" ([,.;:!?%)\]])"), r"\1"),
    (re.compile(r"([(\[$£€]) "), r"\1"),
    (re.compile(r"(\w) '(s|t|re|ve|d|ll|m)\b"), r"\1'\2"),
)


class Paragraphs(NamedTuple):
    """Consecutive paragraphs: those of a document, or those that become a passage of this name."""

    name: str
    texts: list[str]


def load_passages(
    source: str | Path, n: int | None, seed: int, tokenizer: "PreTrainedTokenizerBase", max_tokens: int = 128
) -> list[Example]:
    """`n` passages of two texts each, in random order, from the documents of a source; all if there are no more.

    `source` is `bundled` (made-up documents), a CoNLL-U file (`# newdoc` and `# newpar`), or a text file in the form of
    WikiText. No passage has more than `max_tokens` tokens, special tokens included.
    """
    if not 8 <= max_tokens <= tokenizer.model_max_length:
        raise InputError(f"max_tokens is {max_tokens}: choose 8 to {tokenizer.model_max_length}")
    if n is not None and n < 1:
        raise InputError(f"n is {n}: give at least 1 passage, or null for all")
    budget = max_tokens - tokenizer.num_special_tokens_to_add(pair=True)
    groups = [
        chunk for document in documents(source, n, seed) for chunk in chunks(document, tokenizer, budget)
    ]
    Random(seed).shuffle(groups)
    passages = (passage(chunk, tokenizer, budget, Random(f"{chunk.name} {seed}")) for chunk in groups)
    examples = list(islice((example for example in passages if example is not None), n))
    if not examples:
        raise InputError(f"{source} holds no two paragraphs in a row: give longer documents")
    return examples


def documents(source: str | Path, n: int | None, seed: int) -> Iterable[Paragraphs]:
    """The documents of a source of `load_passages`, for `n` passages."""
    if source == "bundled":
        texts = bundled_paragraphs(n and min(n, len(documents_of("dev"))), "dev", seed)
        return [Paragraphs(*document) for document in texts.items()]
    path = expand(source)
    if not path.is_file():
        raise InputError(f"{source}: no such file: give bundled, a CoNLL-U file or a file of WikiText")
    return conllu_documents(path) if suffix(path) == CONLLU else wikitext_documents(path)


def bundled_documents(n: int | None, split: str, seed: int = 0) -> str:
    """CoNLL-U of `n` documents of 60 to 200 words, with gold trees (UD v2) and chains (`Entity`), no singletons."""
    return "".join(bundled_sample(documents_of(split), n, seed, f"{split} documents"))


def bundled_paragraphs(n: int | None, split: str, seed: int = 0) -> dict[str, list[str]]:
    """The paragraphs of `n` bundled documents, by the name of the document."""
    paragraphs = {}
    for document in bundled_sample(documents_of(split), n, seed, f"{split} documents"):
        start, *parts = document.split("# newpar\n")
        name = start.removeprefix("# newdoc id = ").strip()
        paragraphs[name] = [" ".join(re.findall("^# text = (.*)$", part, re.MULTILINE)) for part in parts]
    return paragraphs


def documents_of(split: str) -> list[str]:
    """CoNLL-U of each bundled document of a split."""
    start = "# newdoc id"
    return [start + part for part in bundled_text("documents", split, "conllu").split(start)[1:]]


def conllu_documents(path: Path) -> list[Paragraphs]:
    """The documents of a CoNLL-U file."""
    sentences = read_sentences(path)
    texts: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (name, paragraph), sentence in zip(paragraphs(sentences, path), sentences, strict=True):
        texts[name][paragraph].append(sentence.text)
    return [Paragraphs(name, [*map(" ".join, parts.values())]) for name, parts in texts.items()]


def chunks(document: Paragraphs, tokenizer: "PreTrainedTokenizerBase", budget: int) -> list[Paragraphs]:
    """Consecutive paragraphs of a document, at least two, that fill the budget; the last chunk may be shorter."""
    groups: list[list[str]] = [[]]
    length = 0
    for text in document.texts:
        pieces = len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
        if length >= budget and len(groups[-1]) > 1:
            groups.append([])
            length = 0
        if pieces:
            groups[-1].append(text)
            length += pieces
    return [
        Paragraphs(f"{document.name}-{number}", group)
        for number, group in enumerate(groups)
        if len(group) > 1
    ]


def passage(
    chunk: Paragraphs, tokenizer: "PreTrainedTokenizerBase", budget: int, rng: Random
) -> Example | None:
    """A chunk divided in two at random and cut to `budget` word pieces; None if no whole word of a text remains."""
    middle = rng.randint(1, len(chunk.texts) - 1)
    halves = " ".join(chunk.texts[:middle]), " ".join(chunk.texts[middle:])
    shortened = _shortened(halves, tokenizer, budget, rng)
    return Example(chunk.name, *shortened) if all(shortened) else None


def _shortened(
    texts: tuple[str, str], tokenizer: "PreTrainedTokenizerBase", budget: int, rng: Random
) -> tuple[str, str]:
    """The two texts, cut to `budget` word pieces in all.

    Step by step, the longer text (the second one if both are equal) loses its first or its last piece, and with it the
    rest of the word.
    """
    encodings = [
        tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        for text in texts
    ]
    windows = [[0, len(encoding["input_ids"])] for encoding in encodings]
    while sum(end - start for start, end in windows) > budget:
        lengths = [end - start for start, end in windows]
        longer = windows[0] if lengths[0] > lengths[1] else windows[1]
        if rng.random() < 0.5:
            longer[0] += 1
        else:
            longer[1] -= 1
    first, second = (
        _whole_words(text, encoding, *window)
        for text, encoding, window in zip(texts, encodings, windows, strict=True)
    )
    # With byte-level vocabularies, a word at the beginning of a text may take more pieces than elsewhere.
    pieces = sum(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in (first, second))
    return (first, second) if pieces <= budget else _shortened((first, second), tokenizer, budget - 1, rng)


def _whole_words(text: str, encoding, start: int, end: int) -> str:
    """The characters of the pieces `start` to `end` (exclusive), without words that are cut."""
    words, spans = encoding.word_ids(), encoding["offset_mapping"]
    while 0 < start < end and words[start] == words[start - 1]:
        start += 1
    while start < end < len(words) and words[end - 1] == words[end]:
        end -= 1
    return text[spans[start][0] : spans[end - 1][1]].strip() if start < end else ""


def wikitext_documents(path: Path) -> list[Paragraphs]:
    """The articles of a file in the form of WikiText: one paragraph a line, ` = Title = ` before each article.

    Headings are skipped, and WikiText's tokenisation is undone. A file without titles is one document.
    """
    articles: list[list[str]] = [[]]
    for line in map(str.strip, read_text(path).splitlines()):
        if TITLE.fullmatch(line):
            articles.append([])
        elif line and not HEADING.fullmatch(line):
            for spaced, original in SPACING:
                line = spaced.sub(original, line)
            articles[-1].append(line)
    return [Paragraphs(f"{path.stem}-{number}", texts) for number, texts in enumerate(articles) if texts]
