"""The cast of a story: people, a group, things and a place, each with the words that may name it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from random import Random
from typing import TypeVar

from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.meanings import Meaning, draw_noun, draw_word

Drawn = TypeVar("Drawn")

GENDERS = ("feminine", "masculine")
NAMED_SHARE = 0.7
# How often the second of two people with one calling has the noun of the first, so that both have the same head word.
SAME_NOUN_SHARE = 0.3
OWNED_SHARE = 0.6


@dataclass(frozen=True)
class Member:
    """A person, thing or place that a story is about.

    `kind` names its wordings in `stories.yaml`, `pronoun` the row of its pronouns, `calling` its class of nouns;
    `content` holds the words by the slots of the wordings.
    """

    name: str
    kind: str
    pronoun: str
    calling: str
    content: Mapping[str, Meaning]
    owner: "Member | None" = None


@cache
def said_of(gender: str) -> frozenset[str]:
    """The words that describe only this gender."""
    return frozenset(read("lexicon")["gendered"][gender].split())


def suits(meaning: Meaning, gender: str) -> Meaning | None:
    """The meaning without the words for the other gender; None if no other words are left."""
    others = said_of(GENDERS[1 - GENDERS.index(gender)])
    options = tuple(word for word in meaning.options if word not in others)
    return replace(meaning, options=options, chosen=0) if options else None


def draw_until(draw: Callable[[], Drawn], fits: Callable[[Drawn], object]) -> Drawn:
    """The first draw that satisfies `fits`."""
    return next(drawn for drawn in (draw() for _ in count()) if fits(drawn))


def draw_other(kind: str, rng: Random, taken: Collection[str], gender: str | None = None) -> Meaning:
    """A word of a list that suits the gender; none of its synonyms is taken."""

    def draw() -> Meaning | None:
        meaning = draw_word(kind, rng)
        return suits(meaning, gender) if gender else meaning

    return draw_until(draw, lambda meaning: meaning and not set(meaning.options) & set(taken))


def words_of(members: Collection[Member]) -> set[str]:
    """All words that name one of the members."""
    return {word for member in members for meaning in member.content.values() for word in meaning.options}


def person(name: str, calling: str, others: Collection[Member], rng: Random) -> Member:
    """A woman or a man with a calling, who differs from the others in adjective and name."""
    gender, taken = rng.choice(GENDERS), words_of(others)
    noun = _noun(calling, gender, others, rng)
    adjectives = read("lexicon")["nouns"][calling]["adjectives"]
    content = {"noun": noun, "adjective": draw_other(f"{adjectives} adjective", rng, taken, gender)}
    content |= {
        "given": draw_other("given", rng, taken, gender),
        "surname": draw_other("surname", rng, taken),
    }
    return Member(name, "named" if rng.random() < NAMED_SHARE else "unnamed", gender, calling, content)


def _noun(calling: str, gender: str, others: Collection[Member], rng: Random) -> Meaning:
    shared = [
        other.content["noun"] for other in others if (other.calling, other.pronoun) == (calling, gender)
    ]
    if shared and rng.random() < SAME_NOUN_SHARE:
        return shared[0]
    taken = words_of(others)
    return draw_until(
        lambda: suits(draw_noun(calling, rng)[0], gender),
        lambda noun: noun and not set(noun.options) & taken,
    )


def other_member(
    name: str, kind: str, others: Collection[Member], rng: Random, owner: Member | None = None
) -> Member:
    """A member that is not a person, from a class of nouns; none of its nouns names another member."""
    traits, taken = read("lexicon")["nouns"][kind], words_of(others)
    noun, mark = draw_until(lambda: draw_noun(kind, rng), lambda drawn: not set(drawn[0].options) & taken)
    content = {"noun": noun, "adjective": draw_other(f"{traits['adjectives']} adjective", rng, taken)}
    if "names" in traits:
        content["name"] = draw_word(traits["names"], rng)
    plural = traits.get("plural") or mark == "+"
    return Member(name, _wording(kind, mark), "plural" if plural else "neuter", kind, content, owner)


def _wording(kind: str, mark: str) -> str:
    return {"keepsake": "things" if mark else "thing", "public": "people", "venue": "place"}.get(kind, kind)


def draw_cast(setting: Mapping, groups: Collection[str], rng: Random) -> dict[str, list[Member]]:
    """The members by their part: two or three people, a group, one or two things and a place."""
    people: list[Member] = []
    for calling in rng.sample(setting["people"], rng.choice([2, 3])):
        people.append(person(f"person {len(people)}", calling, people, rng))
    cast = {"person": people, "group": [other_member("group", rng.choice(groups), people, rng)]}
    cast["place"] = [other_member("place", "venue", [*people, *cast["group"]], rng)]
    cast["thing"] = []
    for number in range(rng.choice([1, 2])):
        owner = people[0] if rng.random() < OWNED_SHARE else None
        others = [member for members in cast.values() for member in members]
        cast["thing"].append(other_member(f"thing {number}", "keepsake", others, rng, owner))
    return cast
