"""Two-paragraph inputs from running text, [CLS] paragraph-1 [SEP] paragraph-2 [SEP] (Clark 2019, section 3).

A document is a list of paragraphs, a paragraph a list of sentences. Consecutive units of a document, paragraphs or
sentences, are gathered until they fill the budget of word pieces, divided in two at random, and cut at either end
where they are too long. As in the released code, a first text may end in the middle of a paragraph and a passage at
the end of a document may be short. Departures: a passage has two texts (the released code leaves the second one
empty, and the rest of the document unread, where one sentence fills the budget); words are cut whole, so that the
texts keep their word pieces when they are tokenised again; passages are drawn from all documents, not the first.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from analysis.errors import InputError
from analysis.files import expand
from analysis.texts.examples import Example
from analysis.texts.syntax import parse_conllu, read_conllu, sentence_text

if TYPE_CHECKING:  # loading it takes seconds and brings torch, which texts do without
    from transformers import PreTrainedTokenizerBase

UNITS = ("paragraph", "sentence")
BUNDLED_SIZE = 200  # documents, where all are asked for
HUB_DATASET, HUB_DUMP = "wikimedia/wikipedia", "20231101.en"
HUB_BUFFER = 1000  # articles that a shuffled stream holds
TITLE = re.compile(r"= [^=].* =")
ENDED = re.compile(r"[.!?][\"')\]]*$")
HEADING = re.compile(r"(= )+[^=].*( =)+")
WRITTEN = (  # how WikiText spaces its text, and how it was written
    (re.compile(r" @([-,.])@ "), r"\1"),
    (re.compile(r'" ([^"]*) "'), r'"\1"'),
    (re.compile(r" ([,.;:!?%)\]])"), r"\1"),
    (re.compile(r"([(\[$£€]) "), r"\1"),
    (re.compile(r"(\w) '(s|t|re|ve|d|ll|m)\b"), r"\1'\2"),
)


class TextDocument(NamedTuple):
    """A document of running text: its name and its paragraphs, each a list of sentences.

    `divided` is false where nobody has told the sentences of a paragraph apart yet: it is then a single text.
    """

    name: str
    paragraphs: list[list[str]]
    divided: bool = True


class Chunk(NamedTuple):
    """Consecutive units of a document, which become a passage of its name."""

    name: str
    units: list[str]


def load_passages(
    source: str | Path,
    n: int | None,
    seed: int,
    tokenizer: "PreTrainedTokenizerBase",
    max_tokens: int = 128,
    unit: str = "paragraph",
    split: str = "dev",
) -> list[Example]:
    """`n` passages of two texts each in random order, drawn from the documents of a source; all if there are no more.

    `source` is `bundled` (generated documents of the `split`), `hub` (Wikipedia of the Hugging Face Hub, streamed,
    one passage an article), a CoNLL-U file (`# newdoc` and `# newpar`), or a text file in the form of WikiText. With
    `max_tokens` (special tokens included) and the same tokenizer, no passage is truncated. `unit` is what is
    gathered and divided: paragraphs, as the article says, or sentences, as the released code does.
    Raises InputError for sources that cannot be read or hold no passage, and values out of range.
    """
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}: choose {' or '.join(UNITS)}")
    if not 8 <= max_tokens <= tokenizer.model_max_length:
        raise InputError(f"max_tokens is {max_tokens}: choose 8 to {tokenizer.model_max_length}")
    if n is not None and n < 1:
        raise InputError(f"n is {n}: ask for at least 1 passage, or for all with null")
    budget = max_tokens - tokenizer.num_special_tokens_to_add(pair=True)
    found = (chunks(document, tokenizer, budget, unit) for document in documents(source, n, seed, split))
    rng = Random(seed)
    if source == "hub":
        drawn = (rng.choice(part) for part in found if part)
    else:
        drawn = [chunk for part in found for chunk in part]
        rng.shuffle(drawn)
    made = (passage(chunk, tokenizer, budget, Random(f"{chunk.name} {seed}")) for chunk in drawn)
    kept = list(islice((example for example in made if example is not None), n))
    if not kept:
        raise InputError(f"{source} holds no two {unit}s in a row: give longer documents, or another unit")
    return kept


def documents(source: str | Path, n: int | None, seed: int, split: str = "dev") -> Iterable[TextDocument]:
    """The documents of a source of `load_passages`; `n` is the number of passages wanted of them."""
    if source == "bundled":
        from analysis.texts.bundled.documents import (
            generate_documents,
        )  # here, since the other sources do not need the grammar

        text = generate_documents(BUNDLED_SIZE if n is None else n, split, seed)
        return conllu_documents(parse_conllu(text, "bundled documents"), "bundled")
    if source == "hub":
        if n is None:
            raise InputError("n is null: say how many passages to take of Wikipedia")
        return hub_documents(seed)
    path = expand(source)
    if not path.is_file():
        raise InputError(f"{source}: no such file: give bundled, hub, a CoNLL-U file or a file of WikiText")
    if path.suffix == ".conllu":
        return conllu_documents(read_conllu(path), path.stem)
    return wikitext_documents(path)


def chunks(
    document: TextDocument, tokenizer: "PreTrainedTokenizerBase", budget: int, unit: str
) -> list[Chunk]:
    """Consecutive units of a document, at least two, that fill the budget; fewer pieces at the document's end."""
    units = [" ".join(paragraph) for paragraph in document.paragraphs]
    if unit == "sentence":
        pieces = [piece for paragraph in document.paragraphs for piece in paragraph]
        units = pieces if document.divided else [one for piece in pieces for one in sentences(piece)]
    pieces_of = tokenizer(units, add_special_tokens=False, verbose=False)["input_ids"] if units else []
    found: list[list[str]] = [[]]
    length = 0
    for text, pieces in zip(units, pieces_of, strict=True):
        if length >= budget and len(found[-1]) > 1:
            found.append([])
            length = 0
        if pieces:
            found[-1].append(text)
            length += len(pieces)
    return [Chunk(f"{document.name}-{number}", units) for number, units in enumerate(found) if len(units) > 1]


