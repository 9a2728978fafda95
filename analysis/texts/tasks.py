"""The tasks as data: what is asked, how answers are scored, and where GLUE files and the Hub keep the examples.

Source: GLUE (Wang et al. 2019); Pande 2021 takes four of its tasks (MRPC, QQP, SST-2, QNLI).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from analysis.errors import InputError

CLASSIFICATION, REGRESSION, CHOICE = "classification", "regression", "multiple choice"


class Split(NamedTuple):
    """Where a split is kept: the name of its GLUE file without `.tsv`, and the Hub's name."""

    file: str
    hub: str


SPLITS = {"train": Split("train", "train"), "dev": Split("dev", "validation"), "test": Split("test", "test")}
MNLI_SPLITS = {
    "train": Split("train", "train"),
    "dev": Split("dev_matched", "validation_matched"),
    "dev_mismatched": Split("dev_mismatched", "validation_mismatched"),
    "test": Split("test_matched", "test_matched"),
    "test_mismatched": Split("test_mismatched", "test_mismatched"),
}


@dataclass(frozen=True)
class Task:
    """One task: its kind, its labels in class order, its metrics, and where GLUE files and the Hub keep it.

    The first metric selects checkpoints. `labels` are empty for regression, whose values lie in `limits`, and for
    multiple choice, whose label is the number of the right choice. `columns` and `hub_columns` name the one or two
    texts. `header` names the columns of train and dev files that come without a header line. `folder` is empty
    where GLUE does not hold the task.
    """

    name: str
    metrics: tuple[str, ...]
    labels: tuple[str, ...] = ()
    kind: str = CLASSIFICATION
    limits: tuple[float, float] | None = None
    folder: str = ""
    columns: tuple[str, ...] = ()
    label_column: str = "label"
    config: str = ""
    hub_columns: tuple[str, ...] = ()
    splits: Mapping[str, Split] = field(default_factory=lambda: SPLITS)
    header: tuple[str, ...] = ()

    @property
    def pair(self) -> bool:
        """Whether an example has two texts."""
        return len(self.columns) == 2

    @property
    def outputs(self) -> int:
        """How many logits a classifier gives for one sequence."""
        return len(self.labels) if self.kind == CLASSIFICATION else 1


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="mrpc",
            metrics=("accuracy", "f1"),
            labels=("0", "1"),
            folder="MRPC",
            columns=("#1 String", "#2 String"),
            label_column="Quality",
            config="mrpc",
            hub_columns=("sentence1", "sentence2"),
        ),
        Task(
            name="qqp",
            metrics=("accuracy", "f1"),
            labels=("0", "1"),
            folder="QQP",
            columns=("question1", "question2"),
            label_column="is_duplicate",
            config="qqp",
            hub_columns=("question1", "question2"),
        ),
        Task(
            name="sst-2",
            metrics=("accuracy",),
            labels=("0", "1"),
            folder="SST-2",
            columns=("sentence",),
            config="sst2",
            hub_columns=("sentence",),
        ),
        Task(
            name="qnli",
            metrics=("accuracy",),
            labels=("entailment", "not_entailment"),
            folder="QNLI",
            columns=("question", "sentence"),
            config="qnli",
            hub_columns=("question", "sentence"),
        ),
        Task(
            name="rte",
            metrics=("accuracy",),
            labels=("entailment", "not_entailment"),
            folder="RTE",
            columns=("sentence1", "sentence2"),
            config="rte",
            hub_columns=("sentence1", "sentence2"),
        ),
        Task(
            name="cola",
            metrics=("matthews", "accuracy"),
            labels=("0", "1"),
            folder="CoLA",
            columns=("sentence",),
            config="cola",
            hub_columns=("sentence",),
            header=("source", "label", "star", "sentence"),
        ),
        Task(
            name="sts-b",
            metrics=("pearson", "spearman"),
            kind=REGRESSION,
            limits=(0.0, 5.0),
            folder="STS-B",
            columns=("sentence1", "sentence2"),
            label_column="score",
            config="stsb",
            hub_columns=("sentence1", "sentence2"),
        ),
        Task(
            name="mnli",
            metrics=("accuracy",),
            labels=("entailment", "neutral", "contradiction"),
            folder="MNLI",
            columns=("sentence1", "sentence2"),
            label_column="gold_label",
            config="mnli",
            hub_columns=("premise", "hypothesis"),
            splits=MNLI_SPLITS,
        ),
    )
}


def task_named(task: str | Task) -> Task:
    """The task of a name in TASKS; a Task stands for itself. Raises InputError for an unknown name."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise InputError(f"task {task!r} is unknown; choose one of {', '.join(TASKS)}")
    return TASKS[task]
