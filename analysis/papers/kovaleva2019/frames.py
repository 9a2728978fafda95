"""Links between frame elements and targets: their sentences, and the attention of every head to them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import nltk.data
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from nltk.corpus.reader.framenet import FramenetCorpusReader, FramenetError
from nltk.tokenize import NLTKWordTokenizer
from tqdm import tqdm

from analysis.encoders.layout import batches
from analysis.encoders.models import Encoder, cached_casts
from analysis.encoders.tap import read_layers
from analysis.errors import InputError
from analysis.files import expand, read_text
from analysis.papers.kovaleva2019.placements import Placements, Scores, largest, placements
from analysis.scores.words import LIMIT, Words, split_words
from analysis.statistics.layers import blocks_of
from analysis.statistics.significance import adjust
from analysis.texts.examples import Example, check_text, sample
from analysis.texts.glue import load_examples

BUNDLED = "bundled"
ARGUMENTS = (
    "nsubj",
    "nsubj:pass",
    "dobj",
    "iobj",
)  # of verbs; in bundled sentences they replace frame elements
APART = 2  # least number of words between target and element
LINKS = "links.jsonl"
INDEX = "luIndex.xml"
FILES = ["frRelation.xml", r"frame/.*\.xml", r"fulltext/.*\.xml", r"lu/.*\.xml"]
LONGEST = 12  # words in a sentence of FrameNet (Kovaleva 2019, 4.2)
ELEMENT = 3  # most words of a frame element
WINDOW = 2  # words on either side of the target; no element may occur there
MODES = ("faithful", "all_pairs")  # pairs as in the released code, or every token with every other
DIRECTIONS = ("element_to_target", "target_to_element")  # from the attending tokens to the tokens attended to
BATCH = 500  # permutations at a time
ByMode = dict[tuple[str, str], list[Scores]]  # the sentences of each mode and direction


@dataclass(frozen=True)
class Link:
    """A sentence as words, and the positions of the words of the target and of each frame element.

    `place` says where the sentence comes from.
    """

    place: str
    words: tuple[str, ...]
    target: tuple[int, ...]
    elements: tuple[tuple[int, ...], ...]


def read_links(source: str | Path = BUNDLED, n: int | None = None, seed: int = 0) -> list[Link]:
    """Links from a file of the released sentences (JSON, one object per line), a folder of FrameNet 1.7, or bundled.

    All links, or a seeded sample of `n`. A folder may hold the file as links.jsonl. The file has `sentence` (words
    separated by spaces), `target` and `frame_elements` (words as in the sentence; their first occurrence counts).
    A folder of FrameNet is filtered as in the released code (see `framenet_links`). Without either, verbs with their
    subjects and objects in `n` bundled sentences replace the links: they are arguments of the grammar, not frames.
    Raises InputError with the number of a wrong row.
    """
    if source == BUNDLED:
        return bundled_links(200 if n is None else n, seed)
    path = expand(source)
    if (path / LINKS).is_file():
        path = path / LINKS
    return sample(framenet_links(path) if path.is_dir() else file_links(path), n, seed)


def file_links(path: Path) -> list[Link]:
    """The links of a file; raises InputError for a missing or empty one."""
    if not path.is_file():
        raise InputError(f"{path} is not there: give {LINKS} or a folder of FrameNet")
    lines = enumerate(read_text(path).splitlines(), 1)
    links = [row_link(line, f"{path}, line {number}") for number, line in lines if line.strip()]
    if not links:
        raise InputError(f"{path} is empty: give a file with rows, or remove it")
    return links


def row_link(line: str, place: str) -> Link:
    """The link of one row; raises InputError with `place` if a part is missing or is not in its sentence."""
    try:
        row = json.loads(line)
        words, parts = row["sentence"].split(), [row["target"]] + row["frame_elements"]
        target, *elements = (_occurrence(words, part.split()) for part in parts)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{place}: {error!r}: give an object with a sentence, its target, and frame_elements as a list of texts"
        ) from None
    check_text(row["sentence"], place)
    if not elements:
        raise InputError(f"{place}: no frame element: give one or remove the row")
    return Link(place, tuple(words), target, tuple(elements))


def _occurrence(words: Sequence[str], part: Sequence[str]) -> tuple[int, ...]:
    """The positions of the first occurrence of some words in a sentence; raises ValueError if there is none."""
    for start in range(len(words) - len(part) + 1):
        if part and words[start : start + len(part)] == part:
            return tuple(range(start, start + len(part)))
    raise ValueError(f"{' '.join(part)!r} is not in its sentence")


def bundled_links(n: int, seed: int = 0) -> list[Link]:
    """Verbs with their subjects and objects in `n` bundled sentences, if they are far enough apart."""
    links = map(_argument_link, load_examples("toy-mrpc", split="dev", n=2 * n, seed=seed))
    return [link for link in links if link][:n]


def _argument_link(example: Example) -> Link | None:
    """The link of the verb with the most arguments in the first text; None if no verb has one."""
    tags = [tag for tag in example.tags if tag.text == 0]
    places = {tag.word: number for number, tag in enumerate(tags)}
    verbs = {tag.word for tag in tags if tag.upos == "VERB"}
    arguments: dict[int, list[int]] = defaultdict(list)
    for relation in example.relations:
        if relation.text == 0 and relation.label in ARGUMENTS and relation.head in verbs:
            dependent, head = places[relation.dependent], places[relation.head]
            if abs(dependent - head) >= APART:
                arguments[head].append(dependent)
    if not arguments:
        return None
    verb = max(arguments, key=lambda place: len(arguments[place]))
    words = tuple(example.text_a[start:end] for start, end in places)
    return Link(example.id, words, (verb,), tuple((place,) for place in arguments[verb]))


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
    nltk.data.path.append(str(folder))  # NLTK reads only files in the folders where it searches for data
    try:
        units = tqdm(
            FramenetCorpusReader(str(folder), FILES).lus(), "FrameNet", unit="lexical unit", leave=None
        )
        links = [exemplar_link(exemplar) for unit in units for exemplar in unit.exemplars]
    except (FramenetError, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder} is not readable as FrameNet 1.7: {reason}: unpack it again") from error
    finally:
        nltk.data.path.remove(str(folder))
    if not any(links):
        raise InputError(f"{folder} has no sentence that passes the filter: name the whole of FrameNet 1.7")
    return [link for link in links if link]


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


def _covered(words: Sequence[tuple[int, int]], span: Sequence[int]) -> tuple[int, ...]:
    """The words that overlap a span of characters."""
    return tuple(place for place, (start, end) in enumerate(words) if start < span[1] and end > span[0])


def _near(words: Sequence[str], target: Sequence[int], elements: Sequence[int]) -> bool:
    """Whether a word of an element is in the window around the first occurrence of the target's words."""
    first = min(words.index(words[place]) for place in target)
    window = {*words[max(0, first - WINDOW) : first + len(target) + WINDOW]}
    return not window.isdisjoint(words[place] for place in elements)


