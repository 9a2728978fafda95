"""Links between frame elements and targets: their sentences, and the attention of every head to them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import nltk.data
import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Float
from nltk.corpus.reader.framenet import FramenetCorpusReader, FramenetError
from nltk.tokenize import NLTKWordTokenizer
from tqdm import tqdm

from analysis.encoders.layout import batches
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.files import expand, read_text
from analysis.papers.kovaleva2019.reading import LinkScores, Placements, attention_of, largest, placements
from analysis.scores.words import Words, split_words
from analysis.statistics.layers import blocks_of
from analysis.statistics.significance import adjust
from analysis.texts.examples import Example, check_text, sample
from analysis.texts.glue import load_examples

BUNDLED = "bundled"
# Arguments of verbs, which replace frame elements in bundled sentences.
ARGUMENTS = ("nsubj", "nsubj:pass", "dobj", "iobj")
APART = 2  # least number of words between a verb and its argument
LINKS = "links.jsonl"
FILES = ["frRelation.xml", r"frame/.*\.xml", r"fulltext/.*\.xml", r"lu/.*\.xml"]
LONGEST = 12  # words in a sentence of FrameNet (Kovaleva 2019, 4.2)
ELEMENT = 3  # most words of a frame element
WINDOW = 2  # words on either side of the target; no element may occur there
FRAME_DIRECTIONS = (
    "element_to_target",
    "target_to_element",
)  # from the attending tokens to the attended ones
BATCH = 500  # permutations at a time
ByDirection = dict[str, list[LinkScores]]  # of the sentences


class Link(NamedTuple):
    """A sentence as words, and the positions of the words of the target and of its frame elements."""

    words: tuple[str, ...]
    target: tuple[int, ...]
    elements: tuple[int, ...]


def annotated(link: Link) -> str:
    """The sentence as Markdown: the target in bold, the frame elements in brackets."""
    marks = {word: f"**{link.words[word]}**" for word in link.target}
    marks |= {word: f"[{link.words[word]}]" for word in link.elements}
    return " ".join(marks.get(place, word) for place, word in enumerate(link.words))


def read_links(source: str | Path = BUNDLED, n: int | None = None, seed: int = 0) -> list[Link]:
    """Links from a file of the released sentences, from a folder of FrameNet 1.7, or bundled; all or a sample of `n`.

    The file, which may stand in the folder as links.jsonl, has one JSON object a line: `sentence` (words separated by
    spaces), `target` and `frame_elements` (words as in the sentence; their first occurrence counts). A folder of
    FrameNet is filtered as in the authors' code (see `exemplar_link`). Bundled links join verbs to their subjects and
    objects: they are arguments of the grammar, not of frames. Raises InputError with the number of a wrong line.
    """
    if source == BUNDLED:
        n = 200 if n is None else n
        links = map(argument_link, load_examples("toy-mrpc", split="dev", n=2 * n, seed=seed))
        return [link for link in links if link][:n]
    path = expand(source)
    if (path / LINKS).is_file():
        path = path / LINKS
    if path.is_dir():
        links = framenet_links(path)
    else:
        lines = enumerate(read_text(path).splitlines(), 1)
        links = [line_link(line, f"{path}, line {number}") for number, line in lines if line.strip()]
    if not links:
        raise InputError(f"{path} holds no link: give {LINKS} or the whole of FrameNet 1.7")
    return sample(links, n, seed)


def line_link(line: str, place: str) -> Link:
    """The link of one line; raises InputError with `place` if a part is missing or is not in its sentence."""
    try:
        row = json.loads(line)
        words = row["sentence"].split()
        target = first_occurrence(words, row["target"])
        elements = [position for part in row["frame_elements"] for position in first_occurrence(words, part)]
        if not elements:
            raise ValueError("no frame element")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{place}: {error!r}: give an object with a sentence, its target, and frame_elements as a list of texts"
        ) from None
    check_text(row["sentence"], place)
    return Link(tuple(words), target, tuple(elements))


def first_occurrence(words: Sequence[str], part: str) -> tuple[int, ...]:
    """The positions of the first occurrence of some words in a sentence; raises ValueError if there is none."""
    phrase = part.split()
    for start in range(len(words) - len(phrase) + 1):
        if phrase and words[start : start + len(phrase)] == phrase:
            return tuple(range(start, start + len(phrase)))
    raise ValueError(f"{part!r} is not in its sentence")


def argument_link(example: Example) -> Link | None:
    """The link of the verb with the most arguments far enough from it in the first text; None if no verb has one."""
    tags = [tag for tag in example.tags if tag.text == 0]
    places = {tag.word: number for number, tag in enumerate(tags)}
    arguments: dict[int, list[int]] = defaultdict(list)
    for relation in example.relations:
        if relation.text == 0 and relation.label in ARGUMENTS:
            dependent, head = places[relation.dependent], places[relation.head]
            if tags[head].upos == "VERB" and abs(dependent - head) >= APART:
                arguments[head].append(dependent)
    if not arguments:
        return None
    verb = max(arguments, key=lambda place: len(arguments[place]))
    words = tuple(example.text_a[start:end] for start, end in places)
    return Link(words, (verb,), tuple(arguments[verb]))


def framenet_links(folder: Path) -> list[Link]:
    """The links of the exemplar sentences of all lexical units; raises InputError if the folder is not FrameNet."""
    nltk.data.path.append(str(folder))  # NLTK reads only files in the folders where it searches for data
    try:
        units = FramenetCorpusReader(str(folder), FILES).lus()
        bar = tqdm(units, "FrameNet", unit="lexical unit", leave=None)
        links = [exemplar_link(exemplar) for unit in bar for exemplar in unit.exemplars]
    except (FramenetError, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder} is not readable as FrameNet 1.7: {reason}: unpack it again") from error
    finally:
        nltk.data.path.remove(str(folder))
    return [link for link in links if link]


def exemplar_link(exemplar: Any) -> Link | None:
    """The link of one exemplar of NLTK's reader; None if the filter of the authors' code drops it.

    A sentence stays if it has at most 12 words and one target span, if its frame elements have at most 3 words each,
    and if none of their words is within 2 words of the first occurrence of the target's words. Links go to the elements
    in the frame's core sets; a frame without core sets gives none. Departure: NLTK's word tokenizer treats the whole
    text as one sentence, since its sentence splitter needs separate data.
    """
    spans = [*NLTKWordTokenizer().span_tokenize(exemplar.text)]
    if len(spans) > LONGEST or len(exemplar.get("Target", ())) != 1 or "FE" not in exemplar:
        return None
    words = tuple(exemplar.text[start:end] for start, end in spans)
    target = covered(spans, exemplar.Target[0])
    elements = {name: covered(spans, (start, end)) for start, end, name in exemplar.FE[0]}
    if not target or any(not 0 < len(places) <= ELEMENT for places in elements.values()):
        return None
    start = min(words.index(words[place]) for place in target)
    window = {*words[max(0, start - WINDOW) : start + len(target) + WINDOW]}
    if any(words[place] in window for places in elements.values() for place in places):
        return None
    core = {element.name for core_set in exemplar.frame.FEcoreSets for element in core_set}
    core_places = [place for name, places in elements.items() if name in core for place in places]
    return Link(words, target, tuple(core_places)) if core_places else None


def covered(words: Sequence[tuple[int, int]], span: Sequence[int]) -> tuple[int, ...]:
    """The words that overlap a span of characters."""
    return tuple(place for place, (start, end) in enumerate(words) if start < span[1] and end > span[0])


def link_placements(link: Link, pieces: Words) -> Placements:
    """The pairs of every piece of an element and every piece of the target, and their other possible placements."""
    places = (np.isin(pieces.word, np.array(words) + 1) for words in (link.elements, link.target))
    return placements([*product(*(np.flatnonzero(marks).tolist() for marks in places))], 1, len(pieces) - 1)


def link_scores(encoder: Encoder, links: Sequence[Link]) -> ByDirection:
    """The scores of all placements of every link, by direction; sentences with too many pieces are left out.

    The score is the largest attention among the pairs. Source: Kovaleva 2019, 4.2; the authors' code scores
    element_to_target, the text speaks of attention to the element. Departure: the authors' code pairs the pieces one by
    one, at their first occurrence in the sentence.
    """
    sentences = split_words(encoder.tokenizer, [link.words for link in links]).kept
    scores: ByDirection = {direction: [] for direction in FRAME_DIRECTIONS}
    order: list[int] = []
    with tqdm(total=len(sentences), desc="links", unit="sentence") as bar:
        for indices in batches(sentences):
            layers = attention_of(encoder, [sentences[index] for index in indices])
            for index, maps in zip(indices, torch.stack(layers, dim=1).cpu().numpy(), strict=True):
                places = link_placements(links[sentences[index].number], sentences[index])
                for direction, attention in zip(FRAME_DIRECTIONS, (maps, maps.swapaxes(-2, -1)), strict=True):
                    scores[direction].append(largest(attention, places))
            order += indices
            bar.update(len(indices))
    return {name: [by_batch[place] for place in np.argsort(order)] for name, by_batch in scores.items()}


def link_and_control(sentences: Sequence[LinkScores]) -> xr.Dataset:
    """Attention of every head to the link (mean) and to its other placements (control) in each sentence."""
    axes = ("sentence", "layer", "head")
    means = np.stack([sentence.link for sentence in sentences])
    controls = np.stack([sentence.elsewhere for sentence in sentences])
    return xr.Dataset({"mean": (axes, means), "control": (axes, controls)})


def link_table(scores: ByDirection, permutations: int = 9999, seed: int = 0) -> pd.DataFrame:
    """The table `kovaleva_links` (docs/tables.yaml): the mean score of every head over n sentences.

    control: the mean over the other placements of a link's pairs in its sentence. p: that of `placement_test`; p_by
    corrects it over the heads of a direction.
    """
    parts = []
    for direction, sentences in scores.items():
        means = link_and_control(sentences).mean("sentence")
        means["p"] = ("layer", "head"), placement_test(sentences, permutations, seed)
        table = means.to_dataframe().reset_index().assign(n=len(sentences), direction=direction)
        parts.append(table.assign(p_by=adjust(table["p"], "fdr_by")))
    return pd.concat(parts, ignore_index=True)["direction layer head mean n control p p_by".split()]


def link_blocks(scores: ByDirection) -> pd.DataFrame:
    """The table `kovaleva_link_blocks`: mean score and control of every head in ten blocks of sentences."""
    parts = []
    for direction, sentences in scores.items():
        by_sentence = link_and_control(sentences)
        blocks = blocks_of(by_sentence.sizes["sentence"])
        by_block = by_sentence.assign_coords(block=("sentence", blocks)).groupby("block").mean()
        parts.append(by_block.to_dataframe().reset_index().assign(direction=direction))
    return pd.concat(parts, ignore_index=True)[["direction", "block", "layer", "head", "mean", "control"]]


def placement_test(
    sentences: Sequence[LinkScores], permutations: int = 9999, seed: int = 0
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
