"""One head ablated, or one head left in its layer: changes, choices, and whether effects carry over to other data."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy import stats
from tqdm import tqdm

from analysis.statistics.answers import LOSS, METRICS, metrics_of
from analysis.statistics.changes import BASELINE, Compared, by_head, change_table
from analysis.statistics.correlations import pearson, spearman
from analysis.statistics.effects import AUC, auc_parts, effect_table, match_logit
from analysis.statistics.intervals import draws_interval
from analysis.statistics.leads import Labels, compared, floor
from analysis.statistics.resampling import resampled
from analysis.statistics.significance import quiet
from analysis.statistics.training import Run
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples
from analysis.texts.tasks import positive_class, task_named

ABLATION = "task seed layer head metric baseline change low high p p_by".split()
ALL_BUT_ONE = [*ABLATION[:4], "chosen_on", *ABLATION[4:]]
MARGIN = 0.2  # the share of a classifier's lead that counts as no loss
DRAWS = 199  # of the sequences
EVERY = "every head"  # value of `chosen_on` if no head is chosen
HALVES = ("one half", "the other half")
TRANSFER = "model data_a data_b metric correlation value low high largest heads".split()

Changes = Float[np.ndarray, "*draw head"]


def all_changes(logits: Mapping[Run, xr.DataArray], labels: Labels, **options: float) -> pd.DataFrame:
    """The changes of every run in the metrics of its task: `change_table` with task, seed, layer and head.

    `logits` hold an intervention for each head; `options` are those of `change_table`.
    """
    parts = []
    for (task, seed), answers in tqdm(logits.items(), desc="tests", unit="run"):
        table = change_table(answers, labels[task], metrics_of(task), **options)
        parts.append(by_head(table).assign(task=task, seed=seed))
    return pd.concat(parts, ignore_index=True)


def effects_by_metric(logits: Mapping[Run, xr.DataArray], labels: Labels) -> pd.DataFrame:
    """`effect_table` of every run of a task with classes, with task, seed, layer and head."""
    parts = [
        by_head(effect_table(answers, labels[task], positive_class(task), task=task)).assign(
            task=task, seed=seed
        )
        for (task, seed), answers in logits.items()
        if len(task_named(task).labels) > 1
    ]
    table = pd.concat(parts, ignore_index=True).drop(columns="intervention")
    first = ["task", "seed", "layer", "head"]
    return table[[*first, *table.columns.drop(first)]]


def auc_changes(effects: pd.DataFrame) -> pd.DataFrame:
    """The changes of the AUC in the table `michel_effects`, as rows of `michel_ablation`; they have no p."""
    table = effects[effects["metric"] == AUC]
    table = table.assign(change=0 - table["effect"], low=0 - table["high"], high=0 - table["low"])
    return table.reindex(columns=ABLATION)


def overview(changes: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """How many removals lose or gain significantly, by run and metric, and the smallest loss that the test detects.

    `changes` as `all_changes` or `all_but_one_table` gives them. Columns heads; baseline; lost, gained (p < `alpha`);
    lost_by, gained_by (p_by); lowest, highest (changes); least (median, power .8), p without correction.
    """
    gain = np.where(changes["metric"] == LOSS, -1, 1) * changes["change"]
    marks = {
        f"{name}{suffix}": (sign * gain > 0) & (changes[f"p{suffix}"] < alpha)
        for suffix in ("", "_by")
        for name, sign in (("lost", -1), ("gained", 1))
    }
    keys = [name for name in ("task", "seed", "chosen_on", "metric") if name in changes]
    by_run = changes.assign(**marks).groupby(keys, sort=False, dropna=False)
    sums = {name: (name, "sum") for name in marks}
    return by_run.agg(
        heads=("change", "size"), baseline=("baseline", "first"), **sums, lowest=("change", "min"),
        highest=("change", "max"), least=("least", "median"),
    ).reset_index()  # fmt: skip


def tolerated(
    changes: Compared, constant: float, draws: int = DRAWS, seed: int = 0
) -> Bool[np.ndarray, "draw variant"]:
    """Whether each change is a loss of at most MARGIN of the lead over the constant answer: the sample, then draws.

    Sequences are drawn again; the margin is that of the sample.
    """
    before, after = changes.drawn(resampled(len(changes.base), draws, seed))
    return after - before >= -MARGIN * (changes.baseline - constant) - 1e-12


def tolerated_table(
    heads: Mapping[Run, xr.DataArray],
    layers: Mapping[Run, xr.DataArray],
    labels: Labels,
    trained: Collection[Run],
) -> pd.DataFrame:
    """The share of ablations without a loss above the margin (see `tolerated`): unit, task, value, low, high, runs.

    `heads` holds the logits without each head, `layers` those with the chosen head of each layer alone, of every run.
    The mean is over the runs in `trained`; a task without any has no value.
    """
    rows = []
    for unit, logits in (("head", heads), ("layer", layers)):
        for task in dict.fromkeys(task for task, _ in logits):
            metric = task_named(task).metrics[0]
            runs = [logits[run] for run in logits if run[0] == task and run in trained]
            constant = floor(metric, labels[task])
            shares = [
                tolerated(compared(answers, labels[task], metric), constant).mean(axis=1) for answers in runs
            ]
            rows.append(
                (unit, task, *(draws_interval(np.array(shares)) if runs else (np.nan,) * 3), len(runs))
            )
    return pd.DataFrame(rows, columns=["unit", "task", "value", "low", "high", "runs"])


def ranked_heads(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> pd.DataFrame:
    """The interventions (intervention, layer, head) by the task's metric, best first; of equals, the lower loss."""
    rows = logits.drop_sel(intervention=BASELINE)
    values = {
        name: METRICS[name].value(METRICS[name].columns(rows.values, labels).mean(axis=1))
        for name in (task_named(task).metrics[0], LOSS)
    }
    table = by_head(pd.DataFrame({"intervention": rows["intervention"].values} | values))
    return table.sort_values([*values], ascending=[False, True], kind="stable")


