"""Inflected forms, checked by hand, and the health of the word lists."""

from collections import Counter

import pytest

from analysis.texts.bundled.lexicon import article, inflect, read, synonym_sets


@pytest.mark.parametrize(
    ("lemma", "feature", "number", "form"),
    [
        ("praise", "past", "singular", "praised"),
        ("carry", "past", "singular", "carried"),
        ("stop", "past", "singular", "stopped"),
        ("visit", "past", "singular", "visited"),
        ("write", "past", "plural", "wrote"),
        ("write", "participle", "singular", "written"),
        ("make", "gerund", "singular", "making"),
        ("dye", "gerund", "singular", "dyeing"),
        ("tie", "gerund", "singular", "tying"),
        ("run", "gerund", "singular", "running"),
        ("have", "present", "singular", "has"),
        ("have", "present", "plural", "have"),
        ("teach", "present", "singular", "teaches"),
        ("do", "present", "singular", "does"),
        ("be", "past", "plural", "were"),
        ("be", "present", "singular", "is"),
        ("city", "plural", "singular", "cities"),
        ("boy", "plural", "singular", "boys"),
        ("child", "plural", "singular", "children"),
        ("box", "plural", "singular", "boxes"),
    ],
)
def test_forms(lemma, feature, number, form):
    assert inflect(lemma, feature, number) == form


@pytest.mark.parametrize("word", ["hour", "honest", "apple", "unusual", "unidentified", "old", "Italian"])
def test_an_before_vowel_sounds(word):
    assert article(word) == "an"


@pytest.mark.parametrize("word", ["university", "European", "useful", "house", "young"])
def test_a_before_consonant_sounds(word):
    assert article(word) == "a"


def test_synonym_sets_split_entries():
    assert synonym_sets("a|b c") == (("a", "b"), ("c",))


@pytest.fixture(scope="module")
def word_lists():
    """Every list of the lexicon by name, as synonym sets."""
    lexicon = read("lexicon")
    lists = {**lexicon["adjectives"], **lexicon["adverbs"], **lexicon["words"]}
    lists |= {f"noun {kind}": traits["nouns"] for kind, traits in lexicon["nouns"].items()}
    lists |= {f"verb {index}": event["verbs"] for index, event in enumerate(read("frames")["events"])}
    judgements = lexicon["judgements"].items()
    lists |= {f"{kind} {side}": text for kind, sides in judgements for side, text in sides.items()}
    return {name: synonym_sets(text) for name, text in lists.items()}


def test_no_word_means_two_things_in_one_list(word_lists):
    assert len(word_lists) > 100
    for name, entries in word_lists.items():
        words = Counter(word.rstrip("~+") for entry in entries for word in entry)
        assert [word for word, times in words.items() if times > 1] == [], name


def test_every_word_has_a_rival_of_its_kind(word_lists):
    for name, entries in word_lists.items():
        marks = Counter(entry[0][-1] if entry[0][-1] in "~+" else "" for entry in entries)
        assert min(marks.values()) > 1, name


def test_judgements_of_opposite_polarity_share_no_word():
    for name, sides in read("lexicon")["judgements"].items():
        good, bad = (
            {word for entry in synonym_sets(sides[side]) for word in entry} for side in ("good", "bad")
        )
        assert not good & bad, name
