"""What disabling heads and layers changes, and what pre-training gives (Kovaleva 2019, figures 8, 9 and Table 1)."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
import transformers
import xarray as xr
from jaxtyping import Float, Shaped

from analysis.cache import cached
from analysis.encoders.finetuning import finetune
from analysis.encoders.interventions import predict
from analysis.encoders.measures import decide, measure
from analysis.encoders.models import (
    Encoder,
    load_classifier,
    load_encoder,
    load_tokenizer,
    random_encoder,
)
from analysis.errors import InputError
from analysis.papers.kovaleva2019.names import PRETRAINED, RANDOM
from analysis.statistics.answers import Labels, labels_of, metrics_of
from analysis.statistics.changes import BASELINE, Compared, change_table, rises
from analysis.statistics.intervals import crossed_interval
from analysis.statistics.leads import compared
from analysis.statistics.resampling import bca
from analysis.statistics.training import Run
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

COLUMNS = "task seed unit layer head metric baseline change low high p p_by".split()


def disabled_tables(
    logits: Mapping[tuple[str, str, int], xr.DataArray],
    labels: Mapping[str, Labels],
    alpha: float = 0.05,
    resamples: int = 999,
    permutations: int = 9999,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What disabling single heads or whole layers changes, and whether it raises a task's first metric beyond chance.

    `logits` are those of `predict` by unit ("head" or "layer"), task and fine-tuning run. The first table has COLUMNS,
    a row per head or layer and metric; change, low, high, p, p_by are as in `change_table`: exact McNemar for accuracy,
    swapped answers for F1 and Matthews. The second has a row per pass: task, seed, unit, metric, baseline; those of
    `changes.Rises`; mean_change, mean_low, mean_high (see `mean_change`); least: the smallest loss that the paired
    test detects at power .8, median over the variants. Source: Kovaleva 2019, figures 8 and 9; departure: the article
    has no test.
    """
    changes, risen = [], []
    for (unit, task, run), found in logits.items():
        key = {"task": task, "seed": run, "unit": unit}
        table = change_table(found, labels[task], metrics_of(task), alpha, resamples, permutations, seed)
        places = table["intervention"].str.extract(r"(\d+)(?:-(\d+))?$")  # "2-8" is a head, "layer 2" a layer
        table = table.assign(
            layer=places[0].astype(int), head=pd.to_numeric(places[1]).astype("Int64"), **key
        )
        changes.append(table[COLUMNS])
        metric = task_named(task).metrics[0]
        own = table[table["metric"] == metric]
        row = key | {"metric": metric, "baseline": own["baseline"].iloc[0]}
        row |= rises(found, labels[task], metric, alpha, permutations, seed)._asdict()
        mean = mean_change(found, labels[task], metric, alpha, resamples, seed)
        row |= dict(zip(("mean_change", "mean_low", "mean_high"), mean, strict=True))
        risen.append(row | {"least": own["least"].median()})
    return pd.concat(changes, ignore_index=True), pd.DataFrame(risen)


def chosen_rises(
    logits: Mapping[Run, xr.DataArray],
    labels: Mapping[str, Labels],
    clusters: Mapping[str, Sequence[str]],
    trained: Collection[Run],
) -> pd.DataFrame:
    """How much the task's metric rises without the head that raises it most: task, value, low, high, runs.

    The head is chosen on one half of the sequences (in whole clusters) and read on the other, both ways. Runs that did
    not train successfully are left out; a task without any other has no value.
    """
    rows = []
    for task in dict.fromkeys(task for task, _ in logits):
        half = pd.factorize(np.asarray(clusters[task]))[0] % 2 == 0
        runs = []
        for run, found in logits.items():
            if run[0] == task and run in trained:
                parts = {
                    side: compared(
                        found.isel(sequence=half == side),
                        labels[task][half == side],
                        task_named(task).metrics[0],
                    )
                    for side in (True, False)
                }
                values = np.empty(len(half))
                for side, part in parts.items():
                    values[half == side] = part.contributions[:, parts[not side].change.argmax()]
                runs.append(values)
        rows.append((task, *(crossed_interval(np.stack(runs)) if runs else (np.nan,) * 3), len(runs)))
    return pd.DataFrame(rows, columns=["task", "value", "low", "high", "runs"])


