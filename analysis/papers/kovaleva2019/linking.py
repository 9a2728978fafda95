"""Attention between frame elements and targets, by head, compared with pairs at the same distance."""

from collections.abc import Callable, Sequence
from itertools import chain, product

import numpy as np
import pandas as pd
from jaxtyping import Float
from tqdm import tqdm

from analysis.encoders.layout import batches
from analysis.encoders.models import Encoder, kept_casts
from analysis.encoders.tap import read_layers
from analysis.papers.kovaleva2019.link import Link
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
