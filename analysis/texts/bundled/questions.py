"""Pairs of questions, duplicates or not (qqp)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from analysis.texts.bundled.drafts import HARD_SHARE, Draft, pair, swapped, with_parts
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.meanings import Meaning, draw, rival, says
from analysis.texts.bundled.notation import slots

CONDITION_SHARE = 0.4
# Intents about people in general; a condition of the person who asks does not fit them.
GENERAL = ("motive", "risk")


def question_frames(intent: str, activity: Mapping, condition: bool) -> tuple[str, ...]:
    """The wordings of a question: all combinations of intent and activity, with the condition first or last."""
    asked = [
        re.sub(r"ACT\.(\w+)", lambda act, say=say: say.replace(".V", f".{act[1]}"), frame)
        for frame in read("frames")["intents"][intent]
        for say in activity["say"]
    ]
    if not condition:
        return tuple(f"{frame} ?/punct" for frame in asked)
    return tuple(f"(= {{condition}} ,/punct) {frame} ?/punct" for frame in asked) + tuple(
        f"{frame} {{condition}}/= ?/punct" for frame in asked
    )


def swappable(activity: Mapping) -> list[str]:
    """The slots of an activity with a numbered counterpart, such as `city` with `city2`."""
    names = slots(activity["say"][0])
    return [name for name in names if f"{name}2" in names]


def topic(activity: Mapping, rng: Random) -> dict[str, Meaning]:
    """The slots of an activity; numbered counterparts differ from each other."""
    parts = {name: draw(name, rng) for name in slots(activity["say"][0])}
    counterparts = {f"{name}2": rival(parts[name], rng) for name in swappable(activity)}
    return parts | counterparts


def draw_question(activity: Mapping, intent: str, condition: bool, rng: Random) -> Meaning:
    """A question about an activity."""
    parts = topic(activity, rng)
    if condition:
        parts["condition"] = draw("condition", rng)
    frames = question_frames(intent, activity, condition)
    return Meaning("question", frames, parts, rng.randrange(len(frames)))


def personal(activity: Mapping) -> list[str]:
    """The intents of an activity that concern the person who asks."""
    return [intent for intent in activity["asks"] if intent not in GENERAL]


def other_intent(question: Meaning, activity: Mapping, intent: str, rng: Random) -> Meaning:
    """The question about the same activity with another intent, which fits the condition if there is one."""
    fitting = personal(activity) if "condition" in question.parts else activity["asks"]
    intent = rng.choice([other for other in fitting if other != intent])
    return replace(question, options=question_frames(intent, activity, "condition" in question.parts))


def other_topic(question: Meaning, activity: Mapping, rng: Random) -> Meaning:
    """The question about the same kind of activity with other content in every slot."""
    while True:
        parts = topic(activity, rng)
        if all(says(parts[name]) != says(question.parts[name]) for name in parts):
            return with_parts(question, parts)


def qqp(label: int, rng: Random) -> Draft:
    """Two questions that ask the same (1), or that differ in intent, topic or a direction (0)."""
    contrast = rng.choices(["swap", "intent", "topic", "condition"], [HARD_SHARE, 0.4, 0.4, 0.1])[0]
    activities = read("frames")["activities"]
    if contrast == "swap":
        activities = [activity for activity in activities if swappable(activity)]
    if contrast == "topic":
        activities = [activity for activity in activities if slots(activity["say"][0])]
    activity = rng.choice(activities)
    intent = rng.choice(personal(activity) if contrast == "condition" else activity["asks"])
    condition = contrast == "condition" or (intent not in GENERAL and rng.random() < CONDITION_SHARE)
    first = draw_question(activity, intent, condition, rng)
    if contrast == "intent":
        other = other_intent(first, activity, intent, rng)
    elif contrast == "swap":
        name = swappable(activity)[0]
        other = swapped(first, name, f"{name}2")
    elif contrast == "topic":
        other = other_topic(first, activity, rng)
    else:
        other = with_parts(first, {"condition": rival(first.parts["condition"], rng)})
    return pair(label, first, first if label else other, rng)
