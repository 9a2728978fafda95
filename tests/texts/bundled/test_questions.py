"""Question pairs: directions, wordings, intents."""

import re
from random import Random

from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.notation import parse_frame, slots
from analysis.texts.bundled.questions import qqp, question_frames


def test_some_negatives_of_qqp_ask_about_the_opposite_direction():
    rng, reversals = Random(0), 0
    for _ in range(300):
        ways = [re.search(r"from (\w+) (?:in)?to (\w+)", said.text) for said in qqp(0, rng).sentences]
        reversals += all(ways) and ways[0].groups() == ways[1].groups()[::-1]
    assert reversals > 0


def test_every_question_wording_parses_with_the_same_slots():
    for activity in read("frames")["activities"]:
        assert len({frozenset(slots(say)) for say in activity["say"]}) == 1
        for intent in activity["asks"]:
            for frame in question_frames(intent, activity, True):
                assert parse_frame(frame).label == "root"
                assert "condition" in slots(frame)


def test_intents_word_their_questions_in_several_ways():
    for intent, frames in read("frames")["intents"].items():
        assert len(set(frames)) == len(frames) > 1, intent
