"""Turns sentence frames into words with dependency relations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from analysis.texts.bundled.lexicon import article, inflect
from analysis.texts.bundled.notation import VERBAL, Group, Leaf, parse_frame
from analysis.texts.bundled.tags import penn_tag

NO_SPACE_BEFORE = frozenset({",", ".", "?", "!", ";", ":", "n't", "'s", "'"})
# The part of speech of closed-class words, whatever their relation.
CLOSED = {
    **dict.fromkeys(["I", "me", "my", "you", "he", "his", "she", "it", "its", "we", "us", "they"], "PRON"),
    **dict.fromkeys(["him", "her", "them", "their", "himself", "herself", "itself", "themselves"], "PRON"),
    **dict.fromkeys(["who", "nobody", "everyone", "everything", "nothing"], "PRON"),
    **dict.fromkeys(["the", "a", "some", "any", "every", "no", "all", "this", "these", "such"], "DET"),
    **dict.fromkeys(["how", "when", "where", "why"], "ADV"),
    **dict.fromkeys(["n't", "not", "'s", "'"], "PART"),
    **dict.fromkeys([",", ".", "?", "!"], "PUNCT"),
    **dict.fromkeys(["can", "ca", "will", "should", "could", "would", "must", "might", "may"], "AUX"),
}
BY_LABEL = {
    "det": "DET",
    "amod": "ADJ",
    "advmod": "ADV",
    "case": "ADP",
    "fixed": "ADP",
    "mark": "SCONJ",
    "cc": "CCONJ",
    "aux": "AUX",
    "aux:pass": "AUX",
    "cop": "AUX",
    "nummod": "NUM",
    "compound:prt": "ADP",
}
LEMMAS = {
    **{"n't": "not", "ca": "can"},
    **{
        "me": "I",
        "my": "I",
        "your": "you",
        "its": "it",
        "us": "we",
        "our": "we",
        "their": "they",
        "his": "he",
        "him": "he",
        "her": "she",
        "them": "they",
    },
    **{"'": "'s", "these": "this"},
    **{"best": "good", "more": "much", "less": "little"},
}
PLURAL_SUBJECTS = frozenset({"I", "you", "we", "they", "people"})


class Phrase(NamedTuple):
    """A word with its dependents, in order; `label` is its relation to its head, `entity` names what it mentions."""

    form: str
    lemma: str
    upos: str
    label: str
    number: str = "singular"
    left: tuple["Phrase", ...] = ()
    right: tuple["Phrase", ...] = ()
    xpos: str = ""
    entity: str = ""


Arc = tuple[Phrase, Phrase | None]


class Word(NamedTuple):
    """A word of a sentence: `head` is the 1-based position of its head (0: root), `span` its characters.

    `xpos` is its Penn Treebank tag. `entity` names what its phrase mentions, where the corpus tells.
    """

    form: str
    lemma: str
    upos: str
    head: int
    label: str
    span: tuple[int, int]
    xpos: str = ""
    entity: str = ""


@dataclass(frozen=True)
class Sentence:
    """A text and its dependency tree: the words from left to right, each with its head."""

    text: str
    arcs: Sequence[Arc]
    forms: Sequence[str]

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words; computed on first use, because most drawn texts are not kept."""
        position = {id(word): index for index, (word, _) in enumerate(self.arcs, start=1)}
        return tuple(
            Word(
                form,
                word.lemma,
                word.upos,
                position[id(above)] if above else 0,
                word.label,
                span,
                word.xpos,
                word.entity,
            )
            for form, span, (word, above) in zip(self.forms, spans(self.forms), self.arcs, strict=True)
        )

    def __len__(self) -> int:
        """Number of words."""
        return len(self.arcs)


Fillings = Mapping[str, Phrase | str | None]


def part_of_speech(word: str, feature: str, label: str) -> str:
    """The universal part of speech of a word from its feature, its form and its relation."""
    if feature.isupper():
        return feature
    if feature in VERBAL:
        return "AUX" if label in {"aux", "aux:pass", "cop"} else "VERB"
    if word == "to" and label == "mark":
        return "PART"
    if word in {"that", "what", "which"}:
        return {"det": "DET", "mark": "SCONJ"}.get(label, "PRON")
    known = CLOSED.get(word) or BY_LABEL.get(label)
    if known:
        return known
    if word.isdigit():
        return "NUM"
    return "PROPN" if word[0].isupper() else "NOUN"


