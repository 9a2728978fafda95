"""Interventions ablate heads; `predict` gives a classifier's logits under each of them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
import transformers
import xarray as xr
from jaxtyping import Float, Num, Shaped
from tqdm import tqdm

from analysis.cache import record_use
from analysis.encoders.layout import Layout, batches, layouts
from analysis.encoders.models import Encoder, cached_casts
from analysis.encoders.prefixes import OPERATORS, Operator, Prefix, ordinary_pass
from analysis.errors import InputError
from analysis.files import replacing
from analysis.roles import Head
from analysis.texts.examples import Example

NONE = "none"
# Several variants run as one batch up to this many padded tokens: a CPU gains from few, a GPU from many.
STACKED = {"cpu": 800, "cuda": 32768}
FORMAT = 1  # of the cache files that `predict` writes


@dataclass(frozen=True, eq=False)
class Intervention:
    """Heads to ablate: gate 1 leaves a head as it is, gate 0 ablates it, and `operator` says how.

    `zero`: the head outputs zeros (Michel 2019). `uniform`: it attends equally to all real tokens (Kovaleva 2019). An
    `Operator` does something else, for which the gate is the share that stays as it is.
    """

    name: str
    gate: Shaped[np.ndarray, "layer head"]
    operator: str | Operator = "zero"

    def __post_init__(self) -> None:
        if not isinstance(self.operator, Operator) and self.operator not in OPERATORS:
            raise InputError(f"operator {self.operator!r} is unknown: choose from {', '.join(OPERATORS)}")
        object.__setattr__(self, "gate", np.asarray(self.gate, np.float32))

    @cached_property
    def layer(self) -> int | None:
        """The first layer that changes; None if no layer changes."""
        changed = (self.gate != 1).any(axis=1)
        return int(changed.argmax()) if changed.any() else None

    @cached_property
    def key(self) -> str:
        """Identifies the operator and the gate, whatever the name."""
        if self.layer is None:
            return NONE
        return f"{self.operator}-{hashlib.sha256(self.gate.tobytes()).hexdigest()[:32]}"


def head_name(layer: int, head: int) -> str:
    """The name of a head, "2-8" for head 8 of layer 2."""
    return f"{layer}-{head}"


def sets(
    encoder: Encoder,
    named: Mapping[str, Sequence[Head]],
    operator: str | Operator = "zero",
    dose: float | int = 1.0,
) -> list[Intervention]:
    """An intervention for each named set of heads (layer, head); it ablates them all, by the share `dose`."""
    if not 0 <= dose <= 1:
        raise InputError(f"dose is {dose}: the share that changes lies between 0 and 1")
    interventions = []
    for name, heads in named.items():
        ablated = np.zeros((encoder.layers, encoder.heads), np.float32)
        for layer, head in heads:
            if not (0 <= layer < encoder.layers and 0 <= head < encoder.heads):
                raise InputError(
                    f"{encoder.name} has no head {head_name(layer, head)}: it has {encoder.layers} layers of "
                    f"{encoder.heads} heads, counted from 0"
                )
            ablated[layer, head] = 1
        interventions.append(Intervention(name, 1 - dose * ablated, operator))
    return interventions


def single_heads(encoder: Encoder, operator: str = "zero") -> list[Intervention]:
    """Each head ablated alone, named as "2-8"."""
    named = {head_name(*head): [head] for head in np.ndindex(encoder.layers, encoder.heads)}
    return sets(encoder, named, operator)


def whole_layers(encoder: Encoder, operator: str = "zero") -> list[Intervention]:
    """All heads of a layer ablated, for every layer, named as "layer 2"."""
    named = {
        f"layer {layer}": [(layer, head) for head in range(encoder.heads)] for layer in range(encoder.layers)
    }
    return sets(encoder, named, operator)


def all_but_one(encoder: Encoder) -> list[Intervention]:
    """All heads of a layer but one ablated, for every head, named as "only 2-8"."""
    named = {
        f"only {head_name(layer, head)}": [(layer, other) for other in range(encoder.heads) if other != head]
        for layer, head in np.ndindex(encoder.layers, encoder.heads)
    }
    return sets(encoder, named)


def cumulative(encoder: Encoder, order: Sequence[Head], counts: Sequence[int]) -> list[Intervention]:
    """For each count, the first `count` heads of an order ablated, named as "36"."""
    if max(counts, default=0) > len(order) or len({*map(tuple, order)}) < len(order):
        raise InputError(
            f"the order has {len(order)} heads: list every head once, and give counts up to their number"
        )
    return sets(encoder, {str(count): order[:count] for count in counts})


def check_examples(
    encoder: Encoder, examples: Sequence[Example], max_tokens: int, labelled: bool = False
) -> None:
    """Refuses a checkpoint without a classification head, and examples whose labels or choices do not fit it."""
    if not type(encoder.model).__name__.endswith("ForSequenceClassification"):
        raise InputError(
            f"{encoder.name} has no classification head: load a checkpoint that is fine-tuned on the task, with "
            "load_classifier(name, task)"
        )
    encoder.check_length(max_tokens)
    classes, choices = encoder.model.config.num_labels, len(examples[0].choices) if examples else 0
    check_labels(examples, bool(choices) and classes == 1, labelled)
    for example in examples:
        known = range(choices or classes)
        if example.label is not None and (classes > 1 or choices) and example.label not in known:
            raise InputError(
                f"{example.id} has label {example.label!r}: {encoder.name} knows {len(known)} classes, counted from 0: "
                "give examples of the task that it is fine-tuned on"
            )


def check_labels(examples: Sequence[Example], several: bool, labelled: bool = True) -> None:
    """Refuses no examples, missing labels, and numbers of choices that differ or do not fit: `several` or none."""
    if not examples:
        raise InputError("the split has no examples: use a labelled split")
    for example in examples:
        if labelled and example.label is None:
            raise InputError(f"{example.id} has no label: use a labelled split")
        if bool(example.choices) != several or len(example.choices) != len(examples[0].choices):
            raise InputError(
                f"{example.id} has {len(example.choices)} choices: give all examples the same number for multiple "
                "choice, whose checkpoint has one output, and none for other tasks"
            )


def labels_of(examples: Sequence[Example]) -> Num[np.ndarray, " sequence"]:
    """The labels of examples: classes, or numbers of a regression."""
    return np.array([example.label for example in examples])


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


def predict(
    encoder: Encoder,
    examples: Sequence[Example],
    interventions: Sequence[Intervention],
    *,
    batch_size: int = 32,
    max_tokens: int = 128,
    cache: Path | None = None,
    progress: bool = True,
) -> xr.DataArray:
    """The logits (intervention, sequence, class) of a classifier: first the row "none" without ablation, then a row
    for each intervention.

    Regression has one class. In multiple choice, a sequence is an example and its classes are the choices. Forward
    passes share their common layers (see `prefixes`); the result equals that of separate passes with gates (1e-5),
    whatever the batch size. `cache` is a folder for finished parts, named by a digest of weights and texts; a killed
    run resumes from them.
    """
    check_examples(encoder, examples, max_tokens)
    rows = _with_baseline(encoder, interventions)
    variants = {row.key: row for row in rows}
    sequences = layouts(encoder.tokenizer, examples, max_tokens)
    plan = list(batches(sequences, batch_size * max_tokens, batch_size))
    bar = tqdm(
        total=len(variants) * len(sequences), desc="interventions", unit="sequence", disable=not progress
    )
    by_variant = np.empty((len(variants), len(sequences), encoder.model.config.num_labels), np.float32)
    with cached_casts(encoder), bar:
        for indices in plan:
            batch = [sequences[index] for index in indices]
            by_variant[:, indices] = _batch_logits(encoder, batch, variants, cache, bar, indices is plan[0])
    places = {key: place for place, key in enumerate(variants)}
    logits = by_variant[[places[row.key] for row in rows]]
    if examples[0].choices:
        logits = logits.reshape(len(rows), len(examples), -1)
    axes = {"intervention": [row.name for row in rows], "sequence": [example.id for example in examples]}
    axes |= {"class": range(logits.shape[-1])}
    about = {**encoder.provenance, **about_texts(sequences), "max_tokens": max_tokens}
    return xr.DataArray(logits, axes, [*axes], "logits", about)


def _with_baseline(encoder: Encoder, interventions: Sequence[Intervention]) -> list[Intervention]:
    """The row "none", then the interventions; raises InputError for a name that stands twice and for a wrong gate."""
    rows = [Intervention(NONE, np.ones((encoder.layers, encoder.heads))), *interventions]
    if len({row.name for row in rows}) < len(rows):
        raise InputError("two interventions have the same name: give each its own")
    for row in rows:
        check_gate(encoder, row.gate)
    return rows


def _batch_logits(
    encoder: Encoder,
    batch: Sequence[Layout],
    variants: Mapping[str, Intervention],
    cache: Path | None,
    bar: tqdm,
    check: bool,
) -> Float[np.ndarray, "variant sequence class"]:
    """The logits of one batch under variants; runs those that the batch's file in the folder `cache` lacks.

    The file is written after each group of variants that start at the same layer.
    """
    path = cache and cache / f"{_digest(encoder)[:24]}-{texts_digest(batch)[:24]}.npz"
    logits: dict[str, Float[np.ndarray, "sequence class"]] = {}
    if path and path.exists():
        # A damaged file is computed again.
        with suppress(OSError, ValueError, KeyError, EOFError, BadZipFile), np.load(path) as file:
            logits = dict(zip(file["keys"].tolist(), file["logits"], strict=True))
    missing = [variant for key, variant in variants.items() if key not in logits]
    bar.update(len(batch) * (len(variants) - len(missing)))
    record_use(computed=bool(missing))
    if missing:
        prefix = ordinary_pass(encoder, batch)
        if check:
            prefix.check_first_token()
        for group in _groups(missing):
            logits |= dict(zip((row.key for row in group), _logits(prefix, group), strict=True))
            if path:
                with replacing(path) as temporary:
                    np.savez(temporary, keys=[*logits], logits=np.stack([*logits.values()]))
            bar.update(len(batch) * len(group))
    return np.stack([logits[key] for key in variants])


def _groups(variants: Sequence[Intervention]) -> Iterator[list[Intervention]]:
    """Groups of variants that can run as one batch: they share the operator and the first changed layer."""

    def start(variant: Intervention) -> tuple[int, str]:
        return (-1, "") if variant.layer is None else (variant.layer, str(variant.operator))

    return (list(group) for _, group in groupby(sorted(variants, key=start), start))


def _logits(prefix: Prefix, group: Sequence[Intervention]) -> Float[np.ndarray, "variant sequence class"]:
    if group[0].layer is None:
        return prefix.logits[None].cpu().numpy()
    gates = torch.from_numpy(np.stack([variant.gate for variant in group]))
    size = max(1, STACKED.get(prefix.encoder.device.type, 1) // prefix.tokens)
    operator = group[0].operator
    changes = operator.changes(prefix) if isinstance(operator, Operator) else OPERATORS[operator]
    logits = [prefix.resume(group[0].layer, part, changes) for part in gates.split(size)]
    return torch.cat(logits).cpu().numpy()


def check_gate(encoder: Encoder, gate: Num[np.ndarray, "..."]) -> Float[np.ndarray, "layer head"]:
    """The gate as float32; it must be a matrix (layers, heads) of numbers from 0 to 1."""
    gate, shape = np.asarray(gate, np.float32), (encoder.layers, encoder.heads)
    if gate.shape != shape or not ((gate >= 0) & (gate <= 1)).all():
        raise InputError(
            f"a gate of shape {gate.shape}: {encoder.name} needs numbers from 0 to 1 in the shape (layers, heads) = "
            f"{shape}"
        )
    return gate


def _digest(encoder: Encoder) -> str:
    """A digest of everything that logits depend on, except texts and gates."""
    parts = [FORMAT, encoder.digest, type(encoder.model).__name__, encoder.layers, encoder.heads]
    parts += [encoder.precision, encoder.device.type]
    return hashlib.sha256(repr([*parts, torch.__version__, transformers.__version__]).encode()).hexdigest()
