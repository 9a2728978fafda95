"""The four tasks built from sentences: a labelled draft is one sentence or a pair, with gold parses."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import NamedTuple

from analysis.grammar import Sentence, sentence, slots
from analysis.lexicon import read
from analysis.meanings import Meaning, draw, draw_word, express, frame_lists, rival, says

# Share of pairs whose negatives are made of the same words with two participants swapped.
HARD_SHARE = 0.1
NEGATION_SHARE = 0.08
# The slots that negatives change, and how often they change one, two or three of them.
TELLING = ("subject", "object", "verb", "time", "place")
CHANGED_SHARES = (0.3, 0.3, 0.4)
# How often each synonym is changed in the second text. Texts with changed slots already differ in their words,
# so fewer synonyms there keep the word overlap of both labels alike.
SYNONYM_RATE, SYNONYM_RATE_WHEN_CHANGED = 0.55, 0.2
# How often each optional part of an event is told.
ADJUNCT_SHARES = {
    "manner": 0.6,
    "time": 0.55,
    "place": 0.4,
    "circumstance": 0.35,
    "reason": 0.3,
    "aftermath": 0.2,
}
REPORT_SHARE = 0.2
CONDITION_SHARE = 0.4
# Intents about people at large, which no condition of the one who asks fits.
GENERAL = ("motive", "risk")
# Share of reviews without a verb, such as `never less than gripping`.
PHRASE_SHARE = 0.12
# The slots that a question may ask about.
ASKED = ("time", "place", "reason")
# How often each slot that is not asked about is told, by whether the asked one is: in the sentences of the corpus
# the answers are hidden among other details, and unanswering sentences are nearly as long.
TOLD_SHARES = {True: 0.4, False: 0.6}
AFFIRMED = "{manner}/advmod {verb.past}", "be.past/aux:pass {manner}/advmod"
NEGATED = "do.past/aux n't/advmod {verb.base}", "be.past/aux:pass n't/advmod"


class Draft(NamedTuple):
    """A label and the one or two sentences it is about."""

    label: int
    sentences: tuple[Sentence, ...]


def with_parts(meaning: Meaning, changes: Mapping[str, Meaning | None]) -> Meaning:
    """The same meaning with some slots filled otherwise."""
    return replace(meaning, parts={**meaning.parts, **changes})


def swapped(meaning: Meaning, first: str, second: str) -> Meaning:
    """The same meaning with two slots exchanged."""
    return with_parts(meaning, {first: meaning.parts[second], second: meaning.parts[first]})


def pair(label: int, first: Meaning, second: Meaning, rng: Random) -> Draft:
    """Two sentences, the second in other words, in random order."""
    second = replace(second, chosen=rng.randrange(len(second.options)))
    rate = SYNONYM_RATE if label else SYNONYM_RATE_WHEN_CHANGED
    said = [sentence(express(first, rng)), sentence(express(second, rng, rate))]
    rng.shuffle(said)
    return Draft(label, tuple(said))


@cache
def statement_frames() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Frames of a statement: as it stands, and reported by a speaker."""
    clauses = read("frames")["clauses"]
    plain = tuple(f"{clause} {{aftermath}}/= ./punct" for clause in (*clauses["plain"], *clauses["fronted"]))
    reported = tuple(
        frame.replace("PLAIN", clause) for frame in read("frames")["reports"] for clause in clauses["plain"]
    )
    return plain, reported


def negate(event: Meaning) -> Meaning:
    """The event denied."""
    frames = event.options
    for affirmed, negated in zip(AFFIRMED, NEGATED, strict=True):
        frames = tuple(frame.replace(affirmed, negated) for frame in frames)
    return replace(event, options=frames)


@cache
def reversible() -> tuple[int, ...]:
    """The events whose two participants may change places."""
    events = read("frames")["events"]
    return tuple(index for index, event in enumerate(events) if event["subject"] == event["object"])


def alike(first: Meaning, second: Meaning) -> bool:
    """Whether two noun phrases name the same thing or use the same noun."""
    nouns = [meaning.parts.get("noun") or meaning for meaning in (first, second)]
    return says(nouns[0]) == says(nouns[1])


def draw_event(index: int, shares: Mapping[str, float], rng: Random) -> Meaning:
    """An event of one kind with the optional parts that chance tells."""
    event = read("frames")["events"][index]
    domain = event["domain"]
    makers: dict[str, Callable[[], Meaning]] = {
        "manner": lambda: draw_word(event["manner"], rng),
        "time": lambda: draw("time", rng),
        "place": lambda: draw("town", rng) if rng.random() < 0.5 else draw(f"{domain} places", rng),
        "circumstance": lambda: draw(f"{domain} circumstances", rng),
        "reason": lambda: draw(f"{domain} reasons", rng),
        "aftermath": lambda: draw("aftermath", rng),
    }
    parts = {name: maker() if rng.random() < shares[name] else None for name, maker in makers.items()}
    parts |= {"verb": draw_word(f"verb {index}.", rng)}
    parts |= {"subject": draw(event["subject"], rng), "object": draw(event["object"], rng)}
    while alike(parts["subject"], parts["object"]):
        parts["object"] = draw(event["object"], rng)
    return Meaning(str(index), statement_frames()[0], parts)


