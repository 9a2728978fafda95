"""Heads as parsers: planted heads, directions, a naive oracle of the counts, and held-out choice."""

import numpy as np
import pandas as pd
import pytest
import torch
from treebanks import write

from analysis.encoders.models import load_encoder
from analysis.errors import InputError
from analysis.papers.clark2019.attachment import (
    best_heads,
    cross_fitted,
    dependency_table,
)
from analysis.scores.attachment import DIRECTIONS, Attachment, _attended, attach, halves, right
from analysis.scores.words import split_words, word_maps
from analysis.texts.bundled import bundled_documents
from analysis.texts.dependencies import arcs, fixed_offset
from analysis.texts.treebank import read_treebank

LAYERS, HEADS = 2, 3


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> pd.DataFrame:
    """Sentences of the bundled documents."""
    path = write(tmp_path_factory.mktemp("trees"), bundled_documents(3, "train", 0))
    return read_treebank(path).words


def planted(words: pd.DataFrame, layer: int, direction: int, head: int) -> Attachment:
    """Random predictions, but for one head that is always right."""
    rng = np.random.default_rng(0)
    predicted = rng.integers(1, 4, (len(words), LAYERS, 2, HEADS)).astype(np.int16)
    predicted[:, layer, direction, head] = words["head"]
    return Attachment(words, predicted, {})


def own_arcs(words: pd.DataFrame) -> pd.DataFrame:
    """Arcs from words to their own heads; arcs of rebuilt prepositions and of possessive marks are different."""
    scored = arcs(words, possessive=False)
    return scored[~scored["relation"].isin(["prep", "pobj"])].reset_index(drop=True)


def test_a_planted_head_is_found_and_always_right(words):
    attached = planted(words, 1, 0, 2)
    scored = own_arcs(words)
    table = dependency_table(attached, scored, minimum=20, resamples=99, permutations=199)
    assert (table[["layer", "head", "accuracy"]] == [1, 2, 1]).all(axis=None)
    assert (table["direction"] == DIRECTIONS[0]).all()
    assert table["low"].isna().all()
    assert (best_heads(attached, scored, 20)["accuracy"] == 1).all()


def test_a_map_from_each_word_to_the_next_is_offset_one(words):
    """The last word of a sentence attends to nothing, so that it takes the first."""
    sentence = words[words["sentence"] == 0]
    maps = torch.diag(torch.ones(len(sentence) - 1), 1)[None, None]
    found = (_attended(maps)[0, 0, 0] + 1).numpy()
    assert found[:-1].tolist() == fixed_offset(sentence, 1)[:-1].tolist()
    assert found[-1] == 1


def test_ties_go_to_the_first_word_and_no_word_takes_itself():
    found = _attended(torch.eye(4)[None, None] + 1)
    assert found[0, 0, 0].tolist() == [1, 0, 0, 0]
    assert found[0, 1, 0].tolist() == [1, 0, 0, 0]


def test_predictions_against_one_sentence_at_a_time(encoder, words):
    some = words[words["sentence"] < 12]
    attached = attach(encoder, some, budget=200, progress=False)
    assert attached.words.equals(some)
    for number, sentence in some.groupby("sentence"):
        [pieces] = split_words(encoder.tokenizer, [sentence["form"].tolist()]).kept
        maps = word_maps(encoder, pieces)[:, :, 1:-1, 1:-1]
        for direction, each in enumerate((maps, maps.swapaxes(2, 3))):
            without = np.where(np.eye(len(sentence)), 0, each)
            found = attached.predicted[some["sentence"] == number, :, direction]
            assert (found == np.moveaxis(without.argmax(-1) + 1, -1, 0)).all()


def test_counts_against_a_loop(words):
    attached = planted(words, 0, 1, 1)
    scored = arcs(words)
    correct = right(attached, scored)
    by_place = {place: row for row, place in enumerate(zip(words["sentence"], words["word"], strict=True))}
    for number in range(0, len(scored), 37):
        arc = scored.iloc[number]
        assert (
            correct[number] == (attached.predicted[by_place[arc.sentence, arc.word]] == arc["head"])
        ).all()


def test_the_scored_half_has_no_say_in_the_choice(words):
    """A head that is right only in one half: it is chosen there, and its answers in the other half count."""
    scored = arcs(words)
    chooses = halves(scored["sentence"], 0)
    attached = planted(words, 1, 0, 2)
    held_out = ~words["sentence"].isin(scored["sentence"][chooses]).to_numpy()
    attached.predicted[held_out] = -2  # no head is right there, so the first head is chosen
    table = dependency_table(attached, scored, minimum=20, resamples=99, permutations=99).set_index(
        "relation"
    )
    counts = scored["relation"].value_counts()
    assert (table["n"] == counts[table.index]).all()
    first = right(attached, scored)[:, 0, 0, 0] & chooses
    for relation, accuracy in table["accuracy"].items():
        assert accuracy == pytest.approx(first[scored["relation"] == relation].mean())
    assert table.loc["det", ["layer", "head"]].tolist() == [1, 2]  # the best of all sentences


def test_cross_fitting_against_a_loop():
    rng = np.random.default_rng(1)
    correct = rng.random((60, 2, 3, 2)) < 0.4
    chooses = rng.random(60) < 0.5
    found = cross_fitted(correct, chooses)
    for number in range(60):
        other = correct[chooses != chooses[number]].mean(axis=0)
        best = max(np.ndindex(*other.shape), key=lambda place: (other[place], [-each for each in place]))
        assert found[number] == correct[(number, *best)]


def test_p_are_adjusted_over_relations(words):
    table = dependency_table(planted(words, 0, 0, 0), arcs(words), minimum=20, resamples=99, permutations=999)
    smallest = (
        1 / np.arange(1, len(table) + 1)
    ).sum() / 1000  # p of 999 flips, after Benjamini and Yekutieli
    assert table["p_adjusted"].between(smallest * (1 - 1e-9), 1).all()
    assert len(table) > 1
    assert table["offset"].between(-3, 2).all()
    assert table["n"].is_monotonic_decreasing or len(table) > 3
    with pytest.raises(InputError, match="no relation has 100000 arcs"):
        dependency_table(planted(words, 0, 0, 0), arcs(words), minimum=100000)