def link_placements(link: Link, pieces: Words, mode: str) -> Placements:
    """The token pairs (element, target) of a link, and of its other possible placements in the sentence."""
    elements, target = (
        np.flatnonzero(np.isin(pieces.word, np.array(words) + 1)).tolist()
        for words in ([*chain(*link.elements)], link.target)
    )
    if mode == "all_pairs":
        pairs = [*product(elements, target)]
    else:  # the first occurrence of each piece anywhere in the sentence, paired one by one
        ids = pieces.input_ids.tolist()
        first = [ids.index(piece) for piece in ids]
        pairs = [(first[element], first[other]) for element, other in zip(elements, target, strict=False)]
    return placements(pairs, 1, len(pieces) - 1)


def link_scores(encoder: Encoder, links: Sequence[Link]) -> tuple[ByMode, dict[str, int]]:
    """The scores of all placements of every link, by mode and direction; and the sentences left out, by reason.

    The score is the largest attention among the pairs. Source: Kovaleva 2019, 4.2; the released code scores
    element_to_target, the text speaks of attention to the element.
    """
    sentences, left_out = split_words(encoder.tokenizer, [link.words for link in links], LIMIT)
    places = {
        mode: [link_placements(links[pieces.number], pieces, mode) for pieces in sentences] for mode in MODES
    }
    scores: ByMode = {
        (mode, direction): [
            Scores(np.empty((len(place.rows), encoder.layers, encoder.heads)), place.original)
            for place in places[mode]
        ]
        for mode, direction in product(MODES, DIRECTIONS)
    }
    with cached_casts(encoder), tqdm(total=len(sentences), desc="links", unit="sentence") as bar:
        for indices in batches(sentences):

            def read(layer: int, attention, indices=indices) -> None:
                for index, maps in zip(indices, attention.cpu().numpy(), strict=True):
                    attending = dict(zip(DIRECTIONS, (maps, maps.swapaxes(1, 2)), strict=True))
                    for (mode, direction), by_sentence in scores.items():
                        values = largest(attending[direction], places[mode][index]).values
                        by_sentence[index].values[:, layer] = values

            read_layers(encoder, [sentences[index] for index in indices], read)
            bar.update(len(indices))
    return scores, left_out


