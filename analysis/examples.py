"""What the study measures attention on: sequences of one or two texts, and their grammatical relations."""

from dataclasses import dataclass
from typing import NamedTuple


class Relation(NamedTuple):
    """One grammatical relation between two words of one text.

    `text` is 0 for `text_a` and 1 for `text_b`; `dependent` and `head` are character spans
    (start, end) in that text. Labels are Universal Dependencies labels, except that UD's `obj` is
    written `dobj`, the name the paper uses.
    """

    label: str
    text: int
    dependent: tuple[int, int]
    head: tuple[int, int]


@dataclass(frozen=True)
class Example:
    """One sequence: a text or a pair of texts, with a class index and gold relations where known."""

    id: str
    text_a: str
    text_b: str | None = None
    label: int | None = None
    relations: tuple[Relation, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The one or two texts, in order."""
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)
