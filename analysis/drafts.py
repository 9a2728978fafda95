"""The four tasks built from sentences: a labelled draft is one sentence or a pair, with gold parses."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import NamedTuple

from analysis.grammar import Sentence, sentence, slots
from analysis.lexicon import read
from analysis.meanings import Meaning, draw, draw_word, express, frame_lists, rival

# Share of pairs whose negatives are made of the same words with two participants swapped.
HARD_SHARE = 0.15
NEGATION_SHARE = 0.08
# How often a synonym is changed in the second text, by label: negatives already differ by their changed
# slot, so fewer synonyms keep the word overlap of both labels alike.
SYNONYM_RATE = {0: 0.25, 1: 0.6}
# How often each optional part of an event is told.
ADJUNCT_SHARES = {"manner": 0.6, "time": 0.55, "place": 0.4, "circumstance": 0.35, "reason": 0.3, "aftermath": 0.2}
REPORT_SHARE = 0.2
CONDITION_SHARE = 0.4
# Share of reviews without a verb, such as `never less than gripping`.
PHRASE_SHARE = 0.12
# The slots that a question may ask about.
ASKED = ("time", "place", "reason")
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
    said = [sentence(express(first, rng)), sentence(express(second, rng, SYNONYM_RATE[label]))]
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
    while parts["object"] == parts["subject"]:
        parts["object"] = draw(event["object"], rng)
    return Meaning(str(index), statement_frames()[0], parts)


def mrpc(label: int, rng: Random) -> Draft:
    """Two news sentences that say the same (1), or differ in one participant, verb, time, place or in who did it (0)."""
    contrast = rng.choices(
        ["swap", "negation", "verb", "subject", "object", "time", "place"],
        [HARD_SHARE, NEGATION_SHARE, 0.15, 0.2, 0.16, 0.14, 0.12],
    )[0]
    indices = reversible() if contrast == "swap" else range(len(read("frames")["events"]))
    shares = ADJUNCT_SHARES | ({contrast: 1.0} if contrast in ADJUNCT_SHARES else {})
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
        other = with_parts(first, {contrast: rival(first.parts[contrast], rng)})
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


def draw_question(activity: Mapping, intent: str, condition: bool, rng: Random) -> Meaning:
    """A question about an activity."""
    parts = {name: draw(name, rng) for name in slots(activity["say"][0])}
    for name in swappable(activity):
        parts[f"{name}2"] = rival(parts[name], rng)
    if condition:
        parts["condition"] = draw("condition", rng)
    frames = question_frames(intent, activity, condition)
    return Meaning("question", frames, parts, rng.randrange(len(frames)))


def other_intent(question: Meaning, activity: Mapping, intent: str, rng: Random) -> Meaning:
    """The question about the same activity with another intent."""
    intent = rng.choice([other for other in activity["asks"] if other != intent])
    return replace(question, options=question_frames(intent, activity, "condition" in question.parts))


def qqp(label: int, rng: Random) -> Draft:
    """Two questions that ask the same (1), or differ in what they ask, of what, or in the direction of a change (0)."""
    contrast = rng.choices(["swap", "intent", "slot", "condition"], [HARD_SHARE, 0.35, 0.35, 0.15])[0]
    activities = read("frames")["activities"]
    if contrast == "swap":
        activities = [activity for activity in activities if swappable(activity)]
    if contrast == "slot":
        activities = [activity for activity in activities if slots(activity["say"][0])]
    activity = rng.choice(activities)
    intent = rng.choice(activity["asks"])
    first = draw_question(activity, intent, contrast == "condition" or rng.random() < CONDITION_SHARE, rng)
    if contrast == "intent":
        other = other_intent(first, activity, intent, rng)
    elif contrast == "swap":
        name = swappable(activity)[0]
        other = swapped(first, name, f"{name}2")
    else:
        name = "condition" if contrast == "condition" else rng.choice(slots(activity["say"][0]))
        other = with_parts(first, {name: rival(first.parts[name], rng)})
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
    contrast = rng.choices(["absent", "participant", "swap"], [0.6, 0.4 - HARD_SHARE, HARD_SHARE])[0]
    indices = reversible() if contrast == "swap" else range(len(read("frames")["events"]))
    event = draw_event(rng.choice(indices), ADJUNCT_SHARES | dict.fromkeys(ASKED, 1.0), rng)
    asked, *others = rng.sample(ASKED, len(ASKED))
    told = rng.randint(1, 2)
    answered = label == 0 or contrast != "absent"
    names = (asked, *others[: told - 1]) if answered else tuple(others[:told])
    statement = replace(keep(event, names), chosen=rng.randrange(len(event.options)))
    if label and contrast == "participant":
        changed = rng.choice(["subject", "object"])
        statement = with_parts(statement, {changed: rival(statement.parts[changed], rng)})
    if label and contrast == "swap":
        statement = swapped(statement, "subject", "object")
    question = express(question_about(event, asked, rng), rng)
    return Draft(label, (sentence(question), sentence(express(statement, rng, SYNONYM_RATE[label]))))


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
