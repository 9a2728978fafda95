"""Orders of pruning: by importance, by the effect of removing each head alone, re-measured at every step, at random."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int

from analysis.encoders.importance import importance, normalised
from analysis.encoders.models import Encoder
from analysis.files import replacing
from analysis.papers.michel2019.tables import AGAIN, IMPORTANCE, RANDOM, SCORE
from analysis.statistics.answers import LOSS, METRICS
from analysis.statistics.changes import BASELINE
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

Head = tuple[int, int]


def step_counts(heads: int, steps: int = 10) -> list[int]:
    """How many heads are pruned after each step; the steps are equal, and the last prunes all (released code)."""
    counts = [heads * step // steps for step in range(1, steps + 1)]
    return [
        count for count in dict.fromkeys(counts) if count
    ]  # an encoder may have fewer heads than there are steps


def by_importance(measured: xr.DataArray) -> list[Head]:
    """Heads from the least to the most important; `measured` (layer, head) is first normalised in each layer.

    Source: Michel 2019, with the normalisation of Molchanov 2017 that the article uses.
    """
    ranked = normalised(measured).to_series().sort_values(kind="stable")
    return [*ranked.index]


def by_score(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> list[Head]:
    """Heads in order of the score without each, best score first; of equal scores, the lower loss comes first.

    `logits` are those of single removals. Order and pruning are scored on the same sequences, as in the article; this
    favours the order.
    """
    rows = logits.drop_sel(intervention=BASELINE)
    values = [
        METRICS[name].value(METRICS[name].columns(rows.values, labels).mean(axis=1))
        for name in (task_named(task).metrics[0], LOSS)
    ]
    names = rows["intervention"].values[np.lexsort([values[1], -values[0]])]
    return [tuple(map(int, name.split("-"))) for name in names]


def at_random(heads: Sequence[Head], seed: int) -> list[Head]:
    """The heads in a random order."""
    return [heads[place] for place in np.random.default_rng(seed).permutation(len(heads))]


def anew(
    encoder: Encoder, examples: Sequence[Example], folder: Path, steps: int = 10, **options: int
) -> list[Head]:
    """The order by importance that is measured again after every step, with the heads pruned so far switched off."""
    gate, order = np.ones((encoder.layers, encoder.heads), np.float32), []
    for count in step_counts(gate.size, steps):
        measured = kept_importance(encoder, examples, folder, gate, **options).sel(
            granularity="example", drop=True
        )
        left = [head for head in by_importance(measured) if gate[head]]
        order += left[: count - len(order)]
        gate[tuple(np.transpose(order))] = 0
    return order


def kept_importance(
    encoder: Encoder,
    examples: Sequence[Example],
    folder: Path,
    gate: np.ndarray | None = None,
    **options: int,
) -> xr.DataArray:
    """`importance`, saved in `folder` under a digest of weights, examples, gate and options."""
    texts = [(example.id, example.texts, example.label) for example in examples]
    off = [] if gate is None else np.argwhere(gate == 0).tolist()
    name = digest([encoder.digest, encoder.device.type, texts, off, options])
    return kept(folder / f"importance-{name}.nc", lambda: importance(encoder, examples, gate=gate, **options))


def digest(parts: Any) -> str:
    """A short name for a set of inputs."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def kept(path: Path, make: Any) -> xr.DataArray:
    """The array in a NetCDF file; if the file is missing or unreadable, `make` computes it."""
    try:
        return xr.load_dataarray(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError):
        found = make()
    with replacing(path) as temporary:
        temporary.write_bytes(found.to_netcdf(engine="h5netcdf"))
    return found


def orders_of(
    encoder: Encoder,
    task: str,
    single: xr.DataArray,
    labels: Int[np.ndarray, " sequence"],
    train: Sequence[Example],
    folder: Path,
    randoms: int = 5,
    again_n: int = 200,
    **options: int,
) -> dict[str, list[Head]]:
    """All orders of a classifier by name; `single` are the logits of single removals on the scored sequences.

    Importance is measured on the training examples, and again after every step on the first `again_n` of them. Random
    orders are named "random 0", "random 1" and so on.
    """
    measured = kept_importance(encoder, train, folder, **options).sel(granularity="example", drop=True)
    heads = [*measured.to_series().index]
    named: Mapping[str, list[Head]] = {
        IMPORTANCE: by_importance(measured),
        SCORE: by_score(single, labels, task),
        AGAIN: anew(encoder, train[:again_n], folder, **options),
    }
    return {**named, **{f"{RANDOM} {number}": at_random(heads, number) for number in range(randoms)}}
