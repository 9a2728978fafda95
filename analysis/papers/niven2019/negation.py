"""The negation of a claim: the opposite claim of its debate, a rule, or a correction by hand."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from analysis.errors import InputError
from analysis.papers.niven2019.arguments import Argument, expanded

WORDS = yaml.safe_load(Path(__file__).with_name("negation.yaml").read_text(encoding="utf-8"))
LISTS = ("auxiliaries", "verbs", "participles", "nouns")
AUXILIARIES, VERBS, PARTICIPLES, NOUNS = (WORDS[name].split() for name in LISTS)
CORRECTIONS: Mapping[str, Sequence[Sequence[str]]] = WORDS["corrections"]
DEBATE, RULE, CORRECTION, GOLD = SOURCES = ("debate", "rule", "correction", "gold")
ADVERSARIAL = "-adversarial"
# A written negation: a contraction, cannot, or "not", with the auxiliary before it if there is one.
NEGATED = re.compile(
    r"\b(?:(?P<contracted>\w+?)n['’]t|(?P<can>can)not|(?:(?P<apart>\w+) )?not)\b", re.IGNORECASE
)
# "have", "has" or "had" as an auxiliary: a participle follows, or an adverb and a participle.
PERFECT = re.compile(
    rf"ha(?:ve|s|d) (?:(?:already|always|ever|just|long|never|now|often|once|\w+ly) )?"
    rf"(?!(?:{'|'.join(NOUNS)})\b)(?:{'|'.join(PARTICIPLES)}|\w*[aeiouy]\w*(?<!e)ed)\b",
    re.IGNORECASE,
)
IRREGULAR = {"ca": "can", "wo": "will", "sha": "shall"}
SUPPORT = {"do": "plural", "does": "singular"}


def present(verb: str, number: str) -> str:
    """The present tense of a verb other than `be`, singular or plural."""
    if number == "plural":
        return verb
    if verb == "have":
        return "has"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(s|x|z|ch|sh|[^aeiou]o)$", verb) else "s")


def digest(claim: str) -> str:
    """The key of a claim in the list of corrections."""
    return hashlib.sha256(claim.encode()).hexdigest()[:16]


@cache
def _bases() -> Mapping[str, str]:
    """The base form of each present-tense form of the verbs, and of "had"."""
    return {form: verb for verb in VERBS for form in (verb, present(verb, "singular"))} | {"had": "have"}


def by_correction(claim: str) -> str | None:
    """The claim with its corrections; None if the list has none."""
    replacements = CORRECTIONS.get(digest(claim))
    for old, new in replacements or ():
        claim = claim.replace(old, new, 1)
    return claim if replacements else None


def by_rule(claim: str) -> str | None:
    """The claim without its negation, or with one: after the first auxiliary, copula or modal, by do-support, or as a
    negated imperative; None if the rule knows none of its words."""
    if negation := NEGATED.search(claim):
        return _undone(claim, negation)
    words = list(re.finditer(r"[\w'’.-]+", claim))
    for word in words:
        if word[0].lower() in AUXILIARIES or PERFECT.match(claim, word.start()):
            between = "" if word[0].lower() == "can" else " "
            return f"{claim[: word.end()]}{between}not{claim[word.end() :]}"
    if words and words[0][0].lower() in VERBS:
        return f"Do not {claim[0].lower()}{claim[1:]}"
    for word in words[1:]:
        form = word[0].rstrip(".")
        if base := _bases().get(form.lower()):
            support = {base: "do", "had": "did"}.get(form.lower(), "does")
            return f"{claim[: word.start()]}{support} not {base}{claim[word.start() + len(form) :]}"
    return None


def _undone(claim: str, negation: re.Match) -> str:
    """The claim without its first negation; after do-support, the verb is inflected again."""
    stem = negation["contracted"] or negation["can"] or negation["apart"] or ""
    auxiliary = IRREGULAR.get(stem.lower(), stem)
    before, after = claim[: negation.start()], claim[negation.end() :].lstrip()
    if auxiliary.lower() in SUPPORT and (verb := re.match(r"\w+", after)):
        after = present(verb[0], SUPPORT[auxiliary.lower()]) + after[verb.end() :]
        auxiliary = ""
    text = f"{before}{auxiliary}{' ' if auxiliary else ''}{after}"
    return text[0].upper() + text[1:] if claim[0].isupper() else text


def _core(claim: str) -> tuple[str, ...]:
    """The words of a claim without negation, do-support and the endings that do-support changes."""
    words = re.sub(r"\b(do|does) not\b", "not", " ".join(expanded(claim))).split()
    return tuple(word.removesuffix("s") for word in words if word != "not")


def is_negated(claim: str) -> bool:
    """Whether a claim contains a negation."""
    return NEGATED.search(claim) is not None


def counterparts(arguments: Sequence[Argument]) -> dict[tuple[str, str], str]:
    """By debate and claim, the other claim of the same debate if the two differ only in negation."""
    claims = dict.fromkeys((argument.debate, argument.claim) for argument in arguments)
    sides = {(debate, _core(claim), is_negated(claim)): claim for debate, claim in claims}
    others = (sides.get((debate, _core(claim), not is_negated(claim))) for debate, claim in claims)
    return {place: other for place, other in zip(claims, others, strict=True) if other}


def negations(arguments: Sequence[Argument]) -> dict[str, tuple[str, str]]:
    """By id, the negation of each argument's claim, and its source, one of SOURCES.

    Sources in order: the argument itself, a correction, the other claim of the debate, the rule. Raises InputError,
    naming the argument, for a claim that no source negates.
    """
    opposites = counterparts(arguments)
    negated = {}
    for argument in arguments:
        claim = argument.claim
        options = {
            GOLD: argument.negated,
            CORRECTION: by_correction(claim),
            DEBATE: opposites.get((argument.debate, claim)),
            RULE: by_rule(claim),
        }
        source, text = next(((name, text) for name, text in options.items() if text), (RULE, claim))
        if text.casefold() == claim.casefold():
            raise InputError(
                f"{argument.id}: the claim {claim!r} is not negated: add a correction for {digest(claim)} to "
                "negation.yaml"
            )
        negated[argument.id] = (text, source)
    return negated


def adversarial(arguments: Sequence[Argument]) -> list[Argument]:
    """The arguments, then a copy of each with the claim negated and the label reversed, `<id>-adversarial`.

    Reason and warrants stay the same, so that no cue in them predicts the label. Raises InputError as `negations` does.
    Source: Niven 2019, section 6; departure: training data are negated in the same way as test data.
    """
    negated = negations(arguments)
    copies = []
    for argument in arguments:
        claims = {"claim": negated[argument.id][0], "negated": argument.claim}
        copies.append(replace(argument, id=argument.id + ADVERSARIAL, label=1 - argument.label, **claims))
    return [*arguments, *copies]


def agreement(arguments: Sequence[Argument], copies: Sequence[Argument]) -> tuple[int, int]:
    """How many different claims `negations` negates as their copies do, up to contractions; and how many there are."""
    ours = negations(arguments)
    pairs = {
        (argument.claim, tuple(expanded(ours[argument.id][0])) == tuple(expanded(copy.claim)))
        for argument, copy in zip(arguments, copies, strict=True)
    }
    return sum(equal for _, equal in pairs), len(pairs)


def adversarial_table(splits: Mapping[str, Sequence[Argument]]) -> pd.DataFrame:
    """The sources of the negated claims: split, source (one of SOURCES), n (points)."""
    rows = []
    for split, arguments in splits.items():
        sources = [source for _, source in negations(arguments).values()]
        rows += [(split, source, sources.count(source)) for source in SOURCES]
    return pd.DataFrame(rows, columns=["split", "source", "n"])


def claim_sources(splits: Mapping[str, Sequence[Argument]]) -> dict[str, int]:
    """How many different claims each source negates."""
    by_claim = {
        (argument.debate, argument.claim): source
        for arguments in splits.values()
        for argument, (_, source) in zip(arguments, negations(arguments).values(), strict=True)
    }
    return {source: [*by_claim.values()].count(source) for source in SOURCES}
