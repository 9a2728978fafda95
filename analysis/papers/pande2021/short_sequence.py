"""The short sequence in figures F1 and F2: it has every role, and its tokens are readable in print."""

from analysis.texts.examples import Example, Relation

FIRST, SECOND = "Old dogs never bite people", "They sleep well"
# Label, text, dependent and head of each relation.
RELATIONS = (
    ("amod", 0, "Old", "dogs"),
    ("nsubj", 0, "dogs", "bite"),
    ("advmod", 0, "never", "bite"),
    ("dobj", 0, "people", "bite"),
    ("nsubj", 1, "They", "sleep"),
    ("advmod", 1, "well", "sleep"),
)


def illustration(pair: bool = True) -> Example:
    """A sentence, or a pair of sentences, of at most eleven tokens with all four relations of the study."""
    texts = (FIRST, SECOND) if pair else (FIRST,)
    relations = tuple(
        Relation(label, text, _span(dependent, texts[text]), _span(head, texts[text]))
        for label, text, dependent, head in RELATIONS
        if text < len(texts)
    )
    return Example("illustration", *texts, relations=relations)


def _span(word: str, text: str) -> tuple[int, int]:
    """The position of a word in a text, in characters."""
    start = text.index(word)
    return start, start + len(word)
