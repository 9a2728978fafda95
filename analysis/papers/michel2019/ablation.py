"""One head removed, or one head left in its layer: changes, choices, and whether effects carry over to other data."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats
from tqdm import tqdm

from analysis.statistics.answers import LOSS, METRICS, metrics_of
from analysis.statistics.changes import BASELINE, by_head, change_table, rises
from analysis.statistics.leads import Labels, compared
from analysis.statistics.significance import quiet
from analysis.statistics.training import Run
from analysis.texts.tasks import task_named

ABLATION = "task seed layer head metric baseline change low high p p_by".split()
ALL_BUT_ONE = [*ABLATION[:4], "chosen_on", *ABLATION[4:]]
EVERY = "every head"  # value of `chosen_on` if no head is chosen
HALVES = ("one half", "the other half")
TRANSFER = "model data_a data_b metric correlation value low high largest heads".split()

Changes = Float[np.ndarray, "*draw head"]


def all_changes(logits: Mapping[Run, xr.DataArray], labels: Labels, **options: float) -> pd.DataFrame:
    """The changes of every run in the metrics of its task: `change_table` with task, seed, layer and head.

    `logits` hold an intervention for each head; `options` are those of `change_table`.
    """
    parts = []
    for (task, seed), found in tqdm(logits.items(), desc="tests", unit="run"):
        table = change_table(found, labels[task], metrics_of(task), **options)
        parts.append(by_head(table).assign(task=task, seed=seed))
    return pd.concat(parts, ignore_index=True)


def overview(changes: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """How many removals lose or gain significantly, by run and metric, and the smallest loss that the test detects.

    `changes` as `all_changes` or `all_but_one_table` gives them. Columns heads; baseline; lost, gained (p < `alpha`);
    lost_by, gained_by (p_by); lowest, highest (changes); least (median, power .8), p without correction.
    """
    better = np.where(changes["metric"] == LOSS, -1, 1) * changes["change"]
    marks = {
        f"{name}{suffix}": (sign * better > 0) & (changes[f"p{suffix}"] < alpha)
        for suffix in ("", "_by")
        for name, sign in (("lost", -1), ("gained", 1))
    }
    keys = [name for name in ("task", "seed", "chosen_on", "metric") if name in changes]
    found = changes.assign(**marks).groupby(keys, sort=False, dropna=False)
    sums = {name: (name, "sum") for name in marks}
    return found.agg(
        heads=("change", "size"), baseline=("baseline", "first"), **sums, lowest=("change", "min"),
        highest=("change", "max"), least=("least", "median"),
    ).reset_index()  # fmt: skip


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


def ranked(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> pd.DataFrame:
    """The interventions (intervention, layer, head) by the task's metric, best first; of equals, the lower loss."""
    rows = logits.drop_sel(intervention=BASELINE)
    values = {
        name: METRICS[name].value(METRICS[name].columns(rows.values, labels).mean(axis=1))
        for name in (task_named(task).metrics[0], LOSS)
    }
    table = by_head(pd.DataFrame({"intervention": rows["intervention"].values} | values))
    return table.sort_values([*values], ascending=[False, True], kind="stable")


def best_heads(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> list[str]:
    """The best intervention of each layer (see `ranked`)."""
    best = ranked(logits, labels, task).drop_duplicates("layer")
    return best.sort_values("layer")["intervention"].tolist()


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
    best = {key: best_heads(found, labels[key[0]], key[0]) for key, found in logits.items()}
    parts = [all_changes(logits, labels, **options).assign(chosen_on=EVERY)]
    for name, picks in (("dev", best), ("train", chosen)):
        found = {key: logits[key].sel(intervention=[BASELINE, *pick]) for key, pick in picks.items()}
        parts.append(all_changes(found, labels, **options).assign(chosen_on=name))
    return pd.concat(parts, ignore_index=True)[[*ALL_BUT_ONE, "least"]]


def effects(logits: Mapping[str, xr.DataArray], labels: Labels, seed: int = 0) -> pd.DataFrame:
    """Changes without each head, of the loss (nats) and of accuracy: on two data sets, and on halves of the first.

    `logits` are those of one model by data set; on the first it was trained. Columns model, data_a, data_b, metric,
    layer, head, a and b (the changes). The random halves tell how far effects can agree at all.
    """
    columns = [*TRANSFER[:4], "layer", "head", "a", "b"]
    if not logits:
        return pd.DataFrame(columns=columns)
    whole = {data: (found, labels[data]) for data, found in logits.items()}
    model, (own, known) = next(iter(whole.items()))
    cut = np.array_split(np.random.default_rng(seed).permutation(len(known)), 2)
    names = (f"{model}, {half}" for half in HALVES)
    halves = {name: (own.isel(sequence=part), known[part]) for name, part in zip(names, cut, strict=True)}
    heads = own.drop_sel(intervention=BASELINE)["intervention"].values
    parts = []
    for pair, metric in product((whole, halves), (LOSS, "accuracy")):
        (data_a, a), (data_b, b) = ((data, compared(*each, metric).change) for data, each in pair.items())
        table = by_head(pd.DataFrame({"intervention": heads, "a": a, "b": b}))
        parts.append(table.assign(model=model, data_a=data_a, data_b=data_b, metric=metric))
    return pd.concat(parts, ignore_index=True)[columns]


def transfer_table(found: pd.DataFrame, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Correlations over heads of the `effects` on two sets, with BCa intervals over heads: columns TRANSFER.

    `largest` names the heads with the largest change on either set. Changes without spread have no correlation.
    """
    rows = []
    for key, each in found.groupby(TRANSFER[:4], sort=False):
        farthest = each.loc[[each["a"].abs().idxmax(), each["b"].abs().idxmax()], ["layer", "head"]]
        largest = " and ".join(dict.fromkeys(f"{layer}-{head}" for layer, head in farthest.to_numpy()))
        pair = each["a"].to_numpy(), each["b"].to_numpy()
        for name, correlation in (("Pearson", pearson), ("Spearman", spearman)):
            options = {"paired": True, "n_resamples": resamples, "method": "BCa", "rng": seed}
            with quiet():
                ends = stats.bootstrap(pair, correlation, **options).confidence_interval
                rows.append([*key, name, correlation(*pair), *ends, largest, len(each)])
    return pd.DataFrame(rows, columns=TRANSFER)


def pearson(a: Changes, b: Changes, axis: int = -1) -> Float[np.ndarray, "*draw"]:
    """Pearson's correlation along an axis."""
    return stats.pearsonr(a, b, axis=axis).statistic


def spearman(a: Changes, b: Changes, axis: int = -1) -> Float[np.ndarray, "*draw"]:
    """Spearman's: that of the ranks; `stats.spearmanr` has no axis of resamples."""
    return pearson(stats.rankdata(a, axis=axis), stats.rankdata(b, axis=axis), axis)
