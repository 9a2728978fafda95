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
from analysis.texts.examples import Example
from analysis.texts.tasks import Task, task_named

HUB_DATASET = "nyu-mll/glue"
HUB_TIMEOUT = 10.0  # seconds
BUNDLED_SIZE = 400  # examples of the bundled corpus where no number is asked for


class Row(NamedTuple):
    """One row as its source gives it, unchecked; `place` says where it stands.

    `label` is a class index or a number, None where the split has no labels, or whatever else the source holds.
    """

    id: str
    place: str
    texts: tuple[Any, ...]
    label: Any


def load_examples(
    task: str, source: str | Path, split: str = "dev", n: int | None = None, seed: int = 0
) -> list[Example]:
    """Examples of a task, all of them or a seeded sample of `n`, in the order of the source.

    `source` is "bundled", "hub" or the folder that holds `<TASK>/<split>.tsv` as GLUE ships them (with
    environment variables, as in "$DATA_DIR/glue"). All examples come where `n` is None or more than there are.
    A sample depends on the seed and the number of rows only, and a larger one contains the smaller; every row of
    a file is checked, drawn or not. Ids are `<task>-<split>-<row>`, 0-based, whatever the sample.

    Of the bundled corpus, `n` examples (`BUNDLED_SIZE` where None) are written anew for each `n` and seed: a larger
    number does not contain the smaller. A digest of the texts ends their ids, `<task>-<split>-<row>-<digest>`, so
    that equal ids mean equal texts.

    Raises InputError where the request, a file or a row is wrong, or the Hub does not answer.
    """
    described = task_named(task)
    check_request(described, split, n, seed)
    if source == "bundled":
        # Here, since the other sources do not need the grammar.
        from analysis.texts.bundled.corpus import generate

        return generate(task, BUNDLED_SIZE if n is None else n, seed, split)
    if not described.folder:
        raise InputError(f"task {described.name!r} is no task of GLUE: read its examples from its own files")
    rows = hub_rows(described, split) if source == "hub" else folder_rows(described, expand(source), split)
    return sample(validated(rows, described), n, seed)


def check_request(task: Task, split: str, n: int | None, seed: int) -> None:
    """Raises InputError where an argument of `load_examples` is outside its domain."""
    if split not in task.splits:
        raise InputError(f"split {split!r} is unknown; choose one of {', '.join(task.splits)}")
    if n is not None and n < 1:
        raise InputError(f"n = {n}: ask for at least 1 example, or for all with n = None")
    if seed < 0:
        raise InputError(f"seed = {seed}: give a seed of at least 0")


def sample(examples: list[Example], n: int | None, seed: int) -> list[Example]:
    """The examples of `n` rows drawn without replacement, in their order; all where there are no more."""
    if n is None or n >= len(examples):
        return examples
    # The head of one permutation, so that asking for more examples keeps those there were.
    drawn = np.random.default_rng(seed).permutation(len(examples))[:n]
    return [examples[row] for row in sorted(drawn)]


def validated(rows: Iterable[Row], task: Task) -> list[Example]:
    """The rows as examples, without white space around the texts.

    Raises InputError for an empty text and for a label outside the task.
    """
    return [validated_row(row, task) for row in rows]


def validated_row(row: Row, task: Task) -> Example:
    """One row as an example. Raises InputError as `validated` does."""
    if not all(isinstance(text, str) and text.strip() for text in row.texts):
        raise InputError(f"{row.place}: a text is empty; fill it in or remove the row")
    if row.label is not None and not permitted(row.label, task):
        wanted = (
            f"one of {', '.join(task.labels)}"
            if task.limits is None
            else "a number from {:g} to {:g}".format(*task.limits)
        )
        raise InputError(f"{row.place}: label {row.label!r} is not {wanted}; correct it or remove the row")
    text_a, text_b = (*(text.strip() for text in row.texts), None)[:2]
    return Example(row.id, text_a, text_b, row.label)


