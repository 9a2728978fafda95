"""Labelled sentences and sentence pairs with their gold parses, and helpers for all tasks."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import NamedTuple

from analysis.texts.bundled.grammar import Sentence, sentence
from analysis.texts.bundled.meanings import Meaning, express

# Share of negative pairs with the same words and two participants swapped.
HARD_SHARE = 0.1
# How often a synonym replaces a word in the second text. Texts with changed slots already differ in words; fewer
# synonyms there keep the word overlap of both labels similar.
SYNONYM_RATE, SYNONYM_RATE_WHEN_CHANGED = 0.55, 0.2


class Draft(NamedTuple):
    """A label, and the one or two sentences that it describes."""

    label: int
    sentences: tuple[Sentence, ...]


def with_parts(meaning: Meaning, changes: Mapping[str, Meaning | None]) -> Meaning:
    """The same meaning with other content in some slots."""
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
