"""What the study measures attention on: sequences of one or two texts, and their grammatical relations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components


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


def clusters(examples: Sequence[Example]) -> list[str]:
    """The cluster of each example: one name for those that share a text, directly or through others.

    Scores of a question that is asked of several sentences are not independent; whole clusters are. Case is
    ignored. A cluster is called after the least id in it, whatever the order of the examples.
    """
    texts = [text.casefold() for example in examples for text in example.texts]
    rows = np.repeat(np.arange(len(examples)), [len(example.texts) for example in examples])
    names, columns = np.unique(np.array(texts, dtype=object), return_inverse=True)
    nodes = len(examples) + len(names)  # every example is linked with its texts
    links = csr_array((np.ones(len(rows)), (rows, columns + len(examples))), shape=(nodes, nodes))
    _, component = connected_components(links, directed=False)
    ids = pd.Series([example.id for example in examples])
    return ids.groupby(component[: len(examples)]).transform("min").tolist()
