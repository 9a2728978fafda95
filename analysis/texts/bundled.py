"""Made-up texts that are part of the package: toy tasks, documents and arguments, with gold analyses.

`data/README.md` says how they were made. They show that the study runs; they are not GLUE, a treebank or ARCT.
"""

import json
import lzma
import re
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

import pandas as pd

from analysis.errors import InputError
from analysis.texts.examples import Example, Relation, Tag, sample

FOLDER = files("analysis.texts") / "data"
ARGUMENT_COLUMNS = (
    "#id", "warrant0", "warrant1", "correctLabelW0orW1", "reason", "claim", "debateTitle", "debateInfo",
    "negatedClaim",
)  # fmt: skip
# Two sentences that the chapters share: short, with every role of the study and three words in common.
PAIR = ("Old dogs never bite people", "Dogs love old people")
RIGHT, WRONG, ABSENT = "in the right warrant", "in the wrong warrant", "absent"  # where the only "not" is


def toy_examples(task: str, n: int | None, seed: int = 0, split: str = "train") -> list[Example]:
    """`n` examples of a toy task with gold relations and tags; all of them for None.

    Labels: toy-mrpc and toy-qqp 1 = same meaning, toy-sst-2 1 = positive, toy-qnli 0 = answered.
    """
    return [*map(_example, _sample(_rows(task, split), n, seed, f"{split} examples of {task}"))]


def bundled_documents(n: int | None, split: str, seed: int = 0) -> str:
    """CoNLL-U of `n` documents of 60 to 200 words, with gold trees (UD v2) and chains (`Entity`), no singletons."""
    return "".join(_sample(documents_of(split), n, seed, f"{split} documents"))


def bundled_paragraphs(n: int | None, split: str, seed: int = 0) -> dict[str, list[str]]:
    """The paragraphs of `n` bundled documents, by the name of the document."""
    paragraphs = {}
    for document in _sample(documents_of(split), n, seed, f"{split} documents"):
        start, *parts = document.split("# newpar\n")
        name = start.removeprefix("# newdoc id = ").strip()
        paragraphs[name] = [" ".join(re.findall("^# text = (.*)$", part, re.MULTILINE)) for part in parts]
    return paragraphs


def documents_of(split: str) -> list[str]:
    """CoNLL-U of each bundled document of a split."""
    start = "# newdoc id"
    return [start + part for part in _text("documents", split, "conllu").split(start)[1:]]


def bundled_arguments(
    n: int, seed: int = 0, split: str = "train", productivity: float = 0.7, coverage: float = 0.6
) -> pd.DataFrame:
    """`n` arguments in the columns of the ARCT files (Habernal 2018), then the claim's negation.

    In a share `coverage` of the arguments, exactly one warrant contains a "not" (also n't and cannot); in a share
    `productivity` of these, it is the right warrant. Both are rounded to whole arguments. The cue is the only
    information on the label in the warrants alone. Labels are balanced.
    """
    for name, share in (("productivity", productivity), ("coverage", coverage)):
        if not 0 <= share <= 1:
            raise InputError(f"{name} is {share}: give a share from 0 to 1")
    applicable = round(coverage * n)
    right = round(productivity * applicable)
    rows, arguments = _rows("arguments", split), []
    for cue, count in ((RIGHT, right), (WRONG, applicable - right), (ABSENT, n - applicable)):
        pool = [row for row in rows if row["cue"] == cue]
        arguments += _sample(pool, count, seed, f'{split} arguments with "not" {cue}')
    rng = Random(f"arguments {split} {seed}")
    rng.shuffle(arguments)
    labels = [number % 2 for number in range(n)]
    rng.shuffle(labels)
    table = [
        _argument(split, number, *pair) for number, pair in enumerate(zip(labels, arguments, strict=True))
    ]
    return pd.DataFrame(table, columns=ARGUMENT_COLUMNS)


def _example(row: dict[str, Any]) -> Example:
    text_a, text_b = (*row["texts"], None)[:2]
    relations = tuple(Relation(label, text, (a, b), (c, d)) for label, text, a, b, c, d in row["relations"])
    tags = tuple(Tag(upos, text, (a, b)) for upos, text, a, b in row["tags"])
    return Example(row["id"], text_a, text_b, row["label"], relations, tags)


def _argument(split: str, number: int, label: int, row: dict[str, str]) -> tuple:
    warrants = [row["right"], row["wrong"]][:: -1 if label else 1]
    name = f"argument-{split}-{number:04d}-{row['id']}"
    return name, *warrants, label, row["reason"], row["claim"], row["title"], row["title"], row["negated"]


def _sample(rows: list, n: int | None, seed: int, what: str) -> list:
    if n is not None and not 0 <= n <= len(rows):
        raise InputError(f"n is {n}: there are {len(rows)} {what}")
    return sample(rows, n, seed)


@cache
def _rows(name: str, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _text(name, split, "jsonl").splitlines()]


@cache
def _text(name: str, split: str, suffix: str) -> str:
    return lzma.decompress((FOLDER / f"{name}-{split}.{suffix}.xz").read_bytes()).decode()
