"""The parse of one text: its arcs and its word tags, stored in few objects."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

Span = tuple[int, int]
Arc = tuple[str, Span, Span]  # the relation, the span of the dependent, the span of the head


class Parse(NamedTuple):
    """Arcs and word tags of a text: names joined by tabs, and the numbers of all spans in one list.

    Millions of small objects would be slow to make and to keep, so `arcs` and `tags` make theirs on demand.
    """

    relations: str
    ends: Sequence[int]
    upos: str
    words: Sequence[int]

    @classmethod
    def of(cls, arcs: Sequence[Arc], tags: Sequence[tuple[str, Span]]) -> "Parse":
        """The parse with these arcs and word tags."""
        return cls(
            "\t".join(label for label, *_ in arcs),
            [*chain.from_iterable((*dependent, *head) for _, dependent, head in arcs)],
            "\t".join(upos for upos, _ in tags),
            [*chain.from_iterable(span for _, span in tags)],
        )

    @property
    def arcs(self) -> list[Arc]:
        """Every relation with the spans of its dependent and its head."""
        spans = zip(*[iter(self.ends)] * 4, strict=True)
        return [
            (label, (a, b), (c, d))
            for (a, b, c, d), label in zip(spans, _names(self.relations), strict=False)
        ]

    @property
    def tags(self) -> list[tuple[str, Span]]:
        """Every word's universal part of speech with its span."""
        spans = zip(*[iter(self.words)] * 2, strict=True)
        return [(upos, span) for span, upos in zip(spans, _names(self.upos), strict=False)]


def _names(joined: str) -> Iterable[str]:
    return joined.split("\t")
