"""The tables of Michel 2019: the effect of removing one head, or of leaving one head in its layer."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int
from tqdm import tqdm

from analysis.statistics.answers import LOSS, METRICS, metrics_of
from analysis.statistics.changes import BASELINE, by_head, change_table, rises
from analysis.statistics.leads import Labels, Run
from analysis.texts.examples import Example
from analysis.texts.tasks import task_named

TESTS = ["metric", "baseline", "change", "low", "high", "p", "p_by"]
ABLATION = ["task", "seed", "layer", "head", *TESTS]
ALL_BUT_ONE = ["task", "seed", "layer", "head", "chosen_on", *TESTS]
EVERY = "every head"  # value of `chosen_on` if no head is chosen
# Orders of pruning.
IMPORTANCE, SCORE, AGAIN, RANDOM = "importance", "single-head score", "re-estimated", "random"


def labels_of(examples: Sequence[Example]) -> Int[np.ndarray, " sequence"]:
    """The classes of the examples."""
    return np.array([example.label for example in examples])


def all_changes(logits: Mapping[Run, xr.DataArray], labels: Labels, **options: float) -> pd.DataFrame:
    """The changes of every run in the metrics of its task: `change_table` with task, seed, layer and head.

    `logits` hold an intervention for each head; `options` are those of `change_table`.
    """
    parts = []
    for (task, seed), found in tqdm(logits.items(), desc="tests", unit="run"):
        table = change_table(found, labels[task], metrics_of(task), **options)
        parts.append(by_head(table).assign(task=task, seed=seed))
    return pd.concat(parts, ignore_index=True)


def all_but_one_table(
    logits: Mapping[Run, xr.DataArray],
    labels: Labels,
    chosen: Mapping[Run, Sequence[str]],
    **options: float,
) -> pd.DataFrame:
    """The change on the dev sequences with one head left in a layer: each head, the best there, and the best on train.

    `chosen` names the head that stays in each layer, as `best_heads` chose it on training examples. Columns ALL_BUT_ONE
    and least. p_by corrects over all heads if none is chosen, and over the layers if one is.
    Source: Michel 2019, tables 3 and 6.
    """
    picks = {
        EVERY: {key: [*found["intervention"].values] for key, found in logits.items()},
        "dev": {key: [BASELINE, *best_heads(found, labels[key[0]], key[0])] for key, found in logits.items()},
        "train": {key: [BASELINE, *names] for key, names in chosen.items()},
    }
    parts = []
    for name, pick in picks.items():
        found = {key: logits[key].sel(intervention=names) for key, names in pick.items()}
        parts.append(all_changes(found, labels, **options).assign(chosen_on=name))
    return pd.concat(parts, ignore_index=True)[[*ALL_BUT_ONE, "least"]]


def best_heads(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> list[str]:
    """The intervention of each layer with the best value of the task's metric; of equal values, the lower loss wins."""
    rows = logits.drop_sel(intervention=BASELINE)
    names = [*rows["intervention"].values]
    values = {
        name: METRICS[name].value(METRICS[name].columns(rows.values, labels).mean(axis=1))
        for name in (task_named(task).metrics[0], LOSS)
    }
    table = by_head(pd.DataFrame({"intervention": names} | values))
    ranked = table.sort_values([*values], ascending=[False, True], kind="stable")
    return ranked.drop_duplicates("layer").sort_values("layer")["intervention"].tolist()


def rises_table(
    logits: Mapping[Run, xr.DataArray], labels: Labels, alpha: float = 0.05, **options: float
) -> pd.DataFrame:
    """Whether some removals raise the task's metric beyond chance: `rises` with task, seed and metric, a row per run.

    The level of each run is `alpha` divided by their number, so that the error over all of them is at most `alpha`.
    """
    rows = []
    for (task, seed), found in tqdm(logits.items(), desc="swaps", unit="run"):
        metric = task_named(task).metrics[0]
        tested = rises(found, labels[task], metric, alpha / len(logits), **options)
        rows.append({"task": task, "seed": seed, "metric": metric} | tested._asdict())
    return pd.DataFrame(rows)


def overview(changes: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """How many removals lose or gain significantly, by run and metric, and the smallest loss that the test detects.

    `changes` as `all_changes` or `all_but_one_table` gives them. Columns heads; baseline; lost, gained (p < `alpha`);
    lost_by, gained_by (p_by); lowest, highest (changes); least (median, power .8), p without correction.
    """
    better = np.where(changes["metric"] == LOSS, -1, 1) * changes["change"]
    marked = changes.assign(
        **{
            f"{name}{suffix}": (sign * better > 0) & (changes[p] < alpha)
            for name, sign in (("lost", -1), ("gained", 1))
            for suffix, p in (("", "p"), ("_by", "p_by"))
        }
    )
    groups = marked.groupby(
        [name for name in ("task", "seed", "chosen_on", "metric") if name in marked], sort=False, dropna=False
    )
    found = groups.agg(
        heads=("change", "size"), baseline=("baseline", "first"), lost=("lost", "sum"), gained=("gained", "sum"),
        lost_by=("lost_by", "sum"), gained_by=("gained_by", "sum"), lowest=("change", "min"),
        highest=("change", "max"), least=("least", "median"),
    )  # fmt: skip
    return found.reset_index()
