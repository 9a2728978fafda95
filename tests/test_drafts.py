"""The tasks: what makes a label, and that no frame is broken."""

from collections import Counter
from random import Random

import pytest

from analysis.drafts import DRAFTS, HARD_SHARE, question_frames, review_frames
from analysis.grammar import parse_frame, slots
from analysis.lexicon import read


def bag(sentence):
    """The multiset of words that carry content, without the agent's `by` and the passive auxiliary."""
    content = {"NOUN", "PROPN", "ADJ", "ADV", "VERB", "NUM"}
    return Counter(word.lemma for word in sentence.words if word.upos in content)


@pytest.mark.parametrize("task", ["mrpc", "qqp"])
def test_some_negatives_are_made_of_the_same_words(task):
    rng = Random(0)
    drafts = [DRAFTS[task](0, rng) for _ in range(600)]
    same = sum(bag(first) == bag(second) for _, (first, second) in drafts)
    assert same > 600 * HARD_SHARE / 4


def test_positives_of_mrpc_keep_who_does_it():
    """The agent of the first sentence is the agent of the second, through active and passive."""
    rng = Random(0)
    for _ in range(300):
        first, second = DRAFTS["mrpc"](1, rng).sentences
        names = [
            {w.form for w in s.words if w.upos == "PROPN" and w.label == "flat"} for s in (first, second)
        ]
        assert names[0] == names[1]


def reason_told(sentence):
    return any(word.label == "advcl" for word in sentence.words) or "because" in sentence.text.lower()


def test_answered_questions_find_the_asked_slot():
    rng = Random(0)
    for _ in range(400):
        question, statement = DRAFTS["qnli"](0, rng).sentences
        if question.words[0].form == "Why":
            assert reason_told(statement), statement.text


def test_reviews_use_judgements_of_both_polarities_under_either_label():
    for label in (0, 1):
        used = {
            name.split()[0]
            for frame in review_frames("clauses", label)
            for name in slots(frame)
            if " " in name
        }
        assert used == {"good", "bad"}


def test_label_turns_every_judgement():
    turned = {"good": "bad", "bad": "good"}
    for negative, positive in zip(review_frames("phrases", 0), review_frames("phrases", 1), strict=True):
        words = [[name.split()[0] for name in slots(frame) if " " in name] for frame in (negative, positive)]
        assert words[1] == [turned[word] for word in words[0]]


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
