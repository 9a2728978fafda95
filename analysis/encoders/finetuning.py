"""Fine-tune an encoder on a task with Hugging Face's Trainer, and score it on the dev set; fit smaller models."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer
from torch.utils.data import Sampler
from transformers import (
    DataCollatorForMultipleChoice,
    DataCollatorWithPadding,
    EvalPrediction,
    PreTrainedTokenizerBase,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_pt_utils import LengthGroupedSampler
from transformers.utils.notebook import NotebookProgressCallback

from analysis.cache import record_use, working_folder
from analysis.encoders.classifiers import load_classifier, trainable_classifier
from analysis.encoders.interventions import check_labels
from analysis.encoders.layout import read_ids
from analysis.encoders.measures import decide, measure
from analysis.encoders.models import PRECISIONS, Encoder, check_precision, load_encoder, load_tokenizer
from analysis.encoders.redirection import blocked_across
from analysis.errors import InputError
from analysis.files import read_text, write_text, wrong_file
from analysis.roles import Head
from analysis.texts.examples import Example, as_sequences
from analysis.texts.tasks import CHOICE, Task, task_named

CLUSTER = ("LOCAL_RANK", "RANK", "WORLD_SIZE")
RECIPE, WEIGHTS = "recipe.json", "model.safetensors"
TILES = ("amx_tile", "amx_bf16")  # without these instructions bfloat16 is slower than float32 on a processor
CAPABILITY = (8, 0)  # CUDA devices from Ampere on have units for bfloat16
# Of a recipe, in the order in which the record of a checkpoint has them.
OPTIONS = ("epochs", "batch_size", "learning_rate", "warmup", "seed", "max_tokens", "device", "precision")
UNLOGGED = ("_loss", "_runtime", "_per_second", "_time")  # endings of entries of the log that are no metric


def training_precision(device: str, precision: str = "auto") -> str:
    """The precision of training: `auto` is bfloat16 if the device computes it faster, else float32.

    bfloat16 is faster on CUDA devices of capability 8 or more and on x86 processors with AMX tiles.
    """
    check_precision(precision, ("auto", *PRECISIONS))
    if precision != "auto":
        return precision
    if device.startswith("cuda"):
        fast = torch.cuda.get_device_capability(device) >= CAPABILITY
    else:
        instructions = torch.cpu.get_capabilities() if device == "cpu" else {}
        fast = all(instructions.get(name, False) for name in TILES)
    return "bfloat16" if fast else "float32"


@dataclass(frozen=True)
class Recipe:
    """How an encoder is fine-tuned; the defaults are those of Devlin 2019 for GLUE.

    `warmup` is the share of steps with rising learning rate. `device` names one device; other GPUs stay idle. With
    `precision` bfloat16 the matrix products are in bfloat16 and the weights stay float32; `auto` chooses what the
    device computes faster. Without `best_epoch` the last epoch is kept. The `blocked` heads attend to no piece of the
    other text, in training and when scores are measured.
    """

    epochs: float | int = 3
    batch_size: int = 32
    learning_rate: float = 2e-5
    warmup: float | int = 0.1
    seed: int = 0
    max_tokens: int = 128
    device: str = "cpu"
    precision: str = "auto"
    best_epoch: bool = True
    blocked: Sequence[Head] = ()

    @property
    def options(self) -> dict[str, float | int | str]:
        """The values of OPTIONS by name."""
        return {name: getattr(self, name) for name in OPTIONS}

    def on_device(self) -> "Recipe":
        """The recipe with the precision in which its device trains."""
        return replace(self, precision=training_precision(self.device, self.precision))


DEVLIN = Recipe()


@contextmanager
def alone_on(device: str) -> Iterator[None]:
    """A context in which a CUDA device is the current one, and the process is no part of a cluster.

    The Trainer would wait for the other processes of which LOCAL_RANK, in the user's environment, is a sign.
    """
    hidden = {name: os.environ.pop(name) for name in CLUSTER if name in os.environ}
    try:
        with torch.cuda.device(device) if device.startswith("cuda:") else nullcontext():
            yield
    finally:
        os.environ |= hidden


def fit(batches: Iterable, loss: Callable[[Any], Tensor], optimiser: Optimizer) -> None:
    """One step of the optimiser for each batch; only the optimiser's own weights get gradients."""
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    for batch in batches:
        optimiser.zero_grad()
        loss(batch).backward(inputs=weights)
        optimiser.step()


