import numpy as np
import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.papers.clark2019.attachment import best_heads, dependency_table
from analysis.scores.words import (
    DIRECTIONS,
    Attachment,
    attach,
    documents_of,
    halves,
    right,
    split_words,
    word_maps,
)
from analysis.statistics.layers import cross_fitted
from analysis.texts.dependencies import OFFSETS, arcs, fixed_offset

LAYERS, HEADS = 2, 3


def planted(words: pd.DataFrame, layer: int, direction: int, head: int) -> Attachment:
    rng = np.random.default_rng(0)
    predicted = rng.integers(1, 4, (len(words), LAYERS, 2, HEADS)).astype(np.int16)
    predicted[:, layer, direction, head] = words["head"]
    return Attachment(words, predicted, {})


def test_a_planted_head_is_found_and_always_right(words):
    attachment = planted(words, 1, 0, 2)
    scored = arcs(words, possessive=False)
    scored = scored[~scored["relation"].isin(["prep", "pobj"])]  # their heads are not those of the words
    table = dependency_table(attachment, scored, minimum=20, resamples=99)
    assert (table[["layer", "head", "accuracy"]] == [1, 2, 1]).all(axis=None)
    assert (table["direction"] == DIRECTIONS[0]).all()
    assert table["low"].isna().all()
    assert (best_heads(attachment, scored, 20)["accuracy"] == 1).all()
    least = (1 / np.arange(1, len(table) + 1)).sum() / 10_000  # of 9,999 flips, after Benjamini and Yekutieli
    assert table["p_adjusted"].between(least * (1 - 1e-9), 1).all()
    with pytest.raises(InputError, match="no relation has 100000 arcs"):
        dependency_table(attachment, scored, minimum=100000)


def test_predictions_against_one_sentence_at_a_time(tiny, words):
    some = words[words["sentence"] < 12]
    attachment = attach(tiny, some, budget=200, progress=False)
    assert attachment.words.equals(some)
    for number, sentence in some.groupby("sentence"):
        [pieces] = split_words(tiny.tokenizer, [sentence["form"].tolist()]).kept
        maps = word_maps(tiny, pieces)[:, :, 1:-1, 1:-1]
        for direction, attention in enumerate((maps, maps.swapaxes(2, 3))):
            without_itself = np.where(np.eye(len(sentence)), 0, attention)
            predicted = attachment.predicted[some["sentence"] == number, :, direction]
            assert (predicted == np.moveaxis(without_itself.argmax(-1) + 1, -1, 0)).all()


def test_the_scored_half_does_not_choose(words):
    """A head that is right in one half of the documents alone is chosen there and scored in the other half."""
    scored = arcs(words)
    documents = documents_of(words, scored)
    first_half = halves(documents, 0)
    assert documents.nunique() == 4
    assert {*documents[first_half]}.isdisjoint(documents[~first_half])
    alone = words.assign(document="one")  # halves of sentences
    assert documents_of(alone, scored).tolist() == scored["sentence"].tolist()
    attachment = planted(words, 1, 0, 2)
    held_out = ~words["sentence"].isin(scored["sentence"][first_half]).to_numpy()
    attachment.predicted[held_out] = -2  # no head is right there, so the first head is chosen
    table = dependency_table(attachment, scored, minimum=20, resamples=99).set_index("relation")
    first = right(attachment, scored)[:, 0, 0, 0] & first_half
    for relation, accuracy in table["accuracy"].items():
        assert accuracy == pytest.approx(first[scored["relation"] == relation].mean())
    assert table.loc["det", ["layer", "head"]].tolist() == [1, 2]  # the best of all sentences
    offsets = sorted(OFFSETS, reverse=True)
    guesses = np.stack([fixed_offset(scored, offset) == scored["head"] for offset in offsets], axis=1)
    for relation, accuracy in table["offset_accuracy"].items():
        rows = (scored["relation"] == relation).to_numpy()
        assert accuracy == cross_fitted(guesses[rows], first_half[rows]).mean()


def test_cross_fitting_against_a_loop():
    rng = np.random.default_rng(1)
    correct, on_other_map = rng.random((2, 60, 2, 3, 2)) < 0.4
    first_half = rng.random(60) < 0.5
    result, elsewhere = cross_fitted(correct, first_half), cross_fitted(correct, first_half, on_other_map)
    assert (cross_fitted(correct) == cross_fitted(correct, np.arange(60) % 2 == 0)).all()
    for number in range(60):
        other = correct[first_half != first_half[number]].mean(axis=0)
        best = max(np.ndindex(*other.shape), key=lambda place: (other[place], [-index for index in place]))
        assert result[number] == correct[(number, *best)]
        assert elsewhere[number] == on_other_map[(number, *best)]
