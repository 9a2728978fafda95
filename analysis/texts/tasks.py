"""The tasks as data, and their examples from the bundled corpus, a folder of GLUE files or the Hub.

Source: GLUE (Wang et al. 2019), the four tasks of Pande 2021.
"""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.errors import InputError
from analysis.files import expand
from analysis.texts.examples import Example, Relation

HUB_DATASET = "nyu-mll/glue"
HUB_TIMEOUT = 10.0  # seconds
BUNDLED_SIZE = 400  # examples of the bundled corpus where no number is asked for
SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # our name: the Hub's name


@dataclass(frozen=True)
class Task:
    """One task: where GLUE files and the Hub keep it, its labels in class order, its metrics.

    `columns` and `hub_columns` name the one or two texts; the first metric selects checkpoints.
    """

    name: str
    folder: str
    columns: tuple[str, ...]
    label_column: str
    labels: tuple[str, ...]
    config: str
    hub_columns: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def pair(self) -> bool:
        """Whether an example has two texts."""
        return len(self.columns) == 2


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="mrpc",
            folder="MRPC",
            columns=("#1 String", "#2 String"),
            label_column="Quality",
            labels=("0", "1"),
            config="mrpc",
            hub_columns=("sentence1", "sentence2"),
            metrics=("accuracy", "f1"),
        ),
        Task(
            name="qqp",
            folder="QQP",
            columns=("question1", "question2"),
            label_column="is_duplicate",
            labels=("0", "1"),
            config="qqp",
            hub_columns=("question1", "question2"),
            metrics=("accuracy", "f1"),
        ),
        Task(
            name="sst-2",
            folder="SST-2",
            columns=("sentence",),
            label_column="label",
            labels=("0", "1"),
            config="sst2",
            hub_columns=("sentence",),
            metrics=("accuracy",),
        ),
        Task(
            name="qnli",
            folder="QNLI",
            columns=("question", "sentence"),
            label_column="label",
            labels=("entailment", "not_entailment"),
            config="qnli",
            hub_columns=("question", "sentence"),
            metrics=("accuracy",),
        ),
    )
}


class Row(NamedTuple):
    """One row as its source gives it, unchecked; `place` says where it stands.

    `label` is a class index, None where the split has no labels, or whatever else the source holds.
    """

    id: str
    place: str
    texts: tuple[Any, ...]
    label: Any
    relations: tuple[Relation, ...] | None = None


def load_examples(
    task: str, source: str | Path, split: str = "dev", n: int | None = None, seed: int = 0
) -> list[Example]:
    """Examples of a task, all of them or a seeded sample of `n`, in the order of the source.

    `source` is "bundled", "hub" or the folder that holds `<TASK>/<split>.tsv` as GLUE ships them (with
    environment variables, as in "$DATA_DIR/glue"). All examples come where `n` is None or more than
    there are (bundled: `BUNDLED_SIZE` where None). A sample depends on the seed and the number of rows
    only, and a larger one contains the smaller. Ids are `<task>-<split>-<row>`, 0-based, whatever the
    sample; every row of a file is checked, drawn or not.

    Raises InputError where the request, a file or a row is wrong, or the Hub does not answer.
    """
    check_request(task, split, n, seed)
    described = TASKS[task]
    if source == "bundled":
        rows = bundled_rows(described, split, BUNDLED_SIZE if n is None else n, seed)
    elif source == "hub":
        rows = hub_rows(described, split)
    else:
        rows = folder_rows(described, expand(source), split)
    return sample(validated(rows, described), n, seed)


def check_request(task: str, split: str, n: int | None, seed: int) -> None:
    """Raises InputError where an argument of `load_examples` is outside its domain."""
    if task not in TASKS:
        raise InputError(f"task {task!r} is unknown; choose one of {', '.join(TASKS)}")
    if split not in SPLITS:
        raise InputError(f"split {split!r} is unknown; choose one of {', '.join(SPLITS)}")
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
    if row.label is not None and row.label not in range(len(task.labels)):
        raise InputError(
            f"{row.place}: label {row.label!r} is not one of {', '.join(task.labels)}; "
            "correct it or remove the row"
        )
    text_a, text_b = (*(text.strip() for text in row.texts), None)[:2]
    return Example(row.id, text_a, text_b, row.label, row.relations)


def bundled_rows(task: Task, split: str, n: int, seed: int) -> list[Row]:
    """`n` examples that the seeded grammar writes."""
    from analysis.texts.bundled.corpus import (
        generate,  # here, since the other sources do not need the grammar
    )

    return [
        Row(example.id, f"bundled corpus, {example.id}", example.texts, example.label, example.relations)
        for example in generate(task.name, n, seed, split)
    ]


def folder_rows(task: Task, folder: Path, split: str) -> list[Row]:
    """The rows of `<folder>/<TASK>/<split>.tsv`; a test file may come without labels, as in GLUE."""
    path = folder / task.folder / f"{split}.tsv"
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; source must be 'bundled', 'hub' or a folder that holds "
            f"{task.folder}/{split}.tsv as GLUE ships it"
        )
    table = read_table(path)
    labelled = split != "test" or task.label_column in table.columns
    require_columns(table, task.columns + (task.label_column,) * labelled, str(path))
    classes = {label: index for index, label in enumerate(task.labels)}
    labels = [classes.get(label, label) for label in table[task.label_column]] if labelled else None
    return table_rows(
        table[list(task.columns)], labels, f"{task.name}-{split}", lambda row: f"{path}, line {row + 2}"
    )


def read_table(path: Path) -> pd.DataFrame:
    """A tab-separated file with a header, every cell a string as it stands in the file.

    Raises InputError for bytes that are not UTF-8, for no rows and for a wrong number of fields.
    """
    text = read_text(path).rstrip("\n")
    if "\n" not in text:
        raise InputError(f"{path}: no rows below the header; give a file with examples")
    check_fields(path, text.split("\n"))
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


def check_fields(path: Path, lines: list[str]) -> None:
    """Raises InputError for the first line with other than the header's number of fields.

    pandas fills short rows up with empty cells and takes a long first row for an index, silently.
    """
    expected = lines[0].count("\t") + 1
    for number, line in enumerate(lines, start=1):
        if (fields := line.count("\t") + 1) != expected:
            raise InputError(
                f"{path}, line {number}: number of fields is {fields}, the header has {expected}; "
                "put one tab between fields and none inside a text"
            )


def hub_rows(task: Task, split: str) -> list[Row]:
    """The rows of a split of the Hub's dataset, where the label -1 means unlabelled."""
    table = download(task, SPLITS[split])
    place = f"{HUB_DATASET} {task.config}, split {SPLITS[split]}"
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
