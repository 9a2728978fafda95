"""The tasks: their kinds, labels and metrics, and where GLUE files and the Hub keep the examples.

Source: GLUE (Wang et al. 2019); Pande 2021 takes four of its tasks (MRPC, QQP, SST-2, QNLI).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from analysis.errors import InputError

CLASSIFICATION, REGRESSION, CHOICE = "classification", "regression", "multiple choice"
BINARY, ENTAILMENT = ("0", "1"), ("entailment", "not_entailment")  # labels
SENTENCES = ("sentence1", "sentence2")


class Split(NamedTuple):
    """The names of a split: that of its GLUE file without `.tsv`, and that on the Hub."""

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
    """One task: its kind, its labels and metrics, and where GLUE files and the Hub keep its examples."""

    name: str
    metrics: tuple[str, ...]  # the first selects checkpoints
    labels: tuple[str, ...] = ()  # in class order; none for regression and multiple choice
    kind: str = CLASSIFICATION
    limits: tuple[float, float] | None = None  # of the values of a regression
    folder: str = ""  # in the folder of GLUE's files
    columns: tuple[str, ...] = ()  # with the one or two texts
    label_column: str = "label"
    hub_columns: tuple[str, ...] = ()  # with the texts, if they have other names on the Hub
    splits: Mapping[str, Split] = field(default_factory=lambda: SPLITS)
    header: tuple[str, ...] = ()  # of train and dev files that have no header line
    match: str = ""  # the label of a pair whose texts match
    like: str = ""  # the task of GLUE that a toy task imitates

    @property
    def config(self) -> str:
        """The name of the task on the Hub."""
        return self.name.replace("-", "")

    @property
    def pair(self) -> bool:
        """Whether an example has two texts."""
        return len(self.columns) == 2

    @property
    def outputs(self) -> int:
        """The number of logits of a classifier for one sequence."""
        return len(self.labels) if self.kind == CLASSIFICATION else 1


_TASKS = (
    Task(
        "mrpc", ("accuracy", "f1"), BINARY, folder="MRPC", columns=("#1 String", "#2 String"),
        label_column="Quality", hub_columns=SENTENCES, match="1",
    ),
    Task(
        "qqp", ("accuracy", "f1"), BINARY, folder="QQP", columns=("question1", "question2"),
        label_column="is_duplicate", match="1",
    ),
    Task("sst-2", ("accuracy",), BINARY, folder="SST-2", columns=("sentence",)),
    Task("qnli", ("accuracy",), ENTAILMENT, folder="QNLI", columns=("question", "sentence"), match="entailment"),
    Task("rte", ("accuracy",), ENTAILMENT, folder="RTE", columns=SENTENCES, match="entailment"),
    Task(
        "cola", ("matthews", "accuracy"), BINARY, folder="CoLA", columns=("sentence",),
        header=("source", "label", "star", "sentence"),
    ),
    Task(
        "sts-b", ("pearson", "spearman"), kind=REGRESSION, limits=(0.0, 5.0), folder="STS-B", columns=SENTENCES,
        label_column="score",
    ),
    Task(
        "mnli", ("accuracy",), ("entailment", "neutral", "contradiction"), folder="MNLI", columns=SENTENCES,
        label_column="gold_label", hub_columns=("premise", "hypothesis"), splits=MNLI_SPLITS,
        match="entailment",
    ),
)  # fmt: skip
GLUE_TASKS = {task.name: task for task in _TASKS}
TOY_TASKS = {
    f"toy-{name}": replace(GLUE_TASKS[name], name=f"toy-{name}", folder="", like=name)
    for name in ("mrpc", "qqp", "sst-2", "qnli")
}
TASKS = GLUE_TASKS | TOY_TASKS


def task_named(task: str | Task) -> Task:
    """The task with a name of TASKS, or the task itself; raises InputError for an unknown name."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise InputError(f"task {task!r} is unknown; choose one of {', '.join(TASKS)}")
    return TASKS[task]


def original(name: str) -> str:
    """The task of GLUE that a toy task imitates; any other name stays the same."""
    return TOY_TASKS[name].like if name in TOY_TASKS else name


def toy(name: str) -> str:
    """The toy task that imitates a task; raises InputError for a task without one."""
    toy_name = f"toy-{original(name)}"
    if toy_name not in TOY_TASKS:
        raise InputError(f"task {name!r} has no toy version; choose one of {', '.join(TOY_TASKS)}")
    return toy_name


def check_source(task: Task, source: str | Path | None) -> None:
    """Raises InputError for a toy task with a source and for a task of GLUE without one."""
    if task.like and source is not None:
        raise InputError(
            f"task {task.name!r} is made up and has no source: leave source out, or name {task.like} to read {source}"
        )
    if not task.like and source is None:
        toy_name = f"toy-{task.name}"
        remedy = f", or name {toy_name}, which needs none" if toy_name in TOY_TASKS else ""
        raise InputError(f"task {task.name!r} needs a source: give hub or a folder of GLUE files{remedy}")
