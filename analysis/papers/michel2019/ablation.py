"""One head ablated, or one head left in its layer: changes of the scores, and whether they carry over to other data."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Int
from scipy import stats
from tqdm import tqdm

from analysis.encoders.measures import metrics_of, positive_class
from analysis.statistics.answers import LOSS, METRICS, losses, pearson, spearman
from analysis.statistics.bootstrap import resampled
from analysis.statistics.changes import BASELINE, by_head, change_table, compared
from analysis.statistics.effects import AUC, auc_parts, effect_table, match_logit
from analysis.statistics.intervals import draws_interval
from analysis.statistics.significance import quiet
from analysis.statistics.training import LabelsByTask, TaskSeed, floor
from analysis.tables import stacked
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples
from analysis.texts.tasks import task_named

ABLATION = "task seed layer head metric baseline change low high p p_by".split()
ALL_BUT_ONE = [*ABLATION[:4], "chosen_on", *ABLATION[4:]]
MARGIN = 0.2  # the share of a classifier's lead whose loss counts as none
DRAWS = 199  # bootstrap draws of the sequences
LEVEL = 0.05  # 1 - coverage of the interval that shows a loss to be harmless
LOST_ANSWERS = 3  # to which the interval of one lost answer reaches
TOO_FEW = "a fifth of the lead is less than {} answers"
EVERY = "every head"  # value of `chosen_on` if no head is chosen
HALVES = ("one half", "the other half")
TRANSFER = "model data_a data_b metric correlation value low high largest heads".split()


def all_changes(
    logits: Mapping[TaskSeed, xr.DataArray], labels: LabelsByTask, **options: float
) -> pd.DataFrame:
    """The changes of every run in the metrics of its task: `change_table` with task, seed, layer and head.

    `logits` hold an intervention for each head; `options` are those of `change_table`.
    """
    tables = {
        run: by_head(change_table(answers, labels[run[0]], metrics_of(run[0]), **options))
        for run, answers in tqdm(logits.items(), desc="tests", unit="run")
    }
    return stacked(tables, "task", "seed")


def effects_by_metric(logits: Mapping[TaskSeed, xr.DataArray], labels: LabelsByTask) -> pd.DataFrame:
    """`effect_table` of every run of a task with classes, with task, seed, layer and head."""
    tables = {}
    for (task, seed), answers in logits.items():
        if len(task_named(task).labels) > 1:
            table = by_head(effect_table(answers, labels[task], positive_class(task), task=task))
            tables[task, seed] = table.drop(columns="intervention").set_index(["layer", "head"]).reset_index()
    return stacked(tables, "task", "seed")


def overview(changes: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """How many ablations lose or gain significantly, by run and metric, and the smallest loss that the test detects.

    `changes` as `all_changes` or `all_but_one_table` gives them. lost and gained have p < `alpha` without correction;
    least is a median.
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


class Harmless(NamedTuple):
    """Which interventions lose at most MARGIN of the lead over the constant answer.

    `estimated`: the first row is the sample, the others are draws of its sequences; the margin is that of the sample.
    `shown`: the whole 95 % interval of the change lies above the margin. `measurable`: the sample is large enough that
    one lost answer, whose interval reaches three, lies above the margin.
    """

    estimated: Bool[np.ndarray, "draw variant"]
    shown: Bool[np.ndarray, " variant"]
    measurable: bool


def harmless(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], task: str) -> Harmless:
    """Which interventions are harmless in the task's metric (see `Harmless`)."""
    metric = task_named(task).metrics[0]
    changes = compared(logits, labels, metric)
    before, after = changes.weighted(resampled(len(changes.base), DRAWS))
    margin = -MARGIN * (changes.baseline - floor(metric, labels)) - 1e-12
    shown = changes.interval(LEVEL, DRAWS, seed=0)[0] >= margin
    return Harmless(after - before >= margin, shown, len(changes.base) * -margin >= LOST_ANSWERS)


