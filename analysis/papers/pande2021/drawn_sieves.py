"""The short sequence of figures F1 and F2, which has every role, and the sieves of its roles."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.scores.extraction import read_sieves
from analysis.statistics.roles import DIRECTIONS, RELATIONS, ROLES, WINDOWS
from analysis.texts.examples import Example, Relation, Relations
from analysis.texts.glue import PAIR

# Label, text, dependent and governor of each relation in the bundled pair.
ARCS = (
    ("amod", 0, "Old", "dogs"),
    ("nsubj", 0, "dogs", "bite"),
    ("advmod", 0, "never", "bite"),
    ("dobj", 0, "people", "bite"),
    ("nsubj", 1, "Dogs", "love"),
    ("amod", 1, "old", "people"),
    ("dobj", 1, "people", "love"),
)


def illustration(pair: bool = True) -> Example:
    """The bundled pair of sentences, or the first of them, with all four relations of the study: twelve tokens."""
    texts = PAIR if pair else PAIR[:1]
    relations = tuple(
        Relation(label, text, _span(dependent, texts[text]), _span(governor, texts[text]))
        for label, text, dependent, governor in ARCS
        if text < len(texts)
    )
    return Example("illustration", *texts, relations=relations)


def _span(word: str, text: str) -> tuple[int, int]:
    """The position of a word in a text, in characters."""
    start = text.index(word)
    return start, start + len(word)


def role_sieves(
    encoder: Encoder,
    example: Example,
    parses: Relations,
    window: int = 2,
    relations: Sequence[str] = RELATIONS,
    direction: str = "dependent_to_head",
    arithmetic: str = "corrected",
    max_tokens: int = 128,
) -> dict[str, Float[np.ndarray, "token token"]]:
    """The matrix of every role in a sequence, with the choices of `compose`: window, relations, direction.

    `syntactic` pools the word pairs of `relations`; each pair counts once. The entropy factor of `block` belongs to a
    head, not to the sieve.
    """
    local = WINDOWS[arithmetic].format(window)
    pairs = {
        label: [form.format(label) for form in DIRECTIONS[direction]] for label in {*RELATIONS, *relations}
    }
    names = [local, "delimiter", "block", "cls", "sep", "match", *chain.from_iterable(pairs.values())]
    sieves = read_sieves(encoder, example, parses, names, max_tokens)
    if local in sieves:
        sieves["local"] = sieves[local]
    for label, directions in pairs.items():
        if directions[0] in sieves:
            sieves[label] = np.mean([sieves[name] for name in directions], axis=0)
    counts = Counter(pair.label for pair in parses[example.id])
    if pooled := [label for label in relations if label in sieves]:
        weights = [counts[label] for label in pooled]
        sieves["syntactic"] = np.average([sieves[label] for label in pooled], axis=0, weights=weights)
    return {role: sieves[role] for role in ROLES if role in sieves}
