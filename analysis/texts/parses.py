"""The parse of a text, as a treebank or a pipeline gives it."""

from typing import NamedTuple

from analysis.texts.examples import Relation, Tag

# Pande 2021 calls UD's `obj` dobj; the other names on the left are those of spaCy's English models.
SAME_RELATION = {"obj": "dobj", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "auxpass": "aux:pass"}


class Parse(NamedTuple):
    """The arcs (label, span of the dependent, span of the head) and words (UPOS or "", span) of a text."""

    arcs: list[tuple[str, int, int, int, int]]
    words: list[tuple[str, int, int]]

    def relations(self, text: int = 0) -> list[Relation]:
        """The arcs as relations in text number `text` of an example."""
        return [
            Relation(SAME_RELATION.get(name, name), text, (a, b), (c, d)) for name, a, b, c, d in self.arcs
        ]

    def tags(self, text: int = 0) -> list[Tag]:
        """The words as tags in text number `text` of an example."""
        return [Tag(upos, text, (start, end)) for upos, start, end in self.words]
