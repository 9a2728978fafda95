"""Examples of a task: toy tasks from the package, tasks of GLUE from a folder of its files or the Hub."""

import json
import lzma
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.errors import InputError
from analysis.files import expand, read_text
from analysis.texts.examples import Example, Relation, Tag, sample
from analysis.texts.tasks import Task, check_source, task_named

FOLDER = files("analysis.texts") / "data"
# Two sentences that the chapters share: short, with every role of the study and three words in common.
PAIR = ("Old dogs never bite people", "Dogs love old people")


def load_examples(
    task: str, source: str | Path | None = None, split: str = "dev", n: int | None = None, seed: int = 0
) -> list[Example]:
    """Examples of a task, all of them or a seeded sample of `n`, in the order of the source.

    Toy tasks have no `source` (see `toy_examples`). For tasks of GLUE it is "hub" or the folder that holds
    `<TASK>/<split>.tsv` as GLUE ships them, such as "$DATA_DIR/glue". A larger sample contains the smaller. Every row
    is checked, also those outside the sample. Ids are `<task>-<split>-<row>`, with the row of the file (0-based); those
    of toy tasks name the task of GLUE and end in a digest of the texts. Lines with too few fields, of which GLUE's QQP
    has a few, are skipped and counted in a warning.
    """
    task = task_named(task)
    if split not in task.splits:
        raise InputError(f"split {split!r} is unknown; choose one of {', '.join(task.splits)}")
    if n is not None and n < 1:
        raise InputError(f"n = {n}: give at least 1 example, or None for all")
    if seed < 0:
        raise InputError(f"seed = {seed}: give a seed of at least 0")
    check_source(task, source)
    if task.like:
        return toy_examples(task.name, n, seed, split)
    if source == "hub":
        rows = import_module("analysis.texts.hub").rows_of(task, split)  # by name: no other source needs it
    else:
        rows = _folder_rows(task, expand(source), split)
    examples = []
    for number, place, texts, label in rows:
        if not all(text and text.strip() for text in texts):
            raise InputError(f"{place}: a text is empty; fill it in or remove the row")
        stripped = (text.strip() for text in texts)
        examples.append(Example(f"{task.name}-{split}-{number}", *stripped, label=label))
    return sample(examples, n, seed)


def toy_examples(task: str, n: int | None, seed: int = 0, split: str = "train") -> list[Example]:
    """`n` examples of a toy task with gold relations and tags; all of them for None.

    Labels: toy-mrpc and toy-qqp 1 = same meaning, toy-sst-2 1 = positive, toy-qnli 0 = answered.
    """
    return [*map(_example, bundled_sample(bundled_rows(task, split), n, seed, f"{split} examples of {task}"))]


def _example(row: dict[str, Any]) -> Example:
    text_a, text_b = (*row["texts"], None)[:2]
    relations = tuple(Relation(label, text, (a, b), (c, d)) for label, text, a, b, c, d in row["relations"])
    tags = tuple(Tag(upos, text, (a, b)) for upos, text, a, b in row["tags"])
    return Example(row["id"], text_a, text_b, row["label"], relations, tags)


def bundled_sample(rows: list, n: int | None, seed: int, what: str) -> list:
    """`n` of the bundled rows, all for None; raises InputError if there are fewer of `what`."""
    if n is not None and not 0 <= n <= len(rows):
        raise InputError(f"n is {n}: there are {len(rows)} {what}")
    return sample(rows, n, seed)


@cache
def bundled_rows(name: str, split: str) -> list[dict[str, Any]]:
    """The rows of a bundled file of a split, as `data/README.md` describes them."""
    return [json.loads(line) for line in bundled_text(name, split, "jsonl").splitlines()]


@cache
def bundled_text(name: str, split: str, suffix: str) -> str:
    """A bundled file. These texts are made up: they show that the study runs, and are no GLUE, treebank or ARCT."""
    return lzma.decompress((FOLDER / f"{name}-{split}.{suffix}.xz").read_bytes()).decode()


def _folder_rows(task: Task, folder: Path, split: str) -> Iterator[tuple[int, str, Sequence[str], Any]]:
    """Number, place, texts and label of the rows of a file in `<folder>/<TASK>/`; a test file may have no labels."""
    name = f"{task.splits[split].file}.tsv"
    path = folder / task.folder / name
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; source must be 'hub' or a folder that holds {task.folder}/{name} as GLUE ships it"
        )
    is_test = split.startswith("test")
    header = () if is_test else task.header
    table = read_table(path, header, skip=True)
    is_labelled = not is_test or task.label_column in table.columns
    require_columns(table, task.columns + (task.label_column,) * is_labelled, str(path))
    for number, row in zip(table.index, table.to_dict("records"), strict=True):
        place = f"{path}, line {number + (1 if header else 2)}"
        label = _label(row[task.label_column], task, place) if is_labelled else None
        yield number, place, [row[column] for column in task.columns], label


def _label(cell: str, task: Task, place: str) -> int | float:
    """The class index or the number in a cell; raises InputError for other content."""
    low, high = task.limits or (0, 0)
    with suppress(ValueError):  # an unknown class, or no number
        if task.labels:
            return task.labels.index(cell)
        if low <= float(cell) <= high:
            return float(cell)
    values = ", ".join(task.labels) or f"the numbers from {low:g} to {high:g}"
    raise InputError(f"{place}: label {cell!r} is not one of {values}; correct it or remove the row")


def read_table(path: Path, header: Sequence[str] = (), skip: bool = False) -> pd.DataFrame:
    """A tab-separated file with a header line, or with the columns in `header`; every cell is text.

    The index is the row in the file. With `skip`, lines with too few fields are left out with a warning, unless they
    are half of the lines or more.
    """
    lines = read_text(path).rstrip("\n").split("\n")
    columns, lines = (list(header), lines) if header else (lines[0].split("\t"), lines[1:])
    first = 1 if header else 2
    if not any(lines):
        raise InputError(f"{path}: no rows{'' if header else ' below the header'}; give a file with examples")
    rows = pd.Series(lines).str.split("\t")
    fields = rows.str.len()
    short = fields < len(columns)
    if skip and 0 < short.mean() < 0.5:
        warnings.warn(
            f"{path}: {short.sum():,} of {len(rows):,} lines have too few fields and are skipped, the first is line "
            f"{first + short.idxmax()}",
            stacklevel=2,
        )
        rows = rows[~short]
    wrong = fields[rows.index] != len(columns)
    if wrong.any():
        number = wrong.idxmax()
        raise InputError(
            f"{path}, line {first + number}: number of fields is {fields[number]}, not {len(columns)}; put one tab "
            "between fields and none inside a text"
        )
    return pd.DataFrame(rows.tolist(), index=rows.index, columns=columns)


def require_columns(table: pd.DataFrame, columns: Sequence[str], place: str) -> None:
    """Raises InputError if a column is missing from the table, or stands there twice."""
    if twice := [column for column in columns if [*table.columns].count(column) > 1]:
        raise InputError(f"{place}: the header names column {twice[0]} twice: rename or remove one of them")
    if missing := [column for column in columns if column not in table.columns]:
        raise InputError(
            f"{place}: no column {', '.join(missing)} among {', '.join(table.columns)}; "
            "check that the file belongs to the task and has a header"
        )
