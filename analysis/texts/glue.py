"""Examples of a task from the bundled corpus, a folder of GLUE files or the Hub."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.errors import InputError
from analysis.files import expand
from analysis.texts.bundled import bundled_examples
from analysis.texts.examples import Example
from analysis.texts.tasks import Task, task_named

HUB_DATASET = "nyu-mll/glue"
HUB_TIMEOUT = 10.0  # seconds


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
    task = task_named(task)
    if split not in task.splits:
        raise InputError(f"split {split!r} is unknown; choose one of {', '.join(task.splits)}")
    if n is not None and n < 1:
        raise InputError(f"n = {n}: ask for at least 1 example, or for all with n = None")
    if seed < 0:
        raise InputError(f"seed = {seed}: give a seed of at least 0")
    if source == "bundled":
        return bundled_examples(task.name, n, seed, split)
    if not task.folder:
        raise InputError(f"task {task.name!r} is no task of GLUE: read its examples from its own files")
    rows = _hub_rows(task, split) if source == "hub" else _folder_rows(task, expand(source), split)
    prefix = f"{task.name}-{split}"
    return sample([_example(f"{prefix}-{number}", *row, task) for number, row in enumerate(rows)], n, seed)


def sample(examples: list[Example], n: int | None, seed: int) -> list[Example]:
    """The examples of `n` rows drawn without replacement, in their order; all if there are no more."""
    if n is None or n >= len(examples):
        return examples
    # The beginning of one permutation, so that a larger sample contains the smaller.
    drawn = np.random.default_rng(seed).permutation(len(examples))[:n]
    return [examples[row] for row in sorted(drawn)]


def _example(name: str, place: str, texts: Sequence[Any], label: Any, task: Task) -> Example:
    """A row as an example, without white space around its texts; `place` names its file and line.

    `label` is a class index or a number, None if the split has no labels, or any other content of the source.
    """
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError(f"{place}: a text is empty; fill it in or remove the row")
    if task.limits is None:
        permitted, wanted = label in range(len(task.labels)), f"one of {', '.join(task.labels)}"
    else:
        low, high = task.limits
        permitted = isinstance(label, int | float) and low <= label <= high
        wanted = f"a number from {low:g} to {high:g}"
    if label is not None and not permitted:
        raise InputError(f"{place}: label {label!r} is not {wanted}; correct it or remove the row")
    text_a, text_b = (*(text.strip() for text in texts), None)[:2]
    return Example(name, text_a, text_b, label)


def _folder_rows(task: Task, folder: Path, split: str) -> Iterator[tuple[str, Sequence[str], Any]]:
    """Place, texts and label of the rows of a file in `<folder>/<TASK>/`; a test file may come without labels."""
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
    texts = table[[*task.columns]].itertuples(index=False, name=None)
    cells = table[task.label_column] if labelled else repeat(None)
    for line, (own, cell) in enumerate(zip(texts, cells, strict=False), start=1 if header else 2):
        yield f"{path}, line {line}", own, None if cell is None else _label(cell, task)


def _label(cell: str, task: Task) -> Any:
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
    # pandas would fill short rows with empty cells and take a long first row for an index, without an error.
    lines = text.split("\n")
    expected = lines[0].count("\t") + 1
    for number, line in enumerate(lines, start=0 if header else 1):
        if (fields := line.count("\t") + 1) != expected:
            raise InputError(
                f"{path}, line {number}: number of fields is {fields}, the {'task' if header else 'header'} has "
                f"{expected}; put one tab between fields and none inside a text"
            )
    options = {"sep": "\t", "quoting": csv.QUOTE_NONE, "dtype": str}
    return pd.read_csv(StringIO(text), **options, keep_default_na=False, skip_blank_lines=False)


def read_text(path: Path) -> str:
    """A text file without its byte order mark. Raises InputError with the first line that is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: not UTF-8; save the file in UTF-8") from None


def _hub_rows(task: Task, split: str) -> Iterator[tuple[str, Sequence[str], Any]]:
    """Place, texts and label of the rows of the Hub's dataset, in which the label -1 means unlabelled."""
    name, columns = task.splits[split].hub, task.hub_columns or task.columns
    table = hub_table(HUB_DATASET, task.config, name)
    place = f"{HUB_DATASET} {task.config}, split {name}"
    require_columns(table, (*columns, "label"), place)
    texts = table[[*columns]].itertuples(index=False, name=None)
    for row, (own, label) in enumerate(zip(texts, table["label"].tolist(), strict=True)):
        yield f"{place}, row {row}", own, None if label == -1 else label


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
