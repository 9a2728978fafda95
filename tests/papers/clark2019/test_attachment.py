"""Heads as parsers: planted heads, directions, and held-out choice."""

import numpy as np
import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.papers.clark2019.attachment import best_heads, dependency_table
from analysis.scores.attachment import (
    DIRECTIONS,
    Attachment,
    attach,
    cross_fitted,
    documents_of,
    halves,
    right,
)
from analysis.scores.words import split_words, word_maps
from analysis.texts.dependencies import OFFSETS, arcs, fixed_offset

LAYERS, HEADS = 2, 3


def planted(words: pd.DataFrame, layer: int, direction: int, head: int) -> Attachment:
    """Random predictions, but for one head that is always right."""
    rng = np.random.default_rng(0)
    predicted = rng.integers(1, 4, (len(words), LAYERS, 2, HEADS)).astype(np.int16)
    predicted[:, layer, direction, head] = words["head"]
    return Attachment(words, predicted, {})


def test_a_planted_head_is_found_and_always_right(words):
    attached = planted(words, 1, 0, 2)
    scored = arcs(words, possessive=False)
    scored = scored[~scored["relation"].isin(["prep", "pobj"])]  # their heads are not those of the words
    table = dependency_table(attached, scored, minimum=20, resamples=99, permutations=199)
    assert (table[["layer", "head", "accuracy"]] == [1, 2, 1]).all(axis=None)
    assert (table["direction"] == DIRECTIONS[0]).all()
    assert table["low"].isna().all()
    assert (best_heads(attached, scored, 20)["accuracy"] == 1).all()
    # p of 199 flips, after Benjamini and Yekutieli
    least = (1 / np.arange(1, len(table) + 1)).sum() / 200
    assert table["p_adjusted"].between(least * (1 - 1e-9), 1).all()
    with pytest.raises(InputError, match="no relation has 100000 arcs"):
        dependency_table(attached, scored, minimum=100000)


def test_predictions_against_one_sentence_at_a_time(tiny, words):
    some = words[words["sentence"] < 12]
    attached = attach(tiny, some, budget=200, progress=False)
    assert attached.words.equals(some)
    for number, sentence in some.groupby("sentence"):
        [pieces] = split_words(tiny.tokenizer, [sentence["form"].tolist()]).kept
        maps = word_maps(tiny, pieces)[:, :, 1:-1, 1:-1]
        for direction, each in enumerate((maps, maps.swapaxes(2, 3))):
            without = np.where(np.eye(len(sentence)), 0, each)
            found = attached.predicted[some["sentence"] == number, :, direction]
            assert (found == np.moveaxis(without.argmax(-1) + 1, -1, 0)).all()


def test_the_scored_half_has_no_say_in_the_choice(words):
    """A head that is right only in one half of the documents is chosen there; its answers in the other half count.

    So it is for offsets.
    """
    scored = arcs(words)
    documents = documents_of(words, scored)
    chooses = halves(documents, 0)
    assert documents.nunique() == 4
    assert {*documents[chooses]}.isdisjoint(documents[~chooses])
    alone = words.assign(document="one")  # halves of sentences
    assert documents_of(alone, scored).tolist() == scored["sentence"].tolist()
    attached = planted(words, 1, 0, 2)
    held_out = ~words["sentence"].isin(scored["sentence"][chooses]).to_numpy()
    attached.predicted[held_out] = -2  # no head is right there, so the first head is chosen
    table = dependency_table(attached, scored, minimum=20, resamples=99, permutations=99)
    table = table.set_index("relation")
    first = right(attached, scored)[:, 0, 0, 0] & chooses
    for relation, accuracy in table["accuracy"].items():
        assert accuracy == pytest.approx(first[scored["relation"] == relation].mean())
    assert table.loc["det", ["layer", "head"]].tolist() == [1, 2]  # the best of all sentences
    guesses = {offset: fixed_offset(scored, offset) == scored["head"].to_numpy() for offset in OFFSETS}
    for relation, accuracy in table["offset_accuracy"].items():
        own = (scored["relation"] == relation).to_numpy()
        one, other = (
            max(OFFSETS, key=lambda each: (guesses[each][own & on].mean(), each))
            for on in (chooses, ~chooses)
        )
        assert accuracy == np.where(chooses, guesses[other], guesses[one])[own].mean()


def test_cross_fitting_against_a_loop():
    rng = np.random.default_rng(1)
    correct, on_other_map = rng.random((2, 60, 2, 3, 2)) < 0.4
    chooses = rng.random(60) < 0.5
    found, elsewhere = cross_fitted(correct, chooses), cross_fitted(correct, chooses, on_other_map)
    for number in range(60):
        other = correct[chooses != chooses[number]].mean(axis=0)
        best = max(np.ndindex(*other.shape), key=lambda place: (other[place], [-each for each in place]))
        assert found[number] == correct[(number, *best)]
        assert elsewhere[number] == on_other_map[(number, *best)]
