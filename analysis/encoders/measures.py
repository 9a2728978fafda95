"""Metrics of predictions, and two baselines without an encoder: a constant prediction and a bag of words."""

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Num
from scipy import stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from sklearn.pipeline import make_pipeline

from analysis.encoders.interventions import check_labels
from analysis.errors import InputError
from analysis.texts.examples import Example, as_sequences
from analysis.texts.tasks import CHOICE, CLASSIFICATION, REGRESSION, Task, task_named

Answers = Num[np.ndarray, " example"]


def _correlation(function: Callable) -> Callable[[Answers, Answers], float]:
    """The correlation of `function`; 0 for constant answers, as in Matthews' correlation."""

    def correlation(labels: Answers, predictions: Answers) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.ConstantInputWarning)
            return float(np.nan_to_num(function(labels, predictions).statistic))

    return correlation


METRIC_FUNCTIONS: Mapping[str, Callable[[Answers, Answers], float]] = {
    "accuracy": accuracy_score,
    "f1": f1_score,
    "matthews": matthews_corrcoef,
    "pearson": _correlation(stats.pearsonr),
    "spearman": _correlation(stats.spearmanr),
}


def measure(task: str | Task, labels: Answers, predictions: Answers) -> dict[str, float]:
    """The task's metrics: proportions (accuracy, F1 of class 1) and correlations (Matthews, Pearson, Spearman)."""
    return {name: float(METRIC_FUNCTIONS[name](labels, predictions)) for name in task_named(task).metrics}


def metrics_of(task: str | Task) -> tuple[str, ...]:
    """The metrics in which a task's changes are reported: its own, accuracy and the loss; of a regression Pearson's.

    Spearman's correlation is left out, since ranks are no function of means over sequences.
    """
    task = task_named(task)
    if task.kind == REGRESSION:
        return "pearson", "loss"
    return tuple(dict.fromkeys([*task.metrics, "accuracy", "loss"]))


def positive_class(task: str | Task) -> int:
    """The class whose log odds an AUC ranks: that of pairs that match, or the second one."""
    task = task_named(task)
    return task.labels.index(task.match) if task.match in task.labels else 1


def match_class(name: str | Task) -> int:
    """The class of pairs that match; raises InputError for a task without one."""
    task = task_named(name)
    if not (task.pair and task.match in task.labels):
        raise InputError(
            f"pair task {task.name!r} has {len(task.columns)} text(s), {len(task.labels)} classes and the match "
            f"{task.match!r}: choose a task with two texts, and classes of which match is one (data/README.md)"
        )
    return task.labels.index(task.match)


def decide(task: str | Task, logits: Num[np.ndarray, "example output"]) -> Answers:
    """The predicted class or choice, which has the largest logit; for regression the predicted number."""
    return logits[:, 0] if task_named(task).kind == REGRESSION else logits.argmax(axis=-1)


def baselines(
    task: str | Task, train: Sequence[Example], dev: Sequence[Example]
) -> dict[str, dict[str, float]]:
    """Dev scores of a constant prediction, and of a linear model on bags of words.

    The constant is the majority class, the mean (regression) or the first choice. The linear model is a logistic or a
    ridge regression; it counts the words of each text of a pair separately. For multiple choice it takes the choice
    with the highest probability.
    """
    if len({example.label for example in train}) < 2:
        raise InputError(f"all {len(train)} training examples have one label: take more examples")
    task = task_named(task)
    check_labels(dev, task.kind == CHOICE)
    constants = {
        CLASSIFICATION: DummyClassifier(strategy="most_frequent"),
        REGRESSION: DummyRegressor(),
        CHOICE: DummyClassifier(strategy="constant", constant=0),
    }
    train_labels, labels = ([example.label for example in split] for split in (train, dev))
    model = constants[task.kind].fit(np.zeros((len(train), 1)), train_labels)  # which reads the labels alone
    constant = model.predict(np.zeros((len(dev), 1)))
    answers = {"constant": constant, "bag_of_words": _answers_by_words(task, train, dev)}
    return {name: measure(task, np.array(labels), predictions) for name, predictions in answers.items()}


def _answers_by_words(task: Task, train: Sequence[Example], dev: Sequence[Example]) -> Answers:
    linear = Ridge() if task.kind == REGRESSION else LogisticRegression(max_iter=2000)
    model = make_pipeline(CountVectorizer(token_pattern=r"\S+"), linear)  # of the words that `marked` gives
    texts = [[marked(sequence) for sequence in as_sequences(split)] for split in (train, dev)]
    if task.kind != CHOICE:
        return model.fit(texts[0], [example.label for example in train]).predict(texts[1])
    is_label = [number == example.label for example in train for number in range(len(example.choices))]
    probability = model.fit(texts[0], is_label).predict_proba(texts[1])[:, 1]
    return probability.reshape(len(dev), -1).argmax(axis=1)


def marked(example: Example) -> str:
    """The words of a sequence, each with the number of its text."""
    return " ".join(
        f"{side}:{word}" for side, text in enumerate(example.texts) for word in text.lower().split()
    )
