"""Slots, synonyms and rivals."""

from collections import Counter
from random import Random

import pytest

from analysis.texts.bundled.grammar import Phrase, in_order
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.meanings import draw, express, frame_lists, nouns, rival, says, word_lists


def forms(phrase: Phrase) -> list[str]:
    return [word.form for word, _ in in_order(phrase)]


@pytest.mark.parametrize("kind", read("lexicon")["nouns"])
def test_noun_classes_give_noun_phrases(kind):
    for seed in range(5):
        phrase = express(draw(kind, Random(seed)), Random(0))
        assert phrase.upos in {"NOUN", "PROPN"}


def test_same_random_state_draws_the_same():
    assert draw("politician", Random(3)) == draw("politician", Random(3))


def test_rate_zero_keeps_every_choice():
    meaning = draw("politician", Random(1))
    assert forms(express(meaning, Random(1))) == forms(express(meaning, Random(2)))


def test_rate_one_changes_every_word_that_has_a_synonym():
    meaning = draw("degree", Random(1))
    assert express(meaning, Random(0), 1.0) in set(meaning.options) - {express(meaning, Random(0))}


def test_expressing_otherwise_says_the_same():
    """A noun phrase in other words only exchanges words for their synonyms."""
    synonyms = {noun.rstrip("~+"): set(entry) for entry in nouns("politician") for noun in entry}
    for seed in range(30):
        meaning = draw("politician", Random(seed))
        first, second = (express(meaning, Random(seed), rate) for rate in (0.0, 1.0))
        assert second.lemma in synonyms.get(first.lemma, {first.lemma})


@pytest.mark.parametrize("kind", ["politician", "time", "degree", "crop", "firm", "town"])
def test_rivals_say_something_else(kind):
    for seed in range(20):
        meaning = draw(kind, Random(seed))
        assert says(rival(meaning, Random(seed))) != says(meaning)


def test_rival_noun_phrases_keep_their_shape():
    for seed in range(20):
        meaning = draw("politician", Random(seed))
        assert rival(meaning, Random(seed)).options == meaning.options


def test_no_slot_names_two_lists():
    """A slot is looked up among noun classes, then frames, then words; a name in two of them would change its texts."""
    lists = [*read("lexicon")["nouns"], *frame_lists(), *word_lists()]
    assert [name for name, times in Counter(lists).items() if times > 1] == []
