"""The bundled corpus: examples of four tasks with gold Universal Dependencies, written by a seeded grammar."""

import hashlib
from collections.abc import Callable, Iterator
from random import Random

from analysis.errors import InputError
from analysis.texts.bundled.drafts import Draft
from analysis.texts.bundled.events import mrpc, qnli
from analysis.texts.bundled.grammar import Sentence
from analysis.texts.bundled.questions import qqp
from analysis.texts.bundled.reviews import sst2
from analysis.texts.bundled.splits import belongs, check_split
from analysis.texts.examples import Example, Relation, Tag

DRAFTS: dict[str, Callable[[int, Random], Draft]] = {"mrpc": mrpc, "qqp": qqp, "sst-2": sst2, "qnli": qnli}
# The least and most words in a text, with punctuation.
LENGTHS = range(6, 42)
PAPER_LABELS = {"obj": "dobj"}


def key(draft: Draft) -> str:
    """The key of a draft: its lower-cased texts in any order; drafts with the same key are duplicates."""
    return "\n".join(sorted(sentence.text.lower() for sentence in draft.sentences))


def suits(draft: Draft) -> bool:
    """Whether the texts differ and have a natural length."""
    texts = {sentence.text for sentence in draft.sentences}
    return len(texts) == len(draft.sentences) and all(
        len(sentence) in LENGTHS for sentence in draft.sentences
    )


def fresh(task: str, label: int, split: str, seen: set[str], rng: Random) -> Draft:
    """A draft of the split that is not in `seen`; adds it to `seen`."""
    while True:
        draft = DRAFTS[task](label, rng)
        text = key(draft)
        if text not in seen and belongs(text, split) and suits(draft):
            seen.add(text)
            return draft


def check(task: str, n: int, split: str) -> None:
    """Raises `InputError` for an unknown task or split or a negative count."""
    if task not in DRAFTS:
        raise InputError(f"the bundled corpus has no task {task!r}: choose one of {', '.join(DRAFTS)}")
    check_split(split)
    if n < 0:
        raise InputError(f"n is {n}: ask for 0 or more examples")


def labelled_drafts(task: str, n: int, seed: int, split: str = "train") -> Iterator[Draft]:
    """`n` labelled sentences or sentence pairs with balanced labels; the same arguments always give the same ones."""
    check(task, n, split)
    rng = Random(f"{task} {split} {seed}")
    labels = [index % 2 for index in range(n)]
    rng.shuffle(labels)
    seen: set[str] = set()
    return (fresh(task, label, split, seen, rng) for label in labels)


def identifier(task: str, split: str, row: int, draft: Draft) -> str:
    """The id of an example: its row, and a digest of its texts, since another seed or n puts other texts in the row."""
    texts = "\n".join(sentence.text for sentence in draft.sentences)
    return f"{task}-{split}-{row:04d}-{hashlib.sha256(texts.encode()).hexdigest()[:8]}"


def relations(sentence: Sentence, text: int) -> Iterator[Relation]:
    """Every arc of a sentence between two words."""
    for word in sentence.words:
        if word.head:
            head = sentence.words[word.head - 1]
            yield Relation(PAPER_LABELS.get(word.label, word.label), text, word.span, head.span)


def example(name: str, draft: Draft) -> Example:
    """The draft as an example with gold relations and word tags."""
    numbered = list(enumerate(draft.sentences))
    arcs = [arc for text, sentence in numbered for arc in relations(sentence, text)]
    tags = [Tag(word.upos, text, word.span) for text, sentence in numbered for word in sentence.words]
    first, *rest = [sentence.text for sentence in draft.sentences]
    return Example(name, first, rest[0] if rest else None, draft.label, tuple(arcs), tuple(tags))


def generate(task: str, n: int, seed: int, split: str = "train") -> list[Example]:
    """`n` examples of a task (mrpc, qqp, sst-2, qnli) with gold relations and tags, balanced labels, no duplicates.

    Labels: mrpc and qqp 1 = same meaning, sst-2 1 = positive, qnli 0 = answered. The splits train, dev
    and test share no texts, whatever the seeds. Raises `InputError` for an unknown task or split.
    """
    drafts = enumerate(labelled_drafts(task, n, seed, split))
    return [example(identifier(task, split, row, draft), draft) for row, draft in drafts]