def passage(chunk: Chunk, tokenizer: "PreTrainedTokenizerBase", budget: int, rng: Random) -> Example | None:
    """A chunk divided in two at random and cut to `budget` word pieces; None where no whole word is left of a text."""
    middle = rng.randint(1, len(chunk.units) - 1)
    texts = " ".join(chunk.units[:middle]), " ".join(chunk.units[middle:])
    shortened = _shortened(texts, tokenizer, budget, rng)
    return Example(chunk.name, *shortened) if all(shortened) else None


def _shortened(
    texts: tuple[str, str], tokenizer: "PreTrainedTokenizerBase", budget: int, rng: Random
) -> tuple[str, str]:
    """The two texts without the word pieces that are too many: one after another, the first or the last of the
    longer text (of the second one when they are equal) goes, and with it the rest of its word."""
    encodings = [
        tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        for text in texts
    ]
    windows = [[0, len(encoding["input_ids"])] for encoding in encodings]
    while sum(end - start for start, end in windows) > budget:
        first, second = (end - start for start, end in windows)
        longer = windows[0] if first > second else windows[1]
        if rng.random() < 0.5:
            longer[0] += 1
        else:
            longer[1] -= 1
    kept = [
        _whole_words(text, encoding, *window)
        for text, encoding, window in zip(texts, encodings, windows, strict=True)
    ]
    # Byte-level vocabularies spell the first word of a text otherwise: it may take more pieces than before.
    fits = sum(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in kept) <= budget
    return (kept[0], kept[1]) if fits else _shortened((kept[0], kept[1]), tokenizer, budget - 1, rng)


def _whole_words(text: str, encoding, start: int, end: int) -> str:
    """The characters of the pieces from `start` to before `end`, without words that lie there in part."""
    words, spans = encoding.word_ids(), encoding["offset_mapping"]
    while 0 < start < end and words[start] == words[start - 1]:
        start += 1
    while start < end < len(words) and words[end - 1] == words[end]:
        end -= 1
    return text[spans[start][0] : spans[end - 1][1]].strip() if start < end else ""


def wikitext_documents(path: Path) -> Iterator[TextDocument]:
    """The articles of a file in the form of WikiText: a paragraph a line, ` = Title = ` before each article.

    Headings are skipped; spaced punctuation and the escapes `@-@`, `@,@`, `@.@` are undone. A file without
    titles is one document. Raises InputError for a file that is not UTF-8.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not readable as UTF-8: save the file in UTF-8") from error
    name, paragraphs, number = path.stem, [], 0
    for line in map(str.strip, lines):
        if TITLE.fullmatch(line):
            if paragraphs:
                yield TextDocument(f"{name}-{number}", paragraphs, divided=False)
            paragraphs, number = [], number + 1
        elif line and not HEADING.fullmatch(line):
            paragraphs.append([as_written(line)])
    if paragraphs:
        yield TextDocument(f"{name}-{number}", paragraphs, divided=False)


def as_written(line: str) -> str:
    """A line of WikiText without the blanks and escapes that its tokenisation put in."""
    for spaced, written in WRITTEN:
        line = spaced.sub(written, line)
    return line


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph by their final punctuation (spaCy's rules, without a model)."""
    return [sentence.text.strip() for sentence in _sentencizer()(paragraph).sents if sentence.text.strip()]


@cache
def _sentencizer():
    import spacy  # here, since sources that divide their sentences do not need it

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    return pipeline


def conllu_documents(parsed: Iterable, name: str) -> Iterator[TextDocument]:
    """The documents of parsed CoNLL-U sentences; `# newpar` begins a paragraph, `# newdoc` a document.

    A file without `# newdoc` is one document, called `name`; `# newdoc id` names one.
    """
    paragraphs: list[list[str]] = []
    number = 0
    for sentence in parsed:
        begins = {key.split()[0] for key in sentence.metadata}
        if "newdoc" in begins:
            if paragraphs:
                yield TextDocument(name, paragraphs)
            number += 1
            name = sentence.metadata.get("newdoc id") or f"document-{number}"
            paragraphs = []
        if not paragraphs or "newpar" in begins:
            paragraphs.append([])
        paragraphs[-1].append(sentence_text(sentence))
    if paragraphs:
        yield TextDocument(name, paragraphs)


def hub_documents(seed: int) -> Iterator[TextDocument]:
    """Articles of Wikipedia in a seeded order, streamed from the Hugging Face Hub; nothing is kept on disk.

    A line that does not end as a sentence does is a heading or an item of a list and is skipped. Raises InputError
    where the Hub does not answer.
    """
    import datasets  # here, since importing it takes longer than reading a file

    try:
        stream = datasets.load_dataset(HUB_DATASET, HUB_DUMP, split="train", streaming=True)
        for article in stream.shuffle(seed=seed, buffer_size=HUB_BUFFER):
            lines = [line.strip() for line in article["text"].splitlines()]
            kept = [[line] for line in lines if ENDED.search(line)]
            yield TextDocument(f"wikipedia-{article['id']}", kept, divided=False)
    except Exception as error:  # the clients pass on what their HTTP library and their file readers raise
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"Hugging Face dataset {HUB_DATASET}, {HUB_DUMP}: {reason}: check the network or HF_ENDPOINT, or give "
            "a file of WikiText"
        ) from None
