"""One gate per head, learnt on the frozen fine-tuned encoder: it shows which heads help, interfere or do neither."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Float
from torch.nn.functional import cross_entropy
from tqdm.auto import tqdm

from analysis.cache import cached
from analysis.encoders.classifiers import check_examples, texts_digest
from analysis.encoders.fitting import fit
from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder
from analysis.encoders.tap import tap
from analysis.errors import InputError
from analysis.texts.examples import Example
from analysis.texts.tasks import CLASSIFICATION, Task, task_named

CLASSES = ("facilitating", "interfering", "irrelevant")
OPENING, CLOSING = -1.0, 1.0  # sign of the penalty on the sum of the gates
GROUP = 8  # batches whose sequences are sorted by length together, to save padding


def learn_gates(
    encoder: Encoder,
    task: str | Task,
    examples: Sequence[Example],
    penalty: float,
    steps: int = 200,
    batch_size: int = 16,
    rate: float = 0.1,
    seed: int = 0,
    max_tokens: int = 128,
) -> Float[np.ndarray, "layer head"]:
    """A gate in (0, 1) for every head that minimises cross entropy + `penalty` (nats) times the sum of all gates.

    A negative penalty favours open gates, a positive one closed gates. The weights of the encoder do not change; gates
    start near one half, and Adam learns them with step size `rate`. The same seed gives the same gates. Raises
    InputError for a task without classes, and for examples and encoders that do not fit the task.
    Source: Nam et al. 2025 (causal head gating); departure: the penalty is on the gates, not on their log odds.
    """
    task = task_named(task)
    if task.kind != CLASSIFICATION:
        raise InputError(f"task {task.name!r} is a {task.kind}: gates are learnt on tasks with classes")
    check_examples(encoder, examples, max_tokens, labelled=True)
    rng = np.random.default_rng(seed)
    start = rng.normal(0, 0.1, (encoder.layers, encoder.heads))
    odds = torch.tensor(start, dtype=torch.float32, device=encoder.device, requires_grad=True)
    sequences = layouts(encoder.tokenizer, examples, max_tokens)

    def loss(chosen: list[int]) -> Float[torch.Tensor, ""]:
        batch, labels = [sequences[i] for i in chosen], [examples[i].label for i in chosen]
        gate = torch.sigmoid(odds)
        return gated_loss(encoder, batch, labels, gate) + penalty * gate.sum()

    drawn = _batches([len(sequence) for sequence in sequences], batch_size, steps, rng)
    bar = tqdm(drawn, desc=f"gates of {task.name}, penalty {penalty:+g}", total=steps, unit="step")
    fit(bar, loss, torch.optim.Adam([odds], lr=rate))
    return torch.sigmoid(odds).detach().cpu().numpy()


def gated_loss(
    encoder: Encoder, batch: Sequence[Layout], labels: Sequence[int], gate: Float[torch.Tensor, "layer head"]
) -> Float[torch.Tensor, ""]:
    """Mean cross entropy (nats) of one batch with every head's output scaled by its gate; differentiable in it."""
    with tap(encoder.model, gate=gate), encoder.autocast():
        logits = encoder.model(**encoder.inputs(batch)).logits
    return cross_entropy(logits.float(), torch.tensor(labels, device=encoder.device))


def _batches(lengths: Sequence[int], size: int, steps: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """`steps` batches of indices of similar length; every example is drawn once before any is drawn again."""
    rounds = -(-steps * size // len(lengths))
    order = np.concatenate([rng.permutation(len(lengths)) for _ in range(rounds)])[: steps * size]
    for start in range(0, len(order), GROUP * size):
        group = sorted(order[start : start + GROUP * size].tolist(), key=lambda index: lengths[index])
        parts = [group[first : first + size] for first in range(0, len(group), size)]
        yield from (parts[number] for number in rng.permutation(len(parts)))


def both_gates(
    encoder: Encoder,
    task: str | Task,
    examples: Sequence[Example],
    folder: Path,
    penalty: float = 0.002,
    seeds: Sequence[int] = (0, 1),
    **options: float | int,
) -> pd.DataFrame:
    """The tables of `gate_table` for several seeds, with a leading column gate_seed.

    `options` are those of `learn_gates`. `folder` keeps learnt gates under a digest of weights, texts, labels and
    options, so that a killed run resumes. Raises InputError as `learn_gates` does.
    """
    texts = texts_digest(layouts(encoder.tokenizer, examples, options.get("max_tokens", 128)))
    made = [
        encoder.digest,
        encoder.precision,
        texts,
        [example.label for example in examples],
        sorted(options.items()),
    ]
    tables = []
    for seed in seeds:
        found = []
        for sign in (OPENING, CLOSING):

            def make(seed=seed, signed=sign * penalty) -> xr.Dataset:
                gates = learn_gates(encoder, task, examples, signed, seed=seed, **options)
                return xr.Dataset({"gate": (("layer", "head"), gates)})

            found.append(cached(folder, "gates", [*made, seed, sign * penalty], make)["gate"].values)
        tables.append(gate_table(*found).assign(gate_seed=seed))
    table = pd.concat(tables, ignore_index=True)
    return table[["gate_seed", *table.columns.drop("gate_seed")]]


def gate_table(
    opened: Float[np.ndarray, "layer head"], closed: Float[np.ndarray, "layer head"]
) -> pd.DataFrame:
    """What two sets of gates say about every head: layer, head, opened, closed, a share for each class, gate_class.

    `opened` are the gates learnt with a penalty that favours open gates, `closed` those with one that favours closed
    gates. A head facilitates if it stays open against the penalty. It interferes if it stays closed although the
    penalty favours open gates. It is irrelevant if it follows the penalty both ways. The shares are opened * closed,
    1 - opened and opened * (1 - closed); they sum to 1, and the largest names the class. Source: Nam et al. 2025.
    """
    shares = np.stack([opened * closed, 1 - opened, opened * (1 - closed)])
    heads = pd.MultiIndex.from_product([range(size) for size in opened.shape], names=["layer", "head"])
    table = heads.to_frame(index=False).assign(opened=opened.ravel(), closed=closed.ravel())
    table[[*CLASSES]] = shares.reshape(len(CLASSES), -1).T
    table["gate_class"] = np.array(CLASSES)[shares.reshape(len(CLASSES), -1).argmax(axis=0)]
    return table


def agreed(table: pd.DataFrame) -> pd.DataFrame:
    """One row per task, seed and head from the gates of several `gate_seed`s: mean gates and shares, and the class.

    `gate_class` is the class if all gate seeds agree, else "mixed"; `seeds_agree` says whether they do.
    """
    keys = ["task", "seed", "layer", "head"]
    grouped = table.groupby(keys, sort=False)
    means = grouped[["opened", "closed", *CLASSES]].mean()
    same = grouped["gate_class"].nunique().eq(1)
    classes = grouped["gate_class"].first().where(same, "mixed")
    return means.assign(gate_class=classes, seeds_agree=same).reset_index()
