"""Pairs from meanings: swaps, and a second text in other words."""

from random import Random

from analysis.texts.bundled.drafts import pair, swapped, with_parts
from analysis.texts.bundled.meanings import Meaning


def scene():
    """Who sees whom, in two frames."""
    parts = {name: Meaning(name, (word,)) for name, word in (("subject", "Ann"), ("object", "Bob"))}
    frames = (
        "(nsubj {subject}) see.past (obj {object})",
        "(nsubj:pass {object}) be.past/aux:pass see.participle (obl:agent by/case {subject})",
    )
    return Meaning("scene", frames, parts)


def texts(draft):
    return {sentence.text for sentence in draft.sentences}


def test_swapped_slots_change_places():
    assert swapped(scene(), "subject", "object").parts["subject"].options == ("Bob",)


def test_with_parts_leaves_the_original_alone():
    meaning = scene()
    assert with_parts(meaning, {"subject": None}).parts["subject"] is None
    assert meaning.parts["subject"].options == ("Ann",)


def test_a_pair_says_the_same_in_either_frame():
    said = [texts(pair(1, scene(), scene(), Random(seed))) for seed in range(20)]
    assert set.union(*said) == {"Ann saw Bob", "Bob was seen by Ann"}


def test_a_swapped_pair_says_the_opposite():
    said = set.union(
        *(texts(pair(0, scene(), swapped(scene(), "subject", "object"), Random(seed))) for seed in range(20))
    )
    assert said == {"Ann saw Bob", "Bob saw Ann", "Ann was seen by Bob"}