@cache
def word_phrase(text: str, feature: str, label: str, number: str) -> Phrase:
    """A single word, inflected; the parts of a compound or a verb's particle become its dependents."""
    first, *rest = text.split("_")
    upos = part_of_speech(text, feature, label)
    if upos == "VERB" and rest:
        particle = Phrase(rest[0], rest[0], "ADP", "compound:prt", xpos="RP")
        form, tag = inflect(first, feature, number), penn_tag(first, upos, feature, label, number)
        return Phrase(form, first, upos, label, right=(particle,), xpos=tag)
    *modifiers, head = [first, *rest]
    left = tuple(Phrase(part, part, "NOUN", "compound", xpos="NN") for part in modifiers)
    own = "plural" if feature == "plural" or head in PLURAL_SUBJECTS else "singular"
    form = inflect(head, feature, number) if feature.islower() else head
    tag = penn_tag(head, upos, feature, label, number if feature in VERBAL else own)
    return Phrase(form, LEMMAS.get(head, head), upos, label, own, left, xpos=tag)


def number_of(item: Leaf | Group, fillings: Fillings) -> str | None:
    """The grammatical number of a subject, None for a relative pronoun."""
    if isinstance(item, Group):
        coordinated = any(isinstance(part, Group) and part.label == "conj" for part in item.items)
        return "plural" if coordinated else number_of(item.items[item.head], fillings)
    if item.slot:
        filling = fillings[item.text]
        if isinstance(filling, Phrase):
            return filling.number
        return "plural" if item.feature == "plural" else "singular"
    if item.text in {"who", "that", "which"}:
        return None
    return "plural" if item.feature == "plural" or item.text in PLURAL_SUBJECTS else "singular"


def grow_leaf(item: Leaf, fillings: Fillings, number: str, label: str) -> Phrase | None:
    """The phrase of a word or slot; None if nothing fills the slot."""
    if not item.slot:
        return word_phrase(item.text, item.feature, label, number)
    filling = fillings[item.text]
    if filling is None:
        return None
    if isinstance(filling, str):
        return word_phrase(filling, item.feature, label, number)
    return filling._replace(label=filling.label if label == "=" else label)


def grow(items: Sequence[Leaf | Group], fillings: Fillings, number: str) -> list[Phrase]:
    """The phrases of the items beside the head of a bracket, without empty slots."""
    grown = [
        grow_leaf(item, fillings, number, item.label)
        if isinstance(item, Leaf)
        else grow_group(item, fillings, number)
        for item in items
    ]
    return [phrase for phrase in grown if phrase]


def grow_group(frame: Group, fillings: Fillings, inherited: str) -> Phrase | None:
    """The phrase of a subtree; None if its head is an empty slot."""
    number = (number_of(frame.subject, fillings) if frame.subject else None) or inherited
    head = grow_leaf(frame.items[frame.head], fillings, number, frame.label)
    if head is None:
        return None
    left = (*grow(frame.items[: frame.head], fillings, number), *head.left)
    right = (*head.right, *grow(frame.items[frame.head + 1 :], fillings, number))
    coordinated = head.upos == "NOUN" and "conj" in [part.label for part in right]
    return head._replace(left=left, right=right, number="plural" if coordinated else head.number)


def build(notation: str, fillings: Fillings) -> Phrase:
    """The tree of a frame with its slots filled by phrases, words or (None) nothing."""
    return grow_group(parse_frame(notation), fillings, "singular")


def in_order(phrase: Phrase, above: Phrase | None = None) -> list[Arc]:
    """The words of a tree from left to right, each with its head."""
    arcs: list[Arc] = []
    for child in phrase.left:
        arcs += in_order(child, phrase)
    arcs.append((phrase, above))
    for child in phrase.right:
        arcs += in_order(child, phrase)
    return arcs


def single_punctuation(arcs: list[Arc]) -> list[Arc]:
    """The words without a comma at the start or directly before other punctuation."""
    following = [word.upos for word, _ in arcs[1:]] + [""]
    return [
        arc
        for position, (arc, after) in enumerate(zip(arcs, following, strict=True))
        if not (arc[0].form == "," and (position == 0 or after == "PUNCT"))
    ]


def surface(forms: list[str]) -> list[str]:
    """The forms as printed: `an` before vowels, a capital at the start."""
    following = [*forms[1:], ""]
    forms = [article(after) if form == "a" else form for form, after in zip(forms, following, strict=True)]
    return [forms[0][0].upper() + forms[0][1:], *forms[1:]]


def spans(forms: Sequence[str]) -> list[tuple[int, int]]:
    """The character span of each form in the sentence."""
    found, end = [], -1
    for form in forms:
        start = max(end, 0) if form in NO_SPACE_BEFORE else end + 1
        end = start + len(form)
        found.append((start, end))
    return found


def sentence(phrase: Phrase) -> Sentence:
    """The sentence of a tree."""
    arcs = single_punctuation(in_order(phrase))
    forms = surface([word.form for word, _ in arcs])
    text = "".join(form if form in NO_SPACE_BEFORE else f" {form}" for form in forms).removeprefix(" ")
    return Sentence(text, arcs, forms)
