"""Examples of a task from the bundled corpus, a folder of GLUE files or the Hub."""

import csv
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import InputError
from analysis.files import expand
from analysis.texts.bundled import bundled_examples
from analysis.texts.examples import Example
from analysis.texts.tasks import Task, task_named

HUB_DATASET = "nyu-mll/glue"
HUB_TIMEOUT = 10.0  # seconds


class TaskRow(NamedTuple):
    """One row, not yet checked; `place` names its file and line.

    `label` is a class index or a number, None if the split has no labels, or any other content of the source.
    """

    id: str
    place: str
    texts: tuple[Any, ...]
    label: Any


def load_examples(
    task: str, source: str | Path, split: str = "dev", n: int | None = None, seed: int = 0
) -> list[Example]:
    """Examples of a task, all of them or a seeded sample of `n`, in the order of the source.

    `source` is "bundled", "hub" or the folder that holds `<TASK>/<split>.tsv` as GLUE ships them (with environment
    variables, as in "$DATA_DIR/glue"). A sample depends only on the seed and the number of rows, and a larger sample
    contains the smaller. Every row of a file is checked, also those outside the sample. Ids are `<task>-<split>-<row>`,
    with the row of the file (0-based).

    The bundled corpus is made up (see `bundled`). Its ids end in a digest of the texts,
    `<task>-<split>-<row>-<digest>`.

    Raises InputError for a wrong argument, file or row, and if the Hub does not answer.
    """
    described = task_named(task)
    check_request(described, split, n, seed)
    if source == "bundled":
        return bundled_examples(task, n, seed, split)
    if not described.folder:
        raise InputError(f"task {described.name!r} is no task of GLUE: read its examples from its own files")
    rows = hub_rows(described, split) if source == "hub" else folder_rows(described, expand(source), split)
    return sample(validated(rows, described), n, seed)


def check_request(task: Task, split: str, n: int | None, seed: int) -> None:
    """Raises InputError for an argument of `load_examples` outside its domain."""
    if split not in task.splits:
        raise InputError(f"split {split!r} is unknown; choose one of {', '.join(task.splits)}")
    if n is not None and n < 1:
        raise InputError(f"n = {n}: ask for at least 1 example, or for all with n = None")
    if seed < 0:
        raise InputError(f"seed = {seed}: give a seed of at least 0")


def sample(examples: list[Example], n: int | None, seed: int) -> list[Example]:
    """The examples of `n` rows drawn without replacement, in their order; all if there are no more."""
    if n is None or n >= len(examples):
        return examples
    # The beginning of one permutation, so that a larger sample contains the smaller.
    drawn = np.random.default_rng(seed).permutation(len(examples))[:n]
    return [examples[row] for row in sorted(drawn)]


def validated(rows: Iterable[TaskRow], task: Task) -> list[Example]:
    """The rows as examples, without white space around the texts.

    Raises InputError for an empty text and for a label outside the task.
    """
    return [_validated(row, task) for row in rows]


def _validated(row: TaskRow, task: Task) -> Example:
    if not all(isinstance(text, str) and text.strip() for text in row.texts):
        raise InputError(f"{row.place}: a text is empty; fill it in or remove the row")
    if row.label is not None and not permitted(row.label, task):
        limits = task.limits and "a number from {:g} to {:g}".format(*task.limits)
        wanted = limits or f"one of {', '.join(task.labels)}"
        raise InputError(f"{row.place}: label {row.label!r} is not {wanted}; correct it or remove the row")
    text_a, text_b = (*(text.strip() for text in row.texts), None)[:2]
    return Example(row.id, text_a, text_b, row.label)


def permitted(label: Any, task: Task) -> bool:
    """Whether a label is a class of the task, or a number within its limits."""
    if task.limits is None:
        return label in range(len(task.labels))
    return isinstance(label, int | float) and task.limits[0] <= label <= task.limits[1]


def folder_rows(task: Task, folder: Path, split: str) -> list[TaskRow]:
    """The rows of a split's file in `<folder>/<TASK>/`; a test file may come without labels, as in GLUE."""
    name = f"{task.splits[split].file}.tsv"
    path = folder / task.folder / name
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; source must be 'bundled', 'hub' or a folder that holds "
            f"{task.folder}/{name} as GLUE ships it"
        )
    test = split.startswith("test")
    header = () if test else task.header
    table = read_table(path, header)
    labelled = not test or task.label_column in table.columns
    require_columns(table, task.columns + (task.label_column,) * labelled, str(path))
    labels = [read_label(cell, task) for cell in table[task.label_column]] if labelled else None
    first = 1 if header else 2
    return table_rows(
        table[list(task.columns)], labels, f"{task.name}-{split}", lambda row: f"{path}, line {row + first}"
    )


