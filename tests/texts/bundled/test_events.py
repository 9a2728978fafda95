"""Paraphrases and answers: the differences behind their labels."""

from collections import Counter
from random import Random

from analysis.texts.bundled.drafts import HARD_SHARE
from analysis.texts.bundled.events import mrpc, qnli


def bag(sentence):
    """The multiset of words that carry content, without the agent's `by` and the passive auxiliary."""
    content = {"NOUN", "PROPN", "ADJ", "ADV", "VERB", "NUM"}
    return Counter(word.lemma for word in sentence.words if word.upos in content)


def test_some_negatives_of_mrpc_are_made_of_the_same_words():
    rng = Random(0)
    drafts = [mrpc(0, rng) for _ in range(200)]
    same = sum(bag(first) == bag(second) for _, (first, second) in drafts)
    assert same > 200 * HARD_SHARE / 4


def test_positives_of_mrpc_keep_who_does_it():
    """The agent of the first sentence is the agent of the second, through active and passive."""
    rng = Random(0)
    for _ in range(150):
        first, second = mrpc(1, rng).sentences
        names = [
            {w.form for w in s.words if w.upos == "PROPN" and w.label == "flat"} for s in (first, second)
        ]
        assert names[0] == names[1]


def reason_told(sentence):
    return any(word.label == "advcl" for word in sentence.words) or "because" in sentence.text.lower()


def test_answered_questions_find_the_asked_slot():
    rng = Random(0)
    for _ in range(150):
        question, statement = qnli(0, rng).sentences
        if question.words[0].form == "Why":
            assert reason_told(statement), statement.text