def keep(encoder: Encoder, folder: Path, record: dict[str, Any]) -> None:
    """Saves a checkpoint folder and the record of how it was made, whole or not at all; an earlier one is replaced."""
    with working_folder(folder) as work:
        encoder.model.save_pretrained(work / folder.name)
        encoder.tokenizer.save_pretrained(work / folder.name)
        with (work / folder.name / WEIGHTS).open("rb") as file:
            weights = hashlib.file_digest(file, "sha256").hexdigest()
        write_text(work / folder.name / RECIPE, json.dumps(record | {WEIGHTS: weights}, indent=1))
        if folder.exists():
            folder.rename(work / "earlier")
        (work / folder.name).rename(folder)


def record_of(folder: Path) -> dict[str, Any]:
    """The record that `keep` saved with a checkpoint; empty if the file is missing or damaged."""
    try:
        record = json.loads(read_text(folder / RECIPE))
    except ValueError:  # an InputError too
        return {}
    return record if isinstance(record, dict) else {}


def recipe_of(folder: Path) -> tuple[Recipe, dict[str, int]]:
    """The recipe that made a checkpoint, and its numbers of train and dev examples; raises InputError without them."""
    try:
        record = record_of(folder)["recipe"]
        sizes = dict(zip(("train", "dev"), record["sizes"], strict=True))
        return Recipe(**dict(zip(OPTIONS, record["options"], strict=True))), sizes
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} does not tell how it was fine-tuned: take one that 00_finetune made"
        ) from error


def training_history(folder: Path) -> pd.DataFrame:
    """The log of the training that made a checkpoint: epoch, measure and value, a row per epoch and measure.

    The measures are "training loss" and the metrics on the dev examples, where training scored every epoch. A
    checkpoint that was made elsewhere has no rows.
    """
    rows = [
        (entry["epoch"], "training loss" if name == "loss" else name.removeprefix("eval_"), value)
        for entry in record_of(folder).get("log", [])
        for name, value in entry.items()
        if name == "loss" or (name.startswith("eval_") and not name.endswith(UNLOGGED))
    ]
    return pd.DataFrame(rows, columns=["epoch", "measure", "value"])


QUIET = {"report_to": [], "per_device_eval_batch_size": 64}
TRAINING = {"train_sampling_strategy": "group_by_length", "logging_strategy": "epoch", "save_strategy": "no"}
BEST_EPOCH = {
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "save_only_model": True,  # optimiser states would be pickles
    "save_total_limit": 1,
    "load_best_model_at_end": True,
}


class OneDevice(TrainingArguments):
    """Arguments of a Trainer that writes to `folder` and runs on the device called `device_name` alone.

    By default the Trainer takes the first GPU, and where there are several it multiplies the batch by their number.
    """

    def __init__(self, folder: str, device_name: str, **options: Any):
        self.device_name = device_name
        super().__init__(folder, use_cpu=device_name == "cpu", **options)

    @property
    def device(self) -> torch.device:
        """The named device."""
        first = super().device  # sets accelerate up
        return torch.device(self.device_name) if first.type == "cuda" else first

    @property
    def n_gpu(self) -> int:
        """One, or none."""
        return min(super().n_gpu, 1)


class Bar(ProgressCallback):
    """The bar of a training run, without the lines of its log, which `training_history` gives."""

    def on_log(self, *arguments: Any, **options: Any) -> None:
        """Shows nothing."""


