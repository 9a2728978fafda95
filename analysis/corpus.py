"""The bundled corpus: examples of four tasks with gold Universal Dependencies relations, written by a seeded grammar."""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from json import dumps
from pathlib import Path
from random import Random

from analysis.drafts import DRAFTS, Draft
from analysis.errors import InputError
from analysis.examples import Example, Relation
from analysis.grammar import Sentence, Word

# Split by the remainder of a digest of the texts: three fifths train, a fifth each dev and test.
SPLITS = {"train": (2, 3, 4), "dev": (0,), "test": (1,)}
# The least and most words of a text, punctuation included.
LENGTHS = range(6, 42)
PAPER_LABELS = {"obj": "dobj"}


def key(draft: Draft) -> str:
    """What makes two drafts the same: their lower-cased texts, in whichever order."""
    return "\n".join(sorted(sentence.text.lower() for sentence in draft.sentences))


def belongs(text: str, split: str) -> bool:
    """Whether a key falls into a split."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % 5 in SPLITS[split]


def suits(draft: Draft) -> bool:
    """Whether the texts differ and have a natural length."""
    texts = {sentence.text for sentence in draft.sentences}
    return len(texts) == len(draft.sentences) and all(len(sentence.words) in LENGTHS for sentence in draft.sentences)


def fresh(task: str, label: int, split: str, seen: set[str], rng: Random) -> Draft:
    """A draft of the split that is not among `seen`, to which it is added."""
    while True:
        draft = DRAFTS[task](label, rng)
        text = key(draft)
        if text not in seen and belongs(text, split) and suits(draft):
            seen.add(text)
            return draft


def check(task: str, n: int, split: str) -> None:
    """Raise `InputError` for an unknown task or split or a negative count."""
    if task not in DRAFTS:
        raise InputError(f"unknown task {task!r}: choose one of {', '.join(DRAFTS)}")
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
    if n < 0:
        raise InputError(f"n is {n}: ask for 0 or more examples")


def drafts(task: str, n: int, seed: int, split: str = "train") -> list[Draft]:
    """`n` labelled sentences or sentence pairs, labels balanced; the same arguments always give the same list."""
    check(task, n, split)
    rng = Random(f"{task} {split} {seed}")
    labels = [index % 2 for index in range(n)]
    rng.shuffle(labels)
    seen: set[str] = set()
    return [fresh(task, label, split, seen, rng) for label in labels]


def identifiers(task: str, n: int, split: str) -> list[str]:
    """The ids of `n` examples."""
    return [f"{task}-{split}-{index:04d}" for index in range(n)]


def relations(sentence: Sentence, text: int) -> Iterator[Relation]:
    """Every arc of a sentence between two words."""
    for word in sentence.words:
        if word.head:
            head = sentence.words[word.head - 1]
            yield Relation(PAPER_LABELS.get(word.label, word.label), text, word.span, head.span)


def example(identifier: str, draft: Draft) -> Example:
    """The draft as an example with gold relations."""
    arcs = [arc for text, sentence in enumerate(draft.sentences) for arc in relations(sentence, text)]
    first, *rest = [sentence.text for sentence in draft.sentences]
    return Example(identifier, first, rest[0] if rest else None, draft.label, tuple(arcs))


def generate(task: str, n: int, seed: int, split: str = "train") -> list[Example]:
    """`n` examples of a task (mrpc, qqp, sst-2, qnli) with gold relations, exactly balanced labels, no duplicates.

    Labels: mrpc and qqp 1 = same meaning, sst-2 1 = positive, qnli 0 = answered. The splits train, dev
    and test share no texts, whatever the seeds. Raises `InputError` for an unknown task or split.
    """
    named = zip(identifiers(task, n, split), drafts(task, n, seed, split), strict=True)
    return [example(identifier, draft) for identifier, draft in named]
