"""Fine-tune an encoder on a task with Hugging Face's Trainer, and measure it beside two baselines."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from transformers import (
    DataCollatorWithPadding,
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
    set_seed,
)

from analysis.encoders.models import load_classifier, load_encoder, load_tokenizer, training_precision
from analysis.errors import InputError
from analysis.files import write_text
from analysis.texts.examples import Example
from analysis.texts.tasks import TASKS

QUIET = {"report_to": [], "per_device_eval_batch_size": 64}
TRAINING = {"train_sampling_strategy": "group_by_length", "logging_strategy": "epoch", "save_strategy": "no"}
BEST_EPOCH = {
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "save_only_model": True,  # optimiser states would be pickles
    "save_total_limit": 1,
    "load_best_model_at_end": True,
}
RECIPE = "recipe.json"
METRICS = {"accuracy": accuracy_score, "f1": f1_score}


def measure(task: str, labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """The task's scores (proportions): accuracy, and F1 of the positive class for the paraphrase tasks."""
    return {name: float(METRICS[name](labels, predictions)) for name in TASKS[task].metrics}


def finetune(
    name: str | Path,
    task: str,
    train: Sequence[Example],
    dev: Sequence[Example],
    folder: Path,
    epochs: float | int = 3,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    warmup: float | int = 0.1,
    seed: int = 0,
    max_tokens: int = 128,
    device: str = "cpu",
    precision: str = "auto",
) -> dict[str, float]:
    """Fine-tunes an encoder, keeps the epoch with the best dev score in `folder`, returns that epoch's scores.

    The defaults are the recipe of Devlin 2019 for GLUE. `warmup` is the share of steps with rising learning
    rate. With `precision` bfloat16 the matrix products are in bfloat16 and the weights stay float32; `auto` is
    bfloat16 where the device has instructions for it. The scores are those of the kept epoch in float32; because
    the dev set chooses the epoch, they are slightly optimistic. The checkpoint is written as safetensors when
    training has ended, or not at all. One that stands in `folder` and was made by the same recipe (weights,
    examples, options and versions) is not made again. Raises InputError for unlabelled examples and an unknown
    precision.
    """
    precision = training_precision(device, precision)
    options = [epochs, batch_size, learning_rate, warmup, seed, max_tokens, device, precision]
    recipe = _recipe(name, task, train, dev, options)
    if (scores := _kept_scores(folder, recipe)) is not None:
        return scores
    set_seed(seed)
    tokenizer = load_tokenizer(name)
    model = load_classifier(name, len(TASKS[task].labels))
    folder.parent.mkdir(parents=True, exist_ok=True)
    for killed in folder.parent.glob(f".{folder.name}-*"):  # what an earlier run left when it was killed
        shutil.rmtree(killed)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as work:
        arguments = TrainingArguments(
            work,
            num_train_epochs=epochs,
            per_device_train_batch_size=batch_size,
            learning_rate=learning_rate,
            warmup_steps=warmup,
            metric_for_best_model=TASKS[task].metrics[0],
            seed=seed,
            use_cpu=device == "cpu",
            bf16=precision == "bfloat16",
            **TRAINING | (BEST_EPOCH if epochs > 1 else {}),  # a single epoch is scored once, below
            **QUIET,
        )
        encoded = [_encode(examples, tokenizer, max_tokens) for examples in (train, dev)]
        trainer = _trainer(model, tokenizer, task, arguments, *encoded)
        trainer.train()
        model = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
        scores = _scores(model, tokenizer, task, encoded[1], device)
        keep(model, tokenizer, folder, {"recipe": recipe, "scores": scores})
    return scores


def _recipe(
    name: str | Path, task: str, train: Sequence[Example], dev: Sequence[Example], options: list
) -> dict[str, Any]:
    """Everything that a checkpoint depends on."""
    texts = [(example.id, example.texts, example.label) for example in (*train, *dev)]
    return {
        "encoder": load_encoder(name).digest,
        "task": task,
        "examples": hashlib.sha256(json.dumps(texts).encode()).hexdigest(),
        "sizes": [len(train), len(dev)],
        "options": options,
        "versions": [torch.__version__, transformers.__version__],
    }


def _kept_scores(folder: Path, recipe: dict[str, Any]) -> dict[str, float] | None:
    """The dev scores of the checkpoint in `folder`, None unless it was made by this recipe."""
    try:
        made = json.loads((folder / RECIPE).read_text(encoding="utf-8"))
        return made["scores"] if made["recipe"] == recipe else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    made: dict[str, Any],
) -> None:
    """Saves a checkpoint folder and how it was made, whole or not at all; an earlier one is replaced."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as work:
        work_folder = Path(work) / folder.name
        model.save_pretrained(work_folder)
        tokenizer.save_pretrained(work_folder)
        write_text(work_folder / RECIPE, json.dumps(made, indent=1))
        if folder.exists():
            folder.rename(Path(work) / "earlier")
        work_folder.rename(folder)


def evaluate(
    name: str | Path, task: str, examples: Sequence[Example], max_tokens: int = 128, device: str = "cpu"
) -> dict[str, float]:
    """The scores of a fine-tuned checkpoint on labelled examples (proportions)."""
    tokenizer, model = load_tokenizer(name), load_classifier(name, len(TASKS[task].labels))
    return _scores(model, tokenizer, task, _encode(examples, tokenizer, max_tokens), device)


def _scores(model, tokenizer, task: str, encoded: list[dict], device: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as work:
        arguments = TrainingArguments(work, use_cpu=device == "cpu", **QUIET)
        measured = _trainer(model, tokenizer, task, arguments, None, encoded).evaluate()
    return {metric: measured[f"eval_{metric}"] for metric in TASKS[task].metrics}


def _trainer(
    model, tokenizer, task: str, arguments: TrainingArguments, train: list[dict] | None, dev: list[dict]
) -> Trainer:
    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        return measure(task, prediction.label_ids, prediction.predictions.argmax(axis=-1))

    return Trainer(
        model,
        arguments,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=train,
        eval_dataset=dev,
        compute_metrics=compute_metrics,
    )


def _encode(examples: Sequence[Example], tokenizer, max_tokens: int) -> list[dict]:
    unlabelled = [example.id for example in examples if example.label is None]
    if unlabelled or not examples:
        raise InputError(f"{(unlabelled or ['the split'])[0]} has no label: use a labelled split")
    return [
        {**tokenizer(*example.texts, truncation=True, max_length=max_tokens), "labels": example.label}
        for example in examples
    ]


def baselines(task: str, train: Sequence[Example], dev: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Dev scores of always answering the majority class, and of logistic regression on bags of words.

    The words of the two texts of a pair are counted apart. Raises InputError when all training examples have
    one label.
    """
    if len({example.label for example in train}) < 2:
        raise InputError(f"all {len(train)} training examples have one label: take more examples")
    models = {
        "majority": DummyClassifier(strategy="most_frequent"),
        "bag_of_words": make_pipeline(
            CountVectorizer(token_pattern=r"\S+"), LogisticRegression(max_iter=2000)
        ),
    }
    labels = {"train": [e.label for e in train], "dev": [e.label for e in dev]}
    scores = {}
    for name, model in models.items():
        model.fit([_marked(e) for e in train], labels["train"])
        scores[name] = measure(task, np.array(labels["dev"]), model.predict([_marked(e) for e in dev]))
    return scores


def _marked(example: Example) -> str:
    return " ".join(
        f"{side}:{word}" for side, text in enumerate(example.texts) for word in text.lower().split()
    )