def best_heads(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> list[str]:
    """The best intervention of each layer (see `ranked_heads`)."""
    best = ranked_heads(logits, labels, task).drop_duplicates("layer")
    return best.sort_values("layer")["intervention"].tolist()


def all_but_one_table(
    logits: Mapping[Run, xr.DataArray],
    labels: Labels,
    best_on_train: Mapping[Run, Sequence[str]],
    **options: float,
) -> pd.DataFrame:
    """The change on the dev sequences with one head left in a layer: each head, the best there, and the best on train.

    `best_on_train` names the best head of each layer on training examples (see `best_heads`). Columns ALL_BUT_ONE
    and least. p_by corrects over all heads if none is chosen, and over the layers if one is.
    Source: Michel 2019, tables 3 and 6.
    """
    best = {run: best_heads(answers, labels[run[0]], run[0]) for run, answers in logits.items()}
    parts = [all_changes(logits, labels, **options).assign(chosen_on=EVERY)]
    for name, heads in (("dev", best), ("train", best_on_train)):
        selected = {run: logits[run].sel(intervention=[BASELINE, *names]) for run, names in heads.items()}
        parts.append(all_changes(selected, labels, **options).assign(chosen_on=name))
    return pd.concat(parts, ignore_index=True)[[*ALL_BUT_ONE, "least"]]


def transfer_examples(
    names: Sequence[str], tasks: Sequence[str], source: str | None, n: int | None, seed: int
) -> dict[str, list[Example]]:
    """The examples of two data sets by name: a task for its dev set, or a task and a split ("mnli dev_mismatched").

    Empty if a set is of none of the `tasks`.
    """
    sets = {name: [*name.split(), "dev"][:2] for name in names}
    if not {task for task, _ in sets.values()} <= {*tasks}:
        return {}
    return {name: load_examples(task, source, split, n, seed) for name, (task, split) in sets.items()}


def effects(
    logits: Mapping[str, xr.DataArray], labels: Labels, match: int = 1, seed: int = 0
) -> pd.DataFrame:
    """Changes without each head, of the AUC and of the loss (nats): on two data sets, and on halves of the first.

    `logits` are those of one model by data set; on the first it was trained. Columns model, data_a, data_b, metric,
    layer, head, a and b (the changes). The AUC ranks the log odds of class `match`. The random halves tell how far
    effects can agree at all.
    """
    columns = [*TRANSFER[:4], "layer", "head", "a", "b"]
    if not logits:
        return pd.DataFrame(columns=columns)
    whole = {data: (answers, labels[data]) for data, answers in logits.items()}
    model, (answers, gold) = next(iter(whole.items()))
    parts = np.array_split(np.random.default_rng(seed).permutation(len(gold)), 2)
    halves = {
        f"{model}, {half}": (answers.isel(sequence=part), gold[part])
        for half, part in zip(HALVES, parts, strict=True)
    }
    heads = answers.drop_sel(intervention=BASELINE)["intervention"].values
    parts = []
    for pair, metric in product((whole, halves), (AUC, LOSS)):
        (data_a, a), (data_b, b) = (
            (data, _changes(*answered, metric, match)) for data, answered in pair.items()
        )
        table = by_head(pd.DataFrame({"intervention": heads, "a": a, "b": b}))
        parts.append(table.assign(model=model, data_a=data_a, data_b=data_b, metric=metric))
    return pd.concat(parts, ignore_index=True)[columns]


def _changes(
    logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], metric: str, match: int
) -> Float[np.ndarray, " head"]:
    """The metric with each head ablated minus that of the whole classifier."""
    if metric != AUC:
        return compared(logits, labels, metric).change
    odds = match_logit(logits.transpose("intervention", "sequence", "class").values, match)
    areas = pd.Series(auc_parts(odds, labels == match).mean(axis=-1), logits["intervention"].values)
    return (areas - areas[BASELINE]).drop(BASELINE).to_numpy()


def transfer_table(effects: pd.DataFrame, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Correlations over heads of the `effects` on two sets, with BCa intervals over heads: columns TRANSFER.

    `largest` names the heads with the largest change on either set. Changes without spread have no correlation.
    """
    rows = []
    for key, heads in effects.groupby(TRANSFER[:4], sort=False):
        strongest = heads.loc[[heads["a"].abs().idxmax(), heads["b"].abs().idxmax()], ["layer", "head"]]
        largest = " and ".join(dict.fromkeys(f"{layer}-{head}" for layer, head in strongest.to_numpy()))
        pair = heads["a"].to_numpy(), heads["b"].to_numpy()
        for name, correlation in (("Pearson", pearson), ("Spearman", spearman)):
            options = {"paired": True, "n_resamples": resamples, "method": "BCa", "rng": seed}
            with quiet():
                ends = stats.bootstrap(pair, correlation, **options).confidence_interval
                rows.append([*key, name, correlation(*pair), *ends, largest, len(heads)])
    return pd.DataFrame(rows, columns=TRANSFER)
