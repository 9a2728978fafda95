"""How a text mentions its cast: in full, by name, by a noun, or by a pronoun if it is unambiguous."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from random import Random
from typing import NamedTuple

from analysis.texts.bundled.cast import Member
from analysis.texts.bundled.grammar import Phrase, build, in_order, word_phrase
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.meanings import draw, express
from analysis.texts.bundled.notation import Group, Leaf, parse_frame, slots

CLAUSES = frozenset({"ccomp", "xcomp", "advcl", "acl", "acl:relcl", "conj"})
POSSESSIVE = "nmod:poss"
# Relations in which a long mention would read badly.
TIGHT = frozenset({POSSESSIVE, "conj", "iobj"})
# How often a mention is a pronoun if it can be one, and how often a synonym replaces a noun.
PRONOUN_SHARES = {"subject": 0.85, "object": 0.75, "possessive": 0.9}
# The same if the sentence has already mentioned the member itself, or another member with the same pronoun.
REPEATED_SHARE, CONTESTED_FACTOR = 1.0, 0.4
SYNONYM_RATE = 0.25


class Slot(NamedTuple):
    """A slot of a frame: its relation to the word above, and its clause (0 is the main clause)."""

    name: str
    feature: str
    label: str
    clause: int

    @property
    def case(self) -> str:
        """The form of a pronoun in this slot."""
        if self.feature == "self":
            return "reflexive"
        if self.label == POSSESSIVE:
            return "possessive"
        return "subject" if self.label.startswith("nsubj") else "object"


@cache
def find_slots(notation: str) -> tuple[Slot, ...]:
    """The slots of a frame from left to right."""
    clauses = count(1)

    def walk(part: Group, clause: int) -> Iterator[Slot]:
        for item in part.items:
            if isinstance(item, Group):
                yield from walk(item, next(clauses) if item.label in CLAUSES else clause)
            elif isinstance(item, Leaf) and item.slot:
                yield Slot(item.text, item.feature, item.label or part.label, clause)

    return tuple(walk(parse_frame(notation), 0))


@dataclass
class Discourse:
    """What a text has said so far.

    `known` holds the slots of each member's wordings that the reader has seen. `called` says whom a wording names.
    `previous` holds the members in the previous sentence of the paragraph, the most salient first, and `current` those
    in the current sentence so far, in order.
    """

    rng: Random
    known: dict[str, set[str]] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    previous: list[Member] = field(default_factory=list)
    current: list[tuple[Member, Slot]] = field(default_factory=list)

    def end_sentence(self) -> None:
        """Ends a sentence: the subject of its main clause becomes most salient, then the order of mention counts."""
        ranked = sorted(
            self.current, key=lambda mention: (mention[1].clause, mention[1].case) != (0, "subject")
        )
        self.previous = list({member.name: member for member, _ in ranked}.values())
        self.current = []

    def end_paragraph(self) -> None:
        """Ends a paragraph: the next one names its people again."""
        self.previous = []

    def salient(self, member: Member, slot: Slot) -> bool:
        """Whether a reader understands the member's pronoun as the member.

        Within a sentence, a pronoun means the first member that it can mean. Otherwise it means the most salient member
        of the previous sentence that it can mean, unless this sentence has named another; an object cannot mean its own
        subject.
        """
        here = [(other, place) for other, place in self.current if other.pronoun == member.pronoun]
        if any(other is member for other, _ in here):
            return here[0][0] is member
        arguments = [place.clause == slot.clause and place.label != POSSESSIVE for _, place in here]
        if here and (slot.label == POSSESSIVE or not all(arguments)):
            return False
        passed = [other for other, _ in here]
        open_to = [
            other for other in self.previous if other.pronoun == member.pronoun and other not in passed
        ]
        return bool(open_to) and open_to[0] is member

    def mention(self, member: Member, slot: Slot) -> Phrase:
        """The phrase that mentions a member in a slot."""
        pronoun = slot.case == "reflexive" or (
            slot.feature != "named"
            and self.salient(member, slot)
            and self.rng.random() < self._pronoun_share(member, slot)
        )
        phrase = self._pronoun(member, slot) if pronoun else self._named(member, slot)
        self.current.append((member, slot))
        return phrase._replace(entity=member.name)

    def _repeated(self, member: Member) -> bool:
        return any(other is member for other, _ in self.current)

    def _pronoun_share(self, member: Member, slot: Slot) -> float:
        if self._repeated(member):
            return REPEATED_SHARE
        contested = any(other.pronoun == member.pronoun for other, _ in self.current)
        return PRONOUN_SHARES[slot.case] * (CONTESTED_FACTOR if contested else 1.0)

    def _pronoun(self, member: Member, slot: Slot) -> Phrase:
        form = read("stories")["pronouns"][member.pronoun][slot.case]
        label = POSSESSIVE if slot.case == "possessive" else ""
        number = "plural" if member.pronoun == "plural" else "singular"
        return word_phrase(form, "", label, number)._replace(number=number)

    def _named(self, member: Member, slot: Slot) -> Phrase:
        forms = [form for form in self._forms(member, slot) if self._owned(form, member, slot)]
        self.rng.shuffle(forms)
        if self._repeated(member):
            forms.sort(key=len)  # a second mention in one sentence is as short as possible
        built = ((form, self._build(form, member, slot)) for form in forms)
        form, phrase = next(
            pair for pair in built if self.called.get(words(pair[1]), member.name) == member.name
        )
        self.called[words(phrase)] = member.name
        self.known.setdefault(member.name, set()).update(slots(form), {"owner"})
        return possessive(phrase) if slot.label == POSSESSIVE else phrase

    def _forms(self, member: Member, slot: Slot) -> list[str]:
        """The wordings that fit: full ones for a member that is new to the reader, otherwise those with known words."""
        wordings = read("stories")["mentions"][member.kind]
        if member.name in self.known:
            return [form for form in wordings["again"] if set(slots(form)) <= self.known[member.name]]
        return wordings["short" if slot.label in TIGHT or slot.feature == "named" else "first"]

    def _owned(self, form: str, member: Member, slot: Slot) -> bool:
        """Whether the wording has no owner, or the owner is known and can be named before the thing."""
        if "owner" not in slots(form):
            return True
        owner, place = member.owner, slot._replace(name="owner", label=POSSESSIVE, feature="")
        if owner is None or owner.name not in self.known:
            return False
        return self.salient(owner, place) or not self._repeated(owner)

    def _build(self, form: str, member: Member, slot: Slot) -> Phrase:
        fillings = {name: self._fill(name, member, slot) for name in slots(form)}
        return build(form, fillings)

    def _fill(self, name: str, member: Member, slot: Slot) -> Phrase | str | None:
        if name == "owner":
            return self.mention(member.owner, slot._replace(name=name, label=POSSESSIVE, feature=""))
        rate = SYNONYM_RATE if name == "noun" else 0.0
        return express(member.content.get(name) or draw(name, self.rng), self.rng, rate)


def words(phrase: Phrase) -> str:
    """The words of a phrase."""
    return " ".join(word.form for word, _ in in_order(phrase))


def possessive(phrase: Phrase) -> Phrase:
    """The phrase with its possessive mark."""
    mark = "'" if words(phrase).endswith("s") and phrase.number == "plural" else "'s"
    return phrase._replace(right=(*phrase.right, word_phrase(mark, "", "case", "singular")))
