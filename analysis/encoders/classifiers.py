"""Encoders under a classification head, trained or new, and encoders as before any training."""

import copy
import sys
from pathlib import Path

import torch
from torch import nn
from transformers import AutoModel, AutoModelForSequenceClassification, PreTrainedModel

from analysis.encoders.models import Encoder, check_precision, checked_encoder, load_encoder, load_weights
from analysis.encoders.sources import TINY
from analysis.errors import InputError
from analysis.texts.tasks import Task, task_named


def load_classifier(
    name: str | Path, task: str | Task, device: str = "cpu", precision: str = "float32"
) -> Encoder:
    """An encoder with its trained classification head; `task` is a name in TASKS, or a Task.

    It has one logit for each label, and a single one for regression and multiple choice. The other arguments are those
    of `load_encoder`. Raises InputError for an encoder without such a head.
    """
    check_precision(precision)
    task = task_named(task)
    model, absent = load_weights(AutoModelForSequenceClassification, name, num_labels=task.outputs)
    if absent or name == TINY:
        raise InputError(
            f"{name} has no trained classification head ({absent[0] if absent else 'its weights are random'}): "
            f"fine-tune it on {task.name} first (00_finetune) or name a checkpoint that was"
        )
    order_labels(model, task, str(name))
    return checked_encoder(name, model, (), device, precision)


def trainable_classifier(name: str | Path, labels: int) -> PreTrainedModel:
    """The encoder with a classification head, for training; the head is random if the source has none."""
    return load_weights(AutoModelForSequenceClassification, name, num_labels=labels)[0]


def order_labels(model: PreTrainedModel, task: Task, name: str) -> None:
    """Puts the logits of a classifier into the order of the task's labels, if its config has these in another order.

    Other names are read in their order, which is printed; LABEL_0 and on, the names of a config without any, are not.
    """
    named = [str(model.config.id2label[number]) for number in range(len(task.labels))] if task.labels else []
    known = {label.lower(): number for number, label in enumerate(task.labels)}
    if {label.lower() for label in named} == {*known}:
        order = [[label.lower() for label in named].index(label) for label in known]
        output = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]
        if order != sorted(order):
            output.weight.data = output.weight.data[order]
            output.bias.data = output.bias.data[order]
    elif not all(label == f"LABEL_{number}" for number, label in enumerate(named)):
        pairs = ", ".join(f"{label} as {own}" for label, own in zip(named, task.labels, strict=True))
        print(f"{name} names its classes otherwise than {task.name}: {pairs}", file=sys.stderr)


def random_encoder(
    name: str | Path, seed: int = 0, device: str = "cpu", keep_embeddings: bool = False
) -> Encoder:
    """An encoder of the same architecture and tokenizer with random weights, as before any training.

    With `keep_embeddings`, the embeddings and their normalisation are those of the trained encoder (Clark 2019, 5). The
    same seed gives the same weights.
    """
    trained = load_encoder(name, device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModel.from_config(copy.deepcopy(trained.model.config), trust_remote_code=False)
    if keep_embeddings:
        model.embeddings.load_state_dict(trained.model.embeddings.state_dict())
    label = f"{trained.name}, random {'layers' if keep_embeddings else 'weights'}"
    return Encoder(label, model.eval().to(device), trained.tokenizer)