def harmless_shares(
    heads: Mapping[TaskSeed, xr.DataArray],
    layers: Mapping[TaskSeed, xr.DataArray],
    labels: LabelsByTask,
    trained: Collection[TaskSeed],
) -> pd.DataFrame:
    """The table `michel_tolerated`: the share of ablations that are estimated to be `harmless`, and shown to be.

    Both are means over the runs `trained`. `heads` holds the logits with each head ablated, `layers` those with one
    head left in each layer. A task without a trained run, or with too few sequences to show a loss to be harmless, has
    no value, and a reason.
    """
    rows = []
    for unit, logits in (("head", heads), ("layer", layers)):
        for task in dict.fromkeys(task for task, _ in logits):
            runs = [logits[run] for run in logits if run[0] == task and run in trained]
            ablations = [harmless(answers, labels[task], task) for answers in runs]
            reason = (
                "" if all(ablation.measurable for ablation in ablations) else TOO_FEW.format(LOST_ANSWERS)
            )
            reason = reason if runs else "no run trained successfully"
            values: Sequence[float] = (np.nan,) * 4
            if not reason:
                shares = np.array([ablation.estimated.mean(axis=1) for ablation in ablations])
                shown = np.mean([ablation.shown.mean() for ablation in ablations])
                values = *np.clip(draws_interval(shares), 0, 1), shown
            rows.append((unit, task, *values, len(runs), reason))
    return pd.DataFrame(rows, columns=["unit", "task", "value", "low", "high", "shown", "runs", "reason"])


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
    logits: Mapping[TaskSeed, xr.DataArray],
    labels: LabelsByTask,
    best_on_train: Mapping[TaskSeed, Sequence[str]],
    **options: float,
) -> pd.DataFrame:
    """Changes on the dev sequences with one head left in a layer: every head, the best there, and the best on train.

    `best_on_train` names the best head of each layer on training examples (see `best_heads`). Columns ALL_BUT_ONE and
    least. p_by is corrected for all heads where none is chosen, else for the layers. Source: Michel 2019, tables 3, 6.
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
    logits: Mapping[str, xr.DataArray], labels: LabelsByTask, match: int = 1, seed: int = 0
) -> pd.DataFrame:
    """Changes of accuracy, AUC and loss (nats) without each head, on two data sets and on random halves of the first.

    `logits` are those of one model by data set; it was trained on the first. Columns a and b hold the changes. The AUC
    ranks the log odds of class `match`. Effects on halves show how well effects can agree at all.
    """
    columns = [*TRANSFER[:4], "layer", "head", "a", "b"]
    if not logits:
        return pd.DataFrame(columns=columns)
    model = next(iter(logits))
    samples = {data: (answers, labels[data]) for data, answers in logits.items()}
    order = np.random.default_rng(seed).permutation(len(labels[model]))
    for half, places in zip(HALVES, np.array_split(order, 2), strict=True):
        samples[f"{model}, {half}"] = logits[model].isel(sequence=places), labels[model][places]
    names, tables = [*samples], []
    for (data_a, data_b), metric in product((names[:2], names[2:]), ("accuracy", AUC, LOSS)):
        ends = {"a": data_a, "b": data_b}
        changes = {end: _changes(*samples[data], metric, match) for end, data in ends.items()}
        table = by_head(pd.DataFrame(changes).rename_axis("intervention").reset_index())
        tables.append(table.assign(model=model, data_a=data_a, data_b=data_b, metric=metric))
    return pd.concat(tables, ignore_index=True)[columns]


def _changes(
    logits: xr.DataArray, labels: Int[np.ndarray, " sequence"], metric: str, match: int
) -> pd.Series:
    """Accuracy, AUC or loss with each intervention minus that without, by the name of the intervention."""
    answers = logits.transpose("intervention", "sequence", "class").values
    if metric == "accuracy":
        values = answers.argmax(axis=-1) == labels
    elif metric == AUC:
        values = auc_parts(match_logit(answers, match), labels == match)
    else:
        values = losses(answers, labels)[..., 0]
    means = pd.Series(values.mean(axis=-1), logits["intervention"].values)
    return (means - means[BASELINE]).drop(BASELINE)


def transfer_table(effects: pd.DataFrame, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """The table `michel_transfer`: correlations of the `effects` on two sets, with BCa intervals over heads.

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
                rows.append([*key, name, float(correlation(*pair)), *ends, largest, len(heads)])
    return pd.DataFrame(rows, columns=TRANSFER)