def mrpc(label: int, rng: Random) -> Draft:
    """Two news sentences that say the same (1), or differ in some slots, in a denial, or in who did it to whom (0)."""
    contrast = rng.choices(
        ["swap", "negation", "slots"], [HARD_SHARE, NEGATION_SHARE, 1 - HARD_SHARE - NEGATION_SHARE]
    )[0]
    changed = rng.sample(TELLING, rng.choices([1, 2, 3], CHANGED_SHARES)[0])
    indices = reversible() if contrast == "swap" else range(len(read("frames")["events"]))
    shares = ADJUNCT_SHARES | {name: 1.0 for name in changed if name in ADJUNCT_SHARES}
    first = draw_event(rng.choice(indices), shares, rng)
    if rng.random() < REPORT_SHARE:
        first = with_parts(first, {"speaker": draw("speaker", rng), "report": draw_word("report", rng)})
        first = replace(first, options=statement_frames()[1])
    first = replace(first, chosen=rng.randrange(len(first.options)))
    if contrast == "negation":
        first = with_parts(first, {"manner": None})
        denied = negate(first)
        first, other = (first, denied) if rng.random() < 0.5 else (denied, first)
    elif contrast == "swap":
        other = swapped(first, "subject", "object")
    else:
        other = with_parts(first, {name: rival(first.parts[name], rng) for name in changed})
    return pair(label, first, first if label else other, rng)


def question_frames(intent: str, activity: Mapping, condition: bool) -> tuple[str, ...]:
    """The wordings of a question: those of its intent times those of the activity, the condition first or last."""
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
    """The slots of an activity that have a numbered counterpart, such as `city` beside `city2`."""
    names = slots(activity["say"][0])
    return [name for name in names if f"{name}2" in names]


def topic(activity: Mapping, rng: Random) -> dict[str, Meaning]:
    """The slots of an activity, numbered counterparts differing from each other."""
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


def other_intent(question: Meaning, activity: Mapping, intent: str, rng: Random) -> Meaning:
    """The question about the same activity with another intent, which suits a condition if there is one."""
    fitting = personal(activity) if "condition" in question.parts else activity["asks"]
    intent = rng.choice([other for other in fitting if other != intent])
    return replace(question, options=question_frames(intent, activity, "condition" in question.parts))


def personal(activity: Mapping) -> list[str]:
    """The intents of an activity that concern the one who asks."""
    return [intent for intent in activity["asks"] if intent not in GENERAL]


def other_topic(question: Meaning, activity: Mapping, rng: Random) -> Meaning:
    """The question about the same kind of activity with every slot changed."""
    while True:
        parts = topic(activity, rng)
        if all(says(parts[name]) != says(question.parts[name]) for name in parts):
            return with_parts(question, parts)


def qqp(label: int, rng: Random) -> Draft:
    """Two questions that ask the same (1), or differ in the intent, the topic or a direction (0)."""
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


def keep(event: Meaning, names: tuple[str, ...]) -> Meaning:
    """The event with only the named ones of its time, place and reason."""
    return with_parts(event, {name: None for name in ASKED if name not in names})


def question_about(event: Meaning, asked: str, rng: Random) -> Meaning:
    """A question about one slot of an event."""
    frames = read("frames")["questions"][asked]
    return replace(event, options=tuple(frames), chosen=rng.randrange(len(frames)))


def qnli(label: int, rng: Random) -> Draft:
    """A question and a sentence that answers it (0), or tells of the same event without the answer,
    of another participant, or of the event with roles swapped (1)."""
    contrast = rng.choices(["absent", "participant", "swap"], [0.55, 0.45 - HARD_SHARE, HARD_SHARE])[0]
    indices = reversible() if contrast == "swap" else range(len(read("frames")["events"]))
    event = draw_event(rng.choice(indices), ADJUNCT_SHARES | dict.fromkeys(ASKED, 1.0), rng)
    asked, *others = rng.sample(ASKED, len(ASKED))
    answered = label == 0 or contrast != "absent"
    told = [name for name in others if rng.random() < TOLD_SHARES[answered]]
    names = (asked, *told) if answered else tuple(told)
    statement = replace(keep(event, names), chosen=rng.randrange(len(event.options)))
    if label and contrast == "participant":
        others = {name: rival(statement.parts[name], rng) for name in ("subject", "object")}
        statement = with_parts(statement, others)
    if label and contrast == "swap":
        statement = swapped(statement, "subject", "object")
    question = express(question_about(event, asked, rng), rng)
    rate = SYNONYM_RATE_WHEN_CHANGED if label and contrast != "absent" else SYNONYM_RATE
    return Draft(label, (sentence(question), sentence(express(statement, rng, rate))))


@cache
def review_frames(kind: str, label: int) -> tuple[str, ...]:
    """Frames of reviews (`clauses` or `phrases`), each judgement slot named after the list that suits the label."""
    agreeing, opposed = ("good", "bad") if label else ("bad", "good")
    frames = read("frames")["reviews"][kind]
    frames = [re.sub(r"\{(\w+)\+(\d?)", rf"{{{agreeing} \1\2", frame) for frame in frames]
    return tuple(re.sub(r"\{(\w+)-(\d?)", rf"{{{opposed} \1\2", frame) for frame in frames)


def sst2(label: int, rng: Random) -> Draft:
    """A review sentence or phrase, negative (0) or positive (1)."""
    kind = rng.choices(["clauses", "phrases"], [1 - PHRASE_SHARE, PHRASE_SHARE])[0]
    told = rng.choices([0, 1, 2], [0.4, 0.45, 0.15])[0] if kind == "clauses" else 0
    adjuncts = rng.sample(frame_lists()["review adjunct"], told)
    frame = " ".join([rng.choice(review_frames(kind, label)), *adjuncts, "./punct"])
    review = Meaning("review", (frame,), {name: draw(name, rng) for name in slots(frame)})
    return Draft(label, (sentence(express(review, rng)),))


DRAFTS: dict[str, Callable[[int, Random], Draft]] = {"mrpc": mrpc, "qqp": qqp, "sst-2": sst2, "qnli": qnli}