def permitted(label: Any, task: Task) -> bool:
    """Whether a label is a class of the task, or a number within its limits."""
    if task.limits is None:
        return label in range(len(task.labels))
    return isinstance(label, int | float) and task.limits[0] <= label <= task.limits[1]


def folder_rows(task: Task, folder: Path, split: str) -> list[Row]:
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
    """The class index, or the number, that a cell names; the cell itself where it names none."""
    if task.limits is None:
        return task.labels.index(cell) if cell in task.labels else cell
    try:
        return float(cell)
    except ValueError:
        return cell


def read_table(path: Path, header: Sequence[str] = ()) -> pd.DataFrame:
    """A tab-separated file with a header line, or with the columns that `header` names; every cell as it stands.

    Raises InputError for bytes that are not UTF-8, for no rows and for a wrong number of fields.
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
    """Raises InputError for the first line with other than the header's number of fields.

    `named` says that the file lacks the header, the first of the lines. pandas fills short rows up with empty cells
    and takes a long first row for an index, silently.
    """
    expected = lines[0].count("\t") + 1
    for number, line in enumerate(lines, start=0 if named else 1):
        if (fields := line.count("\t") + 1) != expected:
            wanted = f"the task has {expected}" if named else f"the header has {expected}"
            raise InputError(
                f"{path}, line {number}: number of fields is {fields}, {wanted}; "
                "put one tab between fields and none inside a text"
            )


def hub_rows(task: Task, split: str) -> list[Row]:
    """The rows of a split of the Hub's dataset, where the label -1 means unlabelled."""
    name = task.splits[split].hub
    table = download(task, name)
    place = f"{HUB_DATASET} {task.config}, split {name}"
    require_columns(table, (*task.hub_columns, "label"), place)
    labels = [None if label == -1 else label for label in table["label"].tolist()]
    return table_rows(
        table[list(task.hub_columns)], labels, f"{task.name}-{split}", lambda row: f"{place}, row {row}"
    )


def download(task: Task, split: str) -> pd.DataFrame:
    """A split of the Hub's dataset, found and cached as HF_ENDPOINT, HF_HOME and HF_HUB_OFFLINE say.

    Raises InputError where the Hub does not answer or does not hold the dataset.
    """
    import datasets  # here, since importing it takes longer than reading a file
    import huggingface_hub

    try:
        if not huggingface_hub.is_offline_mode():
            # load_dataset tries a dead address six times, half a minute in all; this asks once.
            huggingface_hub.HfApi().dataset_info(HUB_DATASET, timeout=HUB_TIMEOUT)
        return datasets.load_dataset(HUB_DATASET, task.config, split=split).to_pandas()
    except Exception as error:  # the clients pass on what their HTTP library and their file readers raise
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"Hugging Face dataset {HUB_DATASET}, {task.config}: {reason}; check the network or HF_ENDPOINT, "
            "set HF_HUB_OFFLINE=1 to use a copy downloaded before, or give a folder of GLUE files as source"
        ) from None


def require_columns(table: pd.DataFrame, columns: Iterable[str], place: str) -> None:
    """Raises InputError where a column is missing from the table."""
    if missing := [column for column in columns if column not in table.columns]:
        raise InputError(
            f"{place}: no column {', '.join(missing)} among {', '.join(table.columns)}; "
            "check that the file belongs to the task and has a header"
        )


def table_rows(
    texts: pd.DataFrame, labels: list[Any] | None, prefix: str, place: Callable[[int], str]
) -> list[Row]:
    """Rows out of the columns with the texts; `place` tells where the row of a 0-based number stands."""
    columns = (texts[column].tolist() for column in texts.columns)
    labelled = zip(zip(*columns, strict=True), labels or [None] * len(texts), strict=True)
    return [Row(f"{prefix}-{row}", place(row), pair, label) for row, (pair, label) in enumerate(labelled)]
