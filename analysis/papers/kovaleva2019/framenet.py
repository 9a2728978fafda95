"""Links of FrameNet 1.7, read by NLTK and filtered as Kovaleva et al. did."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nltk.data
from nltk.corpus.reader.framenet import FramenetCorpusReader, FramenetError
from nltk.tokenize import NLTKWordTokenizer
from tqdm import tqdm

from analysis.errors import InputError
from analysis.papers.kovaleva2019.link import LONGEST, Link

FILES = ["frRelation.xml", r"frame/.*\.xml", r"fulltext/.*\.xml", r"lu/.*\.xml"]
ELEMENT = 3  # most words of a frame element
WINDOW = 2  # words on either side of the target; no element may occur there
INDEX = "luIndex.xml"


def framenet_links(folder: Path) -> list[Link]:
    """The links of the exemplar sentences of all lexical units, filtered as in the released code.

    A sentence is kept if it has at most 12 words and one target span, if its frame elements have at most 3 words each,
    and if none of their words is within 2 words of the target (of the first occurrence of its words). Links go to the
    elements of the frame's core sets; a frame without core sets gives none. Departure: NLTK's word tokenizer treats the
    whole text as one sentence, since its sentence splitter needs separate data. Raises InputError for a folder that is
    not FrameNet.
    """
    if not (folder / INDEX).is_file():
        raise InputError(f"{folder} holds no {INDEX}: name the folder of FrameNet 1.7")
    try:
        with _allowed(folder):
            links = [*_links(FramenetCorpusReader(str(folder), FILES))]
    except (FramenetError, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder} is not readable as FrameNet 1.7: {reason}: unpack it again") from error
    if not links:
        raise InputError(f"{folder} has no sentence that passes the filter: name the whole of FrameNet 1.7")
    return links


@contextmanager
def _allowed(folder: Path) -> Iterator[None]:
    """Within the context, NLTK reads only files in the folders where it searches for data."""
    nltk.data.path.append(str(folder))
    try:
        yield
    finally:
        nltk.data.path.remove(str(folder))


def _links(reader: FramenetCorpusReader) -> Iterator[Link]:
    for unit in tqdm(reader.lus(), "FrameNet", unit="lexical unit", leave=None):
        for exemplar in unit.exemplars:
            if (link := exemplar_link(exemplar)) is not None:
                yield link


def exemplar_link(exemplar: Any) -> Link | None:
    """The link of one exemplar of NLTK's reader; None if the filter drops it."""
    spans = [*NLTKWordTokenizer().span_tokenize(exemplar.text)]
    if len(spans) > LONGEST or len(exemplar.get("Target", ())) != 1 or "FE" not in exemplar:
        return None
    target = _covered(spans, exemplar.Target[0])
    elements = {name: _covered(spans, (start, end)) for start, end, name in exemplar.FE[0]}
    if not target or any(not 0 < len(places) <= ELEMENT for places in elements.values()):
        return None
    words = tuple(exemplar.text[start:end] for start, end in spans)
    if _near(words, target, [place for places in elements.values() for place in places]):
        return None
    core = {element.name for together in exemplar.frame.FEcoreSets for element in together}
    linked = tuple(places for name, places in elements.items() if name in core)
    return Link(f"FrameNet, sentence {exemplar.ID}", words, target, linked) if linked else None


def _covered(spans: Sequence[tuple[int, int]], wanted: Sequence[int]) -> tuple[int, ...]:
    """The words that overlap a span of characters."""
    return tuple(place for place, (start, end) in enumerate(spans) if start < wanted[1] and end > wanted[0])


def _near(words: Sequence[str], target: Sequence[int], elements: Sequence[int]) -> bool:
    """Whether a word of an element is in the window around the first occurrence of the target's words."""
    first = min(words.index(words[place]) for place in target)
    window = {*words[max(0, first - WINDOW) : first + len(target) + WINDOW]}
    return not window.isdisjoint(words[place] for place in elements)
