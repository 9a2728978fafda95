"""The evidence for the claims: their measures on the sample, and on resamples of its sequences."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from analysis.papers.michel2019.tables import Labels, Run
from analysis.statistics.changes import Compared
from analysis.statistics.leads import compared, constants, floor, has_lead, with_a_lead  # noqa: F401
from analysis.texts.tasks import task_named

OVER = "mean over tasks"  # the name of a unit
COLUMNS = ["claim", "unit", "n", "replicate", "value"]
Counts = Int[np.ndarray, "draw sequence"]
Measure = Callable[
    [Compared, Counts, float], Float[np.ndarray, " draw"]
]  # measures also receive the score of the constant answer


def counts_of(n: int, draws: int, seed: int = 0) -> Counts:
    """How often each of n sequences counts: once in the first row, then as in `draws` samples with replacement."""
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), draws)
    return np.concatenate([np.ones((1, n), int), drawn])


def mean_value(found: Compared, counts: Counts, _: float = 0) -> Float[np.ndarray, " draw"]:
    """The mean of the metric over the interventions (all steps of pruning except the last, which leaves no head)."""
    return found.drawn(counts)[1][:, :-1].mean(axis=-1)


def retained(found: Compared, counts: Counts, constant: float) -> Float[np.ndarray, " draw"]:
    """The share of the lead over the constant answer that is left, mean over the steps of pruning.

    NaN if the classifier has no lead.
    """
    before, after = found.drawn(counts)[..., :-1]
    ahead = np.where(before > constant, before - constant, np.nan)
    return ((after - constant) / ahead).mean(axis=-1)


def evidence(
    claim: str,
    logits: Mapping[Run, xr.DataArray],
    labels: Labels,
    measure: Measure,
    draws: int = 499,
    each_seed: bool = False,
) -> pd.DataFrame:
    """A claim's measure in every run, on the sample (replicate 0) and on resamples of its sequences: rows of COLUMNS.

    Units are tasks, or tasks with seeds. n is the number of interventions.
    """
    parts = []
    for (task, seed), found in logits.items():
        one = compared(found, labels[task], task_named(task).metrics[0])
        values = measure(one, counts_of(len(one.base), draws), floor(one.metric, labels[task]))
        unit = f"{task}, seed {seed}" if each_seed else task
        parts.append(rows(claim, unit, len(one.others), values))
    return pd.concat([pd.DataFrame(columns=COLUMNS), *parts], ignore_index=True)


def rows(claim: str, unit: str, n: int, values: Float[np.ndarray, " draw"]) -> pd.DataFrame:
    """Replicates of one measure as rows of COLUMNS."""
    return pd.DataFrame(
        {"claim": claim, "unit": unit, "n": n, "replicate": np.arange(len(values)), "value": values}
    )[COLUMNS]


def over_tasks(claim: str, found: pd.DataFrame, other: pd.DataFrame | None = None) -> pd.DataFrame:
    """The mean over tasks of a measure, or of its difference from another one, by replicate, as one unit."""
    keys = ["unit", "replicate"]
    values = found.set_index(keys)["value"]
    if other is not None:
        values = values - other.set_index(keys)["value"]
    means = values.groupby("replicate").mean().to_numpy()
    return rows(claim, OVER, found["unit"].nunique(), means)


def later_gain(
    claim: str, courses: Mapping[str, xr.DataArray], labels: Labels, draws: int = 499
) -> pd.DataFrame:
    """How much more of its lead the final classifier keeps under pruning than the first one with a lead: COLUMNS.

    `courses` as `dynamics.course` gives them; for a lead see `has_lead`. NaN if no earlier classifier has a lead.
    """
    least, parts = constants(labels), []
    for task, course in courses.items():
        counts = counts_of(course.sizes["sequence"], draws)
        fractions = course["fraction"].values
        stages = [compared(course.sel(fraction=each), labels[task], "accuracy") for each in fractions]
        leads = [has_lead(stage, least[task]) for stage in stages]
        first = leads.index(True) if any(leads[:-1]) else None
        values = np.full(len(counts), np.nan)
        if first is not None and leads[-1]:
            values = np.subtract(*(retained(stages[at], counts, least[task]) for at in (-1, first)))
        parts.append(rows(claim, task, len(stages[0].others), values))
    return pd.concat([pd.DataFrame(columns=COLUMNS), *parts], ignore_index=True)
