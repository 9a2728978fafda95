"""Checks the examples of a fine-tuned classifier, and identifies their texts in result files."""

import hashlib
from collections.abc import Sequence

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.texts.examples import Example


def check_examples(
    encoder: Encoder, examples: Sequence[Example], max_tokens: int, labelled: bool = False
) -> None:
    """Refuses a checkpoint without a classification head, and examples whose labels or choices do not fit it."""
    if not type(encoder.model).__name__.endswith("ForSequenceClassification"):
        raise InputError(
            f"{encoder.name} has no classification head: load a checkpoint that is fine-tuned on the task, with "
            "load_encoder(name, task=...)"
        )
    encoder.check_length(max_tokens)
    classes = encoder.model.config.num_labels
    for example in examples:
        choices = len(example.choices)
        if choices != len(examples[0].choices) or (choices and classes > 1):
            raise InputError(
                f"{example.id} has {choices} choices: give all examples the same number for multiple choice, whose "
                "checkpoint has one output, and none for other tasks"
            )
        if example.label is None:
            if labelled:
                raise InputError(f"{example.id} has no label: use a labelled split")
        elif (classes > 1 or choices) and example.label not in range(choices or classes):
            raise InputError(
                f"{example.id} has label {example.label!r}: {encoder.name} knows {choices or classes} classes, counted "
                "from 0: give examples of the task that it is fine-tuned on"
            )


def texts_digest(sequences: Sequence[Layout]) -> str:
    """SHA-256 of the word pieces and segments that an encoder reads, in their order."""
    digest = hashlib.sha256()
    for layout in sequences:
        digest.update(repr((layout.input_ids.tolist(), layout.type_ids.tolist())).encode())
    return digest.hexdigest()


def about_texts(sequences: Sequence[Layout]) -> dict[str, str | int]:
    """Attributes of a result file that identify its texts and count what truncation removed."""
    return {
        "texts_sha256": texts_digest(sequences),
        "sequences": len(sequences),
        "sequences_truncated": sum(layout.cut > 0 for layout in sequences),
        "tokens_truncated": sum(layout.cut for layout in sequences),
    }