class Stops(TrainerCallback):
    """Saves the classifier after shares of the training steps, each time in a folder below `folder`.

    The folder of a share is named after its percentage and `folder`: `10-mrpc-0`. A share is at least one step.
    """

    def __init__(self, folder: Path, shares: Sequence[float], tokenizer: PreTrainedTokenizerBase):
        self.folders = {share: folder / f"{100 * share:g}-{folder.name}" for share in shares}
        self.tokenizer = tokenizer

    def on_step_end(self, arguments, state, control, model=None, **_: Any) -> None:
        """Saves the model where a share of the steps has been made."""
        for share, folder in self.folders.items():
            if state.global_step == max(1, round(share * state.max_steps)):
                model.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder)


class TaskTrainer(Trainer):
    """Trains and scores an encoder on a task; of several choices the right one is to have the largest logit."""

    def __init__(
        self,
        encoder: Encoder,
        task: Task,
        arguments: TrainingArguments,
        train: list[dict] | None,
        dev: list[dict],
    ):
        self.task = task
        collator = DataCollatorForMultipleChoice if task.kind == CHOICE else DataCollatorWithPadding
        super().__init__(
            encoder.model, arguments, collator(encoder.tokenizer), train, dev, compute_metrics=self.metrics
        )
        for callback in (PrinterCallback, ProgressCallback, NotebookProgressCallback):
            self.remove_callback(callback)  # `Bar` takes their place

    def metrics(self, prediction: EvalPrediction) -> dict[str, float]:
        """The task's metrics."""
        return measure(self.task, prediction.label_ids, decide(self.task, prediction.predictions))

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Cross entropy over the choices of each example, whose sequences (example, choice, token) are read at once."""
        if self.task.kind != CHOICE:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        labels = inputs["labels"]
        sequences = {name: column.flatten(0, 1) for name, column in inputs.items() if name != "labels"}
        logits = model(**sequences).logits.view(len(labels), -1)
        loss = cross_entropy(logits, labels)
        return (loss, {"logits": logits}) if return_outputs else loss

    def _get_train_sampler(self, train_dataset=None) -> Sampler | None:
        """Groups examples by their longest sequence: the Trainer would count the choices."""
        if self.task.kind != CHOICE:
            return super()._get_train_sampler(train_dataset)
        examples = self.train_dataset if train_dataset is None else train_dataset
        lengths = [max(map(len, example["input_ids"])) for example in examples]
        return LengthGroupedSampler(self.args.train_batch_size, lengths=lengths)


def finetune(
    name: str | Path,
    task: str | Task,
    train: Sequence[Example],
    dev: Sequence[Example],
    folder: Path,
    recipe: Recipe = DEVLIN,
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, float]:
    """Fine-tunes an encoder, keeps the epoch with the best dev score in `folder`, returns that epoch's scores.

    Classes and choices are learnt by cross entropy, numbers by the mean squared error. The scores are those of the kept
    epoch in float32; where the dev set chooses it, they are slightly optimistic.

    The checkpoint is written as safetensors when training has ended, or not at all. One that stands in `folder` and was
    made by the same recipe (weights, examples, options and versions) is not made again unless its own weights have
    changed. `callbacks` watch the training,
    as `Stops` does.
    """
    task, recipe = task_named(task), recipe.on_device()
    if task.kind != CHOICE and len(labels := {example.label for example in train} - {None}) == 1:
        raise InputError(
            f"{task.name}: all {len(train)} training examples have the label {labels.pop()}: take more examples"
        )
    described, record = _described(load_encoder(name).digest, task, train, dev, recipe), record_of(folder)
    weights = {name: digest for name, digest in record.items() if name == WEIGHTS}
    known = record.get("recipe") == described and not wrong_file(folder, weights)
    record_use(computed=not known)
    if known:
        return record["scores"]
    encoder, scores, log = _train(name, task, train, dev, folder, recipe, callbacks)
    keep(encoder, folder, {"recipe": described, "scores": scores, "log": log})
    return scores


def _train(
    name: str | Path,
    task: Task,
    train: Sequence[Example],
    dev: Sequence[Example],
    folder: Path,
    recipe: Recipe,
    callbacks: Sequence[TrainerCallback],
) -> tuple[Encoder, dict[str, float], list[dict]]:
    """The trained encoder in float32, of the kept epoch, with its dev scores and the log of the training."""
    set_seed(recipe.seed)
    tokenizer, device = load_tokenizer(name), recipe.device
    encoder = Encoder(str(name), trainable_classifier(name, task.outputs), tokenizer)
    encoder.check_length(recipe.max_tokens)
    train_set, dev_set = (_encode(task, examples, tokenizer, recipe.max_tokens) for examples in (train, dev))
    with blocked_across(encoder, recipe.blocked) if recipe.blocked else nullcontext():
        with working_folder(folder) as work, alone_on(device):
            arguments = OneDevice(str(work), device, **_settings(task, recipe))
            trainer = TaskTrainer(encoder, task, arguments, train_set, dev_set)
            for callback in (Bar, *callbacks):
                trainer.add_callback(callback)
            trainer.train()
        model = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
        encoder = replace(encoder, model=model)
        return encoder, _scores(encoder, task, device, dev_set), trainer.state.log_history


def _described(
    weights: str, task: Task, train: Sequence[Example], dev: Sequence[Example], recipe: Recipe
) -> dict[str, Any]:
    """Everything that a checkpoint depends on."""
    texts = [(example.id, example.texts, example.label) for example in (*train, *dev)]
    described = {
        "encoder": weights,
        "task": task.name,
        "examples": hashlib.sha256(json.dumps(texts).encode()).hexdigest(),
        "sizes": [len(train), len(dev)],
        "options": [*recipe.options.values()],
        "versions": [torch.__version__, transformers.__version__],
    }
    described |= {} if recipe.best_epoch else {"best_epoch": False}
    return described | ({"blocked": [*map(list, recipe.blocked)]} if recipe.blocked else {})


def _settings(task: Task, recipe: Recipe) -> dict[str, Any]:
    """The recipe in the names of the Trainer; a single epoch, or the last one, is scored once, at the end."""
    return {
        "num_train_epochs": recipe.epochs,
        "per_device_train_batch_size": recipe.batch_size,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": recipe.warmup,
        "metric_for_best_model": task.metrics[0],
        "seed": recipe.seed,
        "bf16": recipe.precision == "bfloat16",
        **TRAINING | (BEST_EPOCH if recipe.best_epoch and recipe.epochs > 1 else {}) | QUIET,
    }


def evaluate(
    name: str | Path,
    task: str | Task,
    examples: Sequence[Example],
    max_tokens: int = 128,
    device: str = "cpu",
) -> dict[str, float]:
    """The scores of a fine-tuned checkpoint on labelled examples: proportions and correlations (see `measure`)."""
    task, encoder = task_named(task), load_classifier(name, task)
    encoder.check_length(max_tokens)
    encoded = _encode(task, examples, encoder.tokenizer, max_tokens)
    return _scores(encoder, task, device, encoded)


def _scores(encoder: Encoder, task: Task, device: str, encoded: list[dict]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as work, alone_on(device):
        measured = TaskTrainer(encoder, task, OneDevice(work, device, **QUIET), None, encoded).evaluate()
    return {metric: measured[f"eval_{metric}"] for metric in task.metrics}


def _encode(task: Task, examples: Sequence[Example], tokenizer, max_tokens: int) -> list[dict]:
    """The columns of every example; for one with choices, each column is a list with one entry a choice."""
    check_labels(examples, task.kind == CHOICE)
    encoded = []
    for example in examples:
        rows = [columns_of(tokenizer, one, max_tokens) for one in as_sequences([example])]
        columns = rows[0] if task.kind != CHOICE else {name: [row[name] for row in rows] for name in rows[0]}
        encoded.append({**columns, "labels": example.label})
    return encoded


def columns_of(tokenizer, example: Example, max_tokens: int) -> dict[str, list[int]]:
    """The model's inputs for a sequence: ids, attention mask and, where the model has segments, their ids."""
    encoded = tokenizer(*example.texts, truncation=True, max_length=max_tokens, split_special_tokens=True)
    return {**encoded, "input_ids": read_ids(tokenizer, encoded.encodings[0]).tolist()}
