"""Semantic links in sentences: the word that evokes a frame, and its frame elements."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from analysis.errors import InputError
from analysis.files import expand
from analysis.papers.kovaleva2019.framenet import framenet_links
from analysis.papers.kovaleva2019.link import Link
from analysis.texts.examples import Example, Relation
from analysis.texts.glue import load_examples, sample

BUNDLED = "bundled"
ARGUMENTS = (
    "nsubj",
    "nsubj:pass",
    "dobj",
    "iobj",
)  # of verbs; they replace frame elements in bundled sentences
APART = 2  # least number of words between target and element


def read_links(source: str | Path = BUNDLED, n: int | None = None, seed: int = 0) -> list[Link]:
    """Links from a file of the released sentences (JSON, one object per line), a folder of FrameNet 1.7, or bundled.

    All links, or a seeded sample of `n`. The file has `sentence` (words separated by blanks), `target` and
    `frame_elements` (words as in the sentence; their first occurrence counts). NLTK reads a folder of FrameNet, which
    is filtered as in the released code (see `framenet`). Without either, verbs with their subjects and objects in `n`
    bundled sentences replace the links: they are arguments of the grammar, not frames. Raises InputError with the
    number of a wrong row.
    """
    if source == BUNDLED:
        return bundled_links(200 if n is None else n, seed)
    path = expand(source)
    if path.is_dir():
        return sample(framenet_links(path), n, seed)
    return sample(_file_links(path), n, seed)


def _file_links(path: Path) -> list[Link]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read as text: {error}: give links.jsonl or a folder of FrameNet"
        ) from error
    links = [row_link(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not links:
        raise InputError(f"{path} is empty: give a file with rows, or remove it")
    return links


def row_link(line: str, place: str) -> Link:
    """The link of one row; raises InputError with `place` if a part is missing or is not in its sentence."""
    try:
        row = json.loads(line)
        words, target, given = tuple(row["sentence"].split()), row["target"].split(), row["frame_elements"]
        elements = [element.split() for element in given]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"{place}: no object with the texts sentence, target and frame_elements: correct the row"
        ) from None
    if not isinstance(given, list) or not all((target, *elements)):
        raise InputError(
            f"{place}: give a target with words, and frame_elements as a list of texts with words"
        )
    if not elements:
        raise InputError(f"{place}: no frame element: give one or remove the row")
    found = [_occurrence(words, part, place) for part in (target, *elements)]
    return Link(place, words, found[0], tuple(found[1:]))


def _occurrence(words: Sequence[str], part: Sequence[str], place: str) -> tuple[int, ...]:
    """The positions of the first occurrence of some words in a sentence."""
    for start in range(len(words) - len(part) + 1):
        if part and [*words[start : start + len(part)]] == [*part]:
            return tuple(range(start, start + len(part)))
    raise InputError(f"{place}: {' '.join(part)!r} is not in its sentence: copy it from the sentence")


def bundled_links(n: int, seed: int = 0) -> list[Link]:
    """Verbs with their subjects and objects in `n` bundled sentences, if they are far enough apart."""
    found: list[Link] = []
    for example in load_examples("mrpc", BUNDLED, "dev", 2 * n, seed):
        found += _argument_links(example)
    return found[:n]


def _argument_links(example: Example) -> Iterable[Link]:
    """A link for the verb with the most arguments in the first text."""
    spans = [tag.word for tag in example.tags or () if tag.text == 0]
    places = {span: number for number, span in enumerate(spans)}
    verbs = {tag.word for tag in example.tags or () if tag.text == 0 and tag.upos == "VERB"}
    arguments: dict[tuple[int, int], list[int]] = {}
    for relation in example.relations or ():
        if _is_argument(relation) and relation.head in verbs:
            distance = abs(places[relation.dependent] - places[relation.head])
            if distance >= APART:
                arguments.setdefault(relation.head, []).append(places[relation.dependent])
    if arguments:
        verb = max(arguments, key=lambda span: len(arguments[span]))
        words = tuple(example.text_a[start:end] for start, end in spans)
        yield Link(example.id, words, (places[verb],), tuple((place,) for place in arguments[verb]))


def _is_argument(relation: Relation) -> bool:
    return relation.text == 0 and relation.label in ARGUMENTS
