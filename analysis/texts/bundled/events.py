"""News sentences about events: paraphrase pairs (mrpc) and questions with a sentence (qnli)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from random import Random

from analysis.texts.bundled.drafts import (
    HARD_SHARE,
    SYNONYM_RATE_WHEN_CHANGED,
    Draft,
    pair,
    swapped,
    with_parts,
)
from analysis.texts.bundled.grammar import sentence
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.meanings import Meaning, draw, draw_word, express, rival, says

NEGATION_SHARE = 0.08
# The slots that negatives change; the weights say how often they change one, two or three of them.
TELLING = ("subject", "object", "verb", "time", "place")
CHANGED_SHARES = (0.3, 0.3, 0.4)
# How often a sentence tells each optional part of an event.
ADJUNCT_SHARES = {
    "manner": 0.6,
    "time": 0.55,
    "place": 0.4,
    "circumstance": 0.35,
    "reason": 0.3,
    "aftermath": 0.2,
}
REPORT_SHARE = 0.2
# The slots that a question can ask about.
ASKED = ("time", "place", "reason")
# Share of non-answers about the same event without the asked slot; most other non-answers are about other people.
ABSENT_SHARE = 0.35
# How often a sentence tells each slot that the question does not ask about.
TOLD_SHARE = 0.4
AFFIRMED = "{manner}/advmod {verb.past}", "be.past/aux:pass {manner}/advmod"
NEGATED = "do.past/aux n't/advmod {verb.base}", "be.past/aux:pass n't/advmod"


@cache
def statement_frames() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Frames of a statement: direct, and reported by a speaker."""
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
    """The events whose two participants can change places."""
    events = read("frames")["events"]
    return tuple(index for index, event in enumerate(events) if event["subject"] == event["object"])


def alike(first: Meaning, second: Meaning) -> bool:
    """Whether two noun phrases name the same thing or use the same noun."""
    nouns = [meaning.parts.get("noun") or meaning for meaning in (first, second)]
    return says(nouns[0]) == says(nouns[1])


def draw_event(index: int, shares: Mapping[str, float], rng: Random) -> Meaning:
    """An event of one kind, with optional parts at random."""
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
    """Two news sentences that say the same (1), or that differ in slots, by negation or by swapped participants (0)."""
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


def keep(event: Meaning, names: tuple[str, ...]) -> Meaning:
    """The event, which keeps its time, place and reason only if they are in `names`."""
    return with_parts(event, {name: None for name in ASKED if name not in names})


def question_about(event: Meaning, asked: str, rng: Random) -> Meaning:
    """A question about one slot of an event."""
    frames = read("frames")["questions"][asked]
    return replace(event, options=tuple(frames), chosen=rng.randrange(len(frames)))


def qnli(label: int, rng: Random) -> Draft:
    """A question and a sentence that answers it (0) or not (1): the answer is left out, or it is about others."""
    contrast = rng.choices(
        ["absent", "participant", "swap"], [ABSENT_SHARE, 1 - ABSENT_SHARE - HARD_SHARE, HARD_SHARE]
    )[0]
    indices = reversible() if contrast == "swap" else range(len(read("frames")["events"]))
    event = draw_event(rng.choice(indices), ADJUNCT_SHARES | dict.fromkeys(ASKED, 1.0), rng)
    asked, *others = rng.sample(ASKED, len(ASKED))
    if asked == "time":
        # Otherwise a circumstance such as `during the night` would answer the question.
        event = with_parts(event, {"circumstance": None})
    answered = label == 0 or contrast != "absent"
    told = [name for name in others if rng.random() < TOLD_SHARE]
    names = (asked, *told) if answered else tuple(told)
    statement = replace(keep(event, names), chosen=rng.randrange(len(event.options)))
    if label and contrast == "participant":
        others = {name: rival(statement.parts[name], rng) for name in ("subject", "object")}
        statement = with_parts(statement, others)
    if label and contrast == "swap":
        statement = swapped(statement, "subject", "object")
    question = express(question_about(event, asked, rng), rng)
    return Draft(label, (sentence(question), sentence(express(statement, rng, SYNONYM_RATE_WHEN_CHANGED))))
