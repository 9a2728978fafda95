"""Links between frame elements and targets: their sentences, and attention to them by head beside its control."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import nltk.data
import numpy as np
import pandas as pd
from jaxtyping import Float
from nltk.corpus.reader.framenet import FramenetCorpusReader, FramenetError
from nltk.tokenize import NLTKWordTokenizer
from tqdm import tqdm

from analysis.encoders.layout import batches
from analysis.encoders.models import Encoder, kept_casts
from analysis.encoders.tap import read_layers
from analysis.errors import InputError
from analysis.files import expand
from analysis.papers.kovaleva2019.placements import (
    Placements,
    elsewhere,
    every_pair,
    largest,
    placements,
    zipped,
)
from analysis.scores.words import LIMIT, Words, split_words
from analysis.statistics.significance import adjust
from analysis.texts.examples import Example, Relation
from analysis.texts.glue import load_examples, sample

LONGEST = 12  # words in a sentence of FrameNet (Kovaleva 2019, 4.2)


@dataclass(frozen=True)
class Link:
    """A sentence as words, and the positions of the words of the target and of each frame element.

    `place` says where the sentence comes from.
    """

    place: str
    words: tuple[str, ...]
    target: tuple[int, ...]
    elements: tuple[tuple[int, ...], ...]


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

    All links, or a seeded sample of `n`. A folder may hold the file as links.jsonl. The file has `sentence` (words
    separated by blanks), `target` and `frame_elements` (words as in the sentence; their first occurrence counts).
    NLTK reads a folder of FrameNet, which is filtered as in the released code (see `framenet`). Without either,
    verbs with their subjects and objects in `n` bundled sentences replace the links: they are arguments of the
    grammar, not frames. Raises InputError with the number of a wrong row.
    """
    if source == BUNDLED:
        return bundled_links(200 if n is None else n, seed)
    path = expand(source)
    if (path / LINKS).is_file():
        path = path / LINKS
    return sample(framenet_links(path) if path.is_dir() else _file_links(path), n, seed)


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


FILES = ["frRelation.xml", r"frame/.*\.xml", r"fulltext/.*\.xml", r"lu/.*\.xml"]
ELEMENT = 3  # most words of a frame element
WINDOW = 2  # words on either side of the target; no element may occur there
INDEX = "luIndex.xml"
LINKS = "links.jsonl"


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


DIRECTIONS = ("element_to_target", "target_to_element")  # from the attending tokens to the tokens attended to
Scores = Float[np.ndarray, "placement layer head"]
BATCH = 500  # permutations at a time


def _first(pieces: Words, words: Sequence[int]) -> list[int]:
    """The first occurrence of each word piece of these words anywhere in the sentence (released code)."""
    ids = pieces.input_ids.tolist()
    return [ids.index(ids[place]) for place in _own(pieces, words)]


def _own(pieces: Words, words: Sequence[int]) -> list[int]:
    return np.flatnonzero(np.isin(pieces.word, np.array(words) + 1)).tolist()


# How tokens are found, and how they are paired: as in the released code, or every token with every other.
MODES: dict[str, tuple[Callable, Callable]] = {"faithful": (_first, zipped), "all_pairs": (_own, every_pair)}


def link_placements(link: Link, pieces: Words, mode: str, direction: str) -> Placements:
    """The token pairs (row attends to column) of a link, and of its other possible placements in the sentence."""
    find, pair = MODES[mode]
    elements, target = (find(pieces, words) for words in ([*chain(*link.elements)], link.target))
    rows, columns = pair(elements, target)
    if direction == DIRECTIONS[1]:
        rows, columns = columns, rows
    return placements(rows, columns, 1, len(pieces) - 1)


def link_scores(
    encoder: Encoder, links: Sequence[Link], progress: bool = True, budget: int = 2048
) -> tuple[dict[tuple[str, str], list[tuple[Scores, int]]], dict[str, int]]:
    """For every mode, direction and sentence: the scores of all placements, and the number of the link's own placement.

    The score is the largest attention among the pairs. The second result counts the sentences left out, by reason.
    Source: Kovaleva 2019, 4.2; the released code scores element_to_target, the text speaks of attention to the element.
    """
    split = split_words(encoder.tokenizer, [link.words for link in links], LIMIT)
    kept = [links[pieces.number] for pieces in split.kept]
    places = {
        key: [link_placements(link, pieces, *key) for link, pieces in zip(kept, split.kept, strict=True)]
        for key in product(MODES, DIRECTIONS)
    }
    scores = {
        key: [np.empty((len(each.rows), encoder.layers, encoder.heads)) for each in found]
        for key, found in places.items()
    }
    bar = tqdm(total=len(kept), desc="links", unit="sentence", disable=not progress)
    with kept_casts(encoder), bar:
        for indices in batches(split.kept, budget):

            def read(layer: int, attention, indices=indices) -> None:
                for index, maps in zip(indices, attention.cpu().numpy(), strict=True):
                    for key in scores:
                        scores[key][index][:, layer] = largest(maps, places[key][index])

            read_layers(encoder, [split.kept[index] for index in indices], read)
            bar.update(len(indices))
    found = {
        key: [(score, place.own) for score, place in zip(scores[key], places[key], strict=True)]
        for key in scores
    }
    return found, split.left_out


def link_table(
    scores: dict[tuple[str, str], list[tuple[Scores, int]]],
    state: str = "pretrained",
    permutations: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """The mean score of every head: state, mode, direction, layer, head, mean, n, control, p, p_by.

    n: sentences. control: the mean over the other placements of a link's pairs in its sentence. p: one-sided, by
    drawing one placement for every sentence; under the null, the link is like any other placement. p_by corrects it
    over the heads of a mode and direction.
    """
    parts = []
    for (mode, direction), sentences in scores.items():
        own = np.array([score[number] for score, number in sentences])
        control = np.array([elsewhere(score, number) for score, number in sentences])
        p = placement_test(sentences, permutations, seed)
        layers, heads = np.indices(p.shape)
        columns = {"mean": own.mean(axis=0), "control": control.mean(axis=0), "p": p}
        table = pd.DataFrame({"layer": layers.ravel(), "head": heads.ravel()})
        table = table.assign(**{name: values.ravel() for name, values in columns.items()})
        table = table.assign(
            state=state, mode=mode, direction=direction, n=len(own), p_by=adjust(p.ravel(), "fdr_by")
        )
        parts.append(table)
    columns = ["state", "mode", "direction", "layer", "head", "mean", "n", "control", "p", "p_by"]
    return pd.concat(parts, ignore_index=True)[columns]


def placement_test(
    sentences: Sequence[tuple[Scores, int]], permutations: int = 9999, seed: int = 0
) -> Float[np.ndarray, "layer head"]:
    """One-sided p of each head's mean score; under the null, every sentence's link may be any of its placements."""
    rng = np.random.default_rng(seed)
    observed = np.sum([score[own] for score, own in sentences], axis=0)
    extreme = np.zeros_like(observed)
    for start in range(0, permutations, BATCH):
        size = min(BATCH, permutations - start)
        drawn = np.zeros((size, *observed.shape))
        for score, _ in sentences:
            drawn += score[rng.integers(len(score), size=size)]
        extreme += (drawn >= observed - 1e-9).sum(axis=0)
    return (1 + extreme) / (1 + permutations)
