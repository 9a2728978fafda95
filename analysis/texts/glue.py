"""Examples of a task: toy tasks from the package, tasks of GLUE from a folder of its files or the Hub."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.errors import InputError
from analysis.files import expand, read_text
from analysis.texts.bundled import toy_examples
from analysis.texts.examples import Example, sample
from analysis.texts.tasks import Task, check_source, task_named

HUB_DATASET = "nyu-mll/glue"
HUB_TIMEOUT = 10.0  # seconds


def load_examples(
    task: str, source: str | Path | None = None, split: str = "dev", n: int | None = None, seed: int = 0
) -> list[Example]:
    """Examples of a task, all of them or a seeded sample of `n`, in the order of the source.

    Toy tasks have no `source`: their examples are part of the package (see `bundled`). For tasks of GLUE it is "hub" or
    the folder that holds `<TASK>/<split>.tsv` as GLUE ships them (with environment variables, as in "$DATA_DIR/glue").
    A sample depends only on the seed and the number of rows, and a larger sample contains the smaller. Every row of a
    file is checked, also those outside the sample. Ids are `<task>-<split>-<row>`, with the row of the file (0-based);
    those of toy tasks name the task of GLUE and end in a digest of the texts.

    GLUE's QQP has a few lines with too few fields. Such lines are skipped, and a warning says how many they are.

    Raises InputError for a wrong argument, file or row, and if the Hub does not answer.
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
    if not task.folder:
        raise InputError(f"task {task.name!r} is no task of GLUE: read its examples from its own files")
    rows = _hub_rows(task, split) if source == "hub" else _folder_rows(task, expand(source), split)
    prefix = f"{task.name}-{split}"
    return sample([_example(f"{prefix}-{number}", *row, task) for number, *row in rows], n, seed)


def _example(name: str, place: str, texts: Sequence[Any], label: Any, task: Task) -> Example:
    """A row as an example, without white space around its texts; `place` names its file and line.

    `label` is a class index or a number, None if the split has no labels, or any other content of the source.
    """
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError(f"{place}: a text is empty; fill it in or remove the row")
    if task.limits is None:
        valid, values = label in range(len(task.labels)), f"one of {', '.join(task.labels)}"
    else:
        low, high = task.limits
        valid = isinstance(label, int | float) and low <= label <= high
        values = f"a number from {low:g} to {high:g}"
    if label is not None and not valid:
        raise InputError(f"{place}: label {label!r} is not {values}; correct it or remove the row")
    text_a, text_b = (*(text.strip() for text in texts), None)[:2]
    return Example(name, text_a, text_b, label)


def _folder_rows(task: Task, folder: Path, split: str) -> Iterator[tuple[int, str, Sequence[str], Any]]:
    """Number, place, texts and label of the rows of a file in `<folder>/<TASK>/`; a test file may have no labels."""
    name = f"{task.splits[split].file}.tsv"
    path = folder / task.folder / name
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; source must be 'hub' or a folder that holds "
            f"{task.folder}/{name} as GLUE ships it"
        )
    is_test = split.startswith("test")
    header = () if is_test else task.header
    table = read_table(path, header, skip=True)
    is_labelled = not is_test or task.label_column in table.columns
    require_columns(table, task.columns + (task.label_column,) * is_labelled, str(path))
    texts = table[[*task.columns]].itertuples(index=False, name=None)
    labels = [_label(cell, task) for cell in table[task.label_column]] if is_labelled else repeat(None)
    first = 1 if header else 2
    for row, sides, label in zip(table.index.tolist(), texts, labels, strict=False):
        yield row, f"{path}, line {first + row}", sides, label


def _label(cell: str, task: Task) -> Any:
    """The class index or the number in a cell; the cell itself if it holds neither."""
    if task.limits is None:
        return task.labels.index(cell) if cell in task.labels else cell
    try:
        return float(cell)
    except ValueError:
        return cell


def read_table(path: Path, header: Sequence[str] = (), skip: bool = False) -> pd.DataFrame:
    """A tab-separated file with a header line, or with the columns in `header`; every cell is text.

    The index is the row in the file (0-based). With `skip`, lines with too few fields are left out and counted in a
    warning, unless they are half of the lines or more. Raises InputError for bytes that are not UTF-8, a file without
    rows and a wrong number of fields.
    """
    lines = read_text(path).rstrip("\n").split("\n")
    columns, rows = (list(header), lines) if header else (lines[0].split("\t"), lines[1:])
    if not any(rows):
        raise InputError(f"{path}: no rows{'' if header else ' below the header'}; give a file with examples")
    fields = {number: row.split("\t") for number, row in enumerate(rows)}
    short = [number for number, cells in fields.items() if len(cells) < len(columns)]
    first, norm = (1, "task") if header else (2, "header")
    if skip and short and 2 * len(short) < len(rows):
        warnings.warn(
            f"{path}: {len(short):,} of {len(rows):,} lines have too few fields and are skipped, the first is line "
            f"{first + short[0]}",
            stacklevel=2,
        )
        fields = {number: cells for number, cells in fields.items() if len(cells) >= len(columns)}
    for number, cells in fields.items():
        if len(cells) != len(columns):
            raise InputError(
                f"{path}, line {first + number}: number of fields is {len(cells)}, the {norm} has {len(columns)}; put "
                "one tab between fields and none inside a text"
            )
    return pd.DataFrame(fields.values(), index=[*fields], columns=columns)


def _hub_rows(task: Task, split: str) -> Iterator[tuple[int, str, Sequence[str], Any]]:
    """Number, place, texts and label of the rows of the Hub's dataset, in which the label -1 means unlabelled."""
    name, columns = task.splits[split].hub, task.hub_columns or task.columns
    table = hub_table(HUB_DATASET, task.config, name)
    place = f"{HUB_DATASET} {task.config}, split {name}"
    require_columns(table, (*columns, "label"), place)
    texts = table[[*columns]].itertuples(index=False, name=None)
    for row, (sides, label) in enumerate(zip(texts, table["label"].tolist(), strict=True)):
        yield row, f"{place}, row {row}", sides, None if label == -1 else label


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
