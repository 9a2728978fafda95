"""The words of the bundled corpus and their inflected forms, read from `lexicon.yaml`."""

import re
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).parent
VOWEL_SOUND = re.compile(
    r"(?!(uni(?![dnm])|use|usu|eu|one|once|uk))(hour|honest|honou?r|heir|[aeiou])", re.IGNORECASE
)
BE = {
    ("present", "singular"): "is",
    ("present", "plural"): "are",
    ("past", "singular"): "was",
    ("past", "plural"): "were",
    ("participle", "singular"): "been",
    ("participle", "plural"): "been",
}


@cache
def read(name: str) -> dict:
    """The data file `name`.yaml beside this module."""
    return yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))


def synonym_sets(entries: str) -> tuple[tuple[str, ...], ...]:
    """The sets of interchangeable words in a line of entries: `a|b c` gives (a, b) and (c,)."""
    return tuple(tuple(entry.split("|")) for entry in str(entries).split())


@cache
def plurals() -> dict[str, str]:
    """Irregular plural by singular."""
    return dict(entry.split() for entry in read("lexicon")["plurals"].split(";"))


@cache
def irregular_verbs() -> dict[str, tuple[str, str]]:
    """Irregular past and participle by base form."""
    entries = (entry.split() for entry in read("lexicon")["verbs"]["irregular"].split(";"))
    return {base: (past, participle) for base, past, participle in entries}


@cache
def doubling_verbs() -> frozenset[str]:
    """Verbs that double their last consonant before -ed and -ing."""
    return frozenset(read("lexicon")["verbs"]["doubling"].split())


def with_s(word: str) -> str:
    """A noun or verb with the ending -s, -es or -ies."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search(r"(s|x|z|ch|sh|[^aeiou]o)$", word) else "s")


def plural(noun: str) -> str:
    """The plural of a noun."""
    return plurals().get(noun) or with_s(noun)


def past(verb: str) -> str:
    """The regular past of a verb."""
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in doubling_verbs() else "") + "ed"


def gerund(verb: str) -> str:
    """The -ing form of a verb."""
    if verb == "be" or re.search(r"(ee|ye|oe)$", verb):
        return verb + "ing"
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    stem = verb[:-1] if verb.endswith("e") else verb + (verb[-1] if verb in doubling_verbs() else "")
    return stem + "ing"


def present(verb: str, number: str) -> str:
    """The present tense of a verb other than `be`, agreeing in number."""
    return verb if number == "plural" else {"have": "has"}.get(verb) or with_s(verb)


def inflect(lemma: str, feature: str, number: str = "singular") -> str:
    """The form of a word: base, present, past, participle, gerund, singular or plural."""
    if lemma == "be" and (feature, number) in BE:
        return BE[feature, number]
    irregular_past, irregular_participle = irregular_verbs().get(lemma, (None, None))
    if feature == "past":
        return irregular_past or past(lemma)
    if feature == "participle":
        return irregular_participle or past(lemma)
    if feature == "present":
        return present(lemma, number)
    return {"gerund": gerund, "plural": plural}.get(feature, str)(lemma)


def article(following: str) -> str:
    """`a` or `an`, depending on the first sound of the following word."""
    return "an" if VOWEL_SOUND.match(following) else "a"