def read_label(cell: str, task: Task) -> Any:
    """The class index or the number in a cell; the cell itself if it holds neither."""
    if task.limits is None:
        return task.labels.index(cell) if cell in task.labels else cell
    try:
        return float(cell)
    except ValueError:
        return cell


def read_table(path: Path, header: Sequence[str] = ()) -> pd.DataFrame:
    """A tab-separated file with a header line, or with the columns in `header`; every cell is text.

    Raises InputError for bytes that are not UTF-8, a file without rows and a wrong number of fields.
    """
    text = "\t".join(header) + "\n" * bool(header) + read_text(path).rstrip("\n")
    if not text.partition("\n")[2]:
        raise InputError(f"{path}: no rows{'' if header else ' below the header'}; give a file with examples")
    check_fields(path, text.split("\n"), bool(header))
    return pd.read_csv(
        StringIO(text),
        sep="\t",
        quoting=csv.QUOTE_NONE,
        dtype=str,
        keep_default_na=False,
        skip_blank_lines=False,
    )


def read_text(path: Path) -> str:
    """A text file without its byte order mark. Raises InputError with the first line that is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: not UTF-8; save the file in UTF-8") from None


def check_fields(path: Path, lines: list[str], named: bool = False) -> None:
    """Raises InputError for the first line whose number of fields is not that of the header.

    `named` says that the header, the first of the lines, is not in the file. pandas itself would fill short rows with
    empty cells and take a long first row for an index, without an error.
    """
    expected = lines[0].count("\t") + 1
    for number, line in enumerate(lines, start=0 if named else 1):
        if (fields := line.count("\t") + 1) != expected:
            wanted = f"the task has {expected}" if named else f"the header has {expected}"
            raise InputError(
                f"{path}, line {number}: number of fields is {fields}, {wanted}; "
                "put one tab between fields and none inside a text"
            )


def hub_rows(task: Task, split: str) -> list[TaskRow]:
    """The rows of a split of the Hub's dataset, in which the label -1 means unlabelled."""
    name, columns = task.splits[split].hub, task.hub_columns or task.columns
    table = hub_table(HUB_DATASET, task.config, name)
    place = f"{HUB_DATASET} {task.config}, split {name}"
    require_columns(table, (*columns, "label"), place)
    labels = [None if label == -1 else label for label in table["label"].tolist()]
    return table_rows(table[list(columns)], labels, f"{task.name}-{split}", lambda row: f"{place}, row {row}")


def hub_table(dataset: str, config: str, split: str) -> pd.DataFrame:
    """A split of a dataset of the Hub, from the server or the cache that HF_ENDPOINT, HF_HOME and HF_HUB_OFFLINE name.

    Raises InputError if the Hub does not answer or does not hold the dataset.
    """
    import datasets  # slow to import, and only the Hub needs it
    import huggingface_hub

    try:
        if not huggingface_hub.is_offline_mode():
            # load_dataset would try a dead address for half a minute; this asks once.
            huggingface_hub.HfApi().dataset_info(dataset, timeout=HUB_TIMEOUT)
        return datasets.load_dataset(dataset, config, split=split).to_pandas()
    except Exception as error:  # of any type, from the HTTP library or a reader of files
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"Hugging Face dataset {dataset}, {config}: {reason}; check the network or HF_ENDPOINT, "
            "set HF_HUB_OFFLINE=1 to use a copy downloaded before, or give a folder of GLUE files as source"
        ) from None


def require_columns(table: pd.DataFrame, columns: Iterable[str], place: str) -> None:
    """Raises InputError if a column is missing from the table."""
    if missing := [column for column in columns if column not in table.columns]:
        raise InputError(
            f"{place}: no column {', '.join(missing)} among {', '.join(table.columns)}; "
            "check that the file belongs to the task and has a header"
        )


def table_rows(
    texts: pd.DataFrame, labels: list[Any] | None, prefix: str, place: Callable[[int], str]
) -> list[TaskRow]:
    """The rows of a table whose columns are the texts; `place` gives the place of a row (0-based)."""
    columns = (texts[column].tolist() for column in texts.columns)
    labelled = zip(zip(*columns, strict=True), labels or [None] * len(texts), strict=True)
    return [TaskRow(f"{prefix}-{row}", place(row), pair, label) for row, (pair, label) in enumerate(labelled)]