def mean_change(
    logits: xr.DataArray,
    labels: Labels,
    metric: str,
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> tuple[float, float, float]:
    """The mean change over all interventions (that of disabling a random one), with its BCa interval over sequences."""
    without = logits["intervention"].values == BASELINE
    scored = logits.transpose("intervention", "sequence", "class").values
    compared = Compared.of(metric, scored[without], scored[~without], labels)

    def changes(counts: Shaped[np.ndarray, "*draw sequence"]) -> Float[np.ndarray, " *draw"]:
        before, after = compared.drawn(counts)
        # Round so that equal values stay equal: BCa counts draws that equal the estimate.
        return np.asarray(np.round((after - before).mean(axis=-1), 12))

    mean = float(compared.change.mean())
    found = bca(changes, len(compared.base), compared.others.size, alpha, resamples, seed)
    low, high = (mean if np.isnan(end) else float(end) for end in found.confidence_interval)
    return mean, low, high


def untuned_scores(
    name: str, task: str, dev: Sequence[Example], seed: int, max_tokens: int = 128, device: str = "cpu"
) -> dict[str, float]:
    """Dev scores of the encoder as it is, with a classification head whose random weights depend on the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = load_classifier(name, task_named(task).outputs)
    encoder = Encoder(str(name), model.eval().to(device), load_tokenizer(name))
    logits = predict(encoder, dev, [], max_tokens=max_tokens, progress=False)[0].values
    return measure(task, labels_of(dev), decide(task, logits))


def tuned_scores(
    folder: Path,
    start: str,
    name: str,
    task: str,
    train: Sequence[Example],
    dev: Sequence[Example],
    seed: int,
    **recipe: float | int | str,
) -> dict[str, float]:
    """Dev scores of an encoder trained on a task from a start: RANDOM (random weights by seed) or PRETRAINED.

    `recipe` holds further arguments of `finetune`. `folder` keeps the scores, so that the same recipe does not run
    again; the trained encoder is not kept. Raises InputError for another start.
    """
    if start not in (RANDOM, PRETRAINED):
        raise InputError(f"start {start!r} is unknown: choose {RANDOM} or {PRETRAINED}")

    def trained() -> xr.Dataset:
        with TemporaryDirectory() as work:
            source: str | Path = name
            if start == RANDOM:
                source = Path(work) / RANDOM
                drawn = random_encoder(name, seed)
                drawn.model.save_pretrained(source)
                drawn.tokenizer.save_pretrained(source)
            scores = finetune(source, task, train, dev, Path(work) / "trained", seed=seed, **recipe)
        return xr.Dataset({"value": ("metric", [*scores.values()])}, {"metric": [*scores]})

    texts = [(each.id, each.texts, each.label) for each in (*train, *dev)]
    versions = [torch.__version__, transformers.__version__]
    key = [load_encoder(name).digest, texts, versions, recipe, seed]
    return cached(folder, f"{start}-{task}", key, trained)["value"].to_series().to_dict()


def start_name(start: str, rows: int, epochs: float | int) -> str:
    """The name of a start in the table, with the size of the training."""
    return f"{start}, {rows:,} rows, {epochs:g} epoch{'' if epochs == 1 else 's'}"


def initialisation_table(
    scores: Mapping[tuple[str, str, int], Mapping[str, float]], tuned: pd.DataFrame, epochs: float | int
) -> pd.DataFrame:
    """Dev scores by start: task, start, seed, metric, value, constant (the score of the most frequent class).

    `scores` maps task, start and seed to the scores of runs of this notebook; `tuned` holds the scores that 00_finetune
    saved (task, seed, metric, constant, finetuned, train), after `epochs`. The name of a start says how much training
    followed.
    """
    rows = [(*key, *score) for key, found in scores.items() for score in found.items()]
    own = pd.DataFrame(rows, columns=["task", "start", "seed", "metric", "value"])
    kept = tuned[tuned["task"].isin(own["task"])].rename(columns={"finetuned": "value"})
    kept = kept.assign(start=[start_name(PRETRAINED, size, epochs) for size in kept["train"]])
    constant = kept.groupby(["task", "metric"])["constant"].first()
    table = pd.concat([own, kept[own.columns]]).join(constant, on=["task", "metric"])
    return table.sort_values(["task", "metric", "seed"], kind="stable", ignore_index=True)
