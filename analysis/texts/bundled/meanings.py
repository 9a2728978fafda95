"""What a sentence says, independent of how it says it: slots drawn from the lexicon, each with its synonyms."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from random import Random

from analysis.texts.bundled.grammar import Phrase, build
from analysis.texts.bundled.lexicon import read, synonym_sets
from analysis.texts.bundled.notation import slots

NAME_SHARE = 0.35
PLAIN_NOUN = {"+": "things", "~": "stuff"}
# The parts of a noun phrase that identify a person or thing.
IDENTITY = ("noun", "name", "given", "surname")


@dataclass(frozen=True)
class Meaning:
    """The content of a slot: `options` are words (`parts` None) or frames over `parts`, all with the same meaning."""

    kind: str
    options: tuple[str, ...]
    parts: Mapping[str, "Meaning | None"] | None = None
    chosen: int = 0


@cache
def word_lists() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Synonym sets by list name: adjectives, adverbs, names, plain words, verbs by event, judgements by polarity."""
    lexicon = read("lexicon")
    lists = {
        name: str(entries)
        for part in ("adverbs", "names", "words")
        for name, entries in lexicon[part].items()
    }
    lists |= {f"{name} adjective": entries for name, entries in lexicon["adjectives"].items()}
    ungradable = set(lexicon["ungradable"].split())
    lists |= {
        f"{name} gradable": [
            e for e in synonym_sets(entries) if not (set(e) & ungradable or e[0][0].isupper())
        ]
        for name, entries in lexicon["adjectives"].items()
    }
    lists |= {f"verb {index}.": event["verbs"] for index, event in enumerate(read("frames")["events"])}
    for name, polarities in lexicon["judgements"].items():
        lists |= {f"{polarity} {name}": entries for polarity, entries in polarities.items()}
    return {
        name: synonym_sets(entries) if isinstance(entries, str) else entries
        for name, entries in lists.items()
    }


@cache
def nouns(kind: str) -> tuple[tuple[str, ...], ...]:
    """The synonym sets of a noun class."""
    return synonym_sets(read("lexicon")["nouns"][kind]["nouns"])


def draw_word(kind: str, rng: Random) -> Meaning:
    """A word of a list, with its synonyms."""
    options = rng.choice(word_lists()[kind])
    return Meaning(kind, options, None, rng.randrange(len(options)))


def draw_noun(kind: str, rng: Random) -> tuple[Meaning, str]:
    """A noun of a class, and the mark of its entry (`~` mass, `+` plural only)."""
    entry = rng.choice(nouns(kind))
    mark = entry[0][-1] if entry[0][-1] in PLAIN_NOUN else ""
    options = tuple(noun.rstrip("~+") for noun in entry)
    return Meaning(f"{kind} noun{mark}", options, None, rng.randrange(len(options))), mark


def shape(traits: Mapping, mark: str, rng: Random) -> str:
    """The name of the list of noun-phrase frames that suits a noun."""
    if traits.get("person"):
        return "people" if traits.get("plural") else "person"
    if mark:
        return PLAIN_NOUN[mark]
    return traits.get("phrases", "thing")


def draw_noun_phrase(kind: str, rng: Random) -> Meaning:
    """A noun phrase about a member of a noun class."""
    traits = read("lexicon")["nouns"][kind]
    noun, mark = draw_noun(kind, rng)
    frames = read("frames")["noun_phrases"][shape(traits, mark, rng)]
    if "names" in traits and rng.random() < NAME_SHARE:
        frames = frames[:1]
    given = {
        "noun": lambda: noun,
        "adjective": lambda: draw_word(f"{traits['adjectives']} adjective", rng),
        "gradable": lambda: draw_word(f"{traits['adjectives']} gradable", rng),
        "name": lambda: draw_word(traits["names"], rng),
    }
    frame = rng.choice(frames)
    parts = {name: given[name]() if name in given else draw(name, rng) for name in slots(frame)}
    return Meaning(kind, (frame,), parts)


@cache
def frame_lists() -> dict[str, list[str]]:
    """Lists of frames with different meanings, by name; those of a domain have names such as `politics reasons`."""
    frames = read("frames")
    domains = {
        f"{domain} {name}": listed
        for domain, lists in frames["domains"].items()
        for name, listed in lists.items()
    }
    return frames["phrases"] | domains


def draw_frame(kind: str, rng: Random) -> Meaning:
    """One of several frames with different meanings, with its slots filled."""
    frame = rng.choice(frame_lists()[kind])
    return Meaning(kind, (frame,), {name: draw(name, rng) for name in slots(frame)})


def draw(name: str, rng: Random) -> Meaning:
    """The content of a slot; its name without a final digit is a noun class, a list of frames or a word list."""
    kind = name.rstrip("0123456789")
    if kind in read("lexicon")["nouns"]:
        return draw_noun_phrase(kind, rng)
    if kind in frame_lists():
        return draw_frame(kind, rng)
    if kind == "adjective":
        kind = "person adjective"
    return draw_word(kind, rng)


def says(meaning: Meaning) -> tuple:
    """A comparable form of what a meaning says, independent of the choice of synonyms."""
    if meaning.parts is None:
        return meaning.options
    return (meaning.options, *(says(part) for part in meaning.parts.values() if part))


def rival(meaning: Meaning, rng: Random) -> Meaning:
    """A meaning of the same kind that says something else; a noun phrase keeps its frame and adjectives."""
    while True:
        other = redraw(meaning, rng)
        if says(other) != says(meaning):
            return other


def redraw(meaning: Meaning, rng: Random) -> Meaning:
    """A new draw of the same kind."""
    kind, noun, mark = meaning.kind.partition(" noun")
    if noun:
        return next(other for other, own in (draw_noun(kind, rng) for _ in count()) if own == mark)
    if meaning.parts is None:
        return draw_word(meaning.kind, rng)
    changes = {name: rival(meaning.parts[name], rng) for name in IDENTITY if meaning.parts.get(name)}
    return replace(meaning, parts={**meaning.parts, **changes}) if changes else draw(meaning.kind, rng)


def express(meaning: Meaning | None, rng: Random, rate: float = 0.0) -> Phrase | str | None:
    """The phrase or word that expresses a meaning; each choice among synonyms changes with probability `rate`."""
    if meaning is None:
        return None
    chosen = meaning.chosen
    if len(meaning.options) > 1 and rng.random() < rate:
        chosen = (chosen + rng.randrange(1, len(meaning.options))) % len(meaning.options)
    option = meaning.options[chosen]
    if meaning.parts is None:
        return option
    return build(option, {name: express(meaning.parts.get(name), rng, rate) for name in slots(option)})