def link_table(scores: ByMode, permutations: int = 9999, seed: int = 0) -> pd.DataFrame:
    """The mean score of every head: state, mode, direction, layer, head, mean, n, control, p, p_by.

    n: sentences. control: the mean over the other placements of a link's pairs in its sentence. p: one-sided, by
    drawing one placement for every sentence; under the null, the link is like any other placement. p_by corrects it
    over the heads of a mode and direction.
    """
    parts = []
    for (mode, direction), sentences in scores.items():
        means = {
            "mean": np.mean([sentence.link for sentence in sentences], axis=0),
            "control": np.mean([sentence.elsewhere for sentence in sentences], axis=0),
            "p": placement_test(sentences, permutations, seed),
        }
        table = xr.Dataset({name: (("layer", "head"), values) for name, values in means.items()})
        table = table.to_dataframe().reset_index().assign(n=len(sentences), mode=mode, direction=direction)
        parts.append(table.assign(p_by=adjust(table["p"], "fdr_by")))
    order = ["state", "mode", "direction", "layer", "head", "mean", "n", "control", "p", "p_by"]
    return pd.concat(parts, ignore_index=True).assign(state="pretrained")[order]


def link_blocks(scores: ByMode, mode: str = "all_pairs") -> pd.DataFrame:
    """Mean score and control of every head in ten blocks of sentences: direction, block, layer, head, mean, control."""
    parts = []
    for direction in DIRECTIONS:
        if sentences := scores.get((mode, direction)):
            axes = ("sentence", "layer", "head")
            columns = {
                "mean": (axes, np.stack([sentence.link for sentence in sentences])),
                "control": (axes, np.stack([sentence.elsewhere for sentence in sentences])),
            }
            by_sentence = xr.Dataset(columns, {"block": ("sentence", blocks_of(len(sentences)))})
            table = by_sentence.groupby("block").mean().to_dataframe().reset_index()
            parts.append(table.assign(direction=direction))
    return pd.concat(parts, ignore_index=True)[["direction", "block", "layer", "head", "mean", "control"]]


def placement_test(
    sentences: Sequence[Scores], permutations: int = 9999, seed: int = 0
) -> Float[np.ndarray, "layer head"]:
    """One-sided p of each head's mean score; under the null, every sentence's link may be any of its placements."""
    rng = np.random.default_rng(seed)
    observed = np.sum([sentence.link for sentence in sentences], axis=0)
    extreme = np.zeros_like(observed)
    for start in range(0, permutations, BATCH):
        size = min(BATCH, permutations - start)
        sums = np.zeros((size, *observed.shape))
        for sentence in sentences:
            sums += sentence.values[rng.integers(len(sentence.values), size=size)]
        extreme += (sums >= observed - 1e-9).sum(axis=0)
    return (1 + extreme) / (1 + permutations)
