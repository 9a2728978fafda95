"""Accuracy of runs, with intervals over seeds and points together, and next to the article's values."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int, Num
from scipy import stats

from analysis.papers.niven2019.negation import ADVERSARIAL
from analysis.papers.niven2019.published import DOUBLED, KEYS, ORIGINAL
from analysis.statistics.significance import adjust

ALL = "all"
# What a run is tested on, with the half of the test set.
TESTS = {
    (ORIGINAL, ALL): (ORIGINAL,),
    (DOUBLED, ALL): (ORIGINAL, DOUBLED),
    (DOUBLED, ORIGINAL): (ORIGINAL,),
    (DOUBLED, DOUBLED): (DOUBLED,),
}
LEARNT = 0.8  # the train accuracy below which a run is degenerate (Niven 2019)
CHANCE = 0.5
RUN = [*KEYS, "seed"]
ACCURACY = [*KEYS, "tested_on", "half", "seed", "accuracy", "train_accuracy", "degenerate"]


def correct(answers: xr.Dataset) -> xr.DataArray:
    """Whether each run is right (run, point); equal logits for both warrants count half."""
    logits = answers["logits"]
    right = logits.isel(warrant=0).where(answers["label"] == 0, logits.isel(warrant=1))
    wrong = logits.isel(warrant=1).where(answers["label"] == 0, logits.isel(warrant=0))
    return (right > wrong) + 0.5 * (right == wrong)


def accuracy_table(answers: xr.Dataset) -> pd.DataFrame:
    """Accuracy of every run on every test set: the columns of ACCURACY, proportions.

    `half` is "all" for the whole test set. A run is degenerate if its train accuracy is below LEARNT.
    """
    right = correct(answers)
    runs = pd.DataFrame({name: answers[name].values for name in RUN})
    learnt = answers["train_accuracy"].values
    parts = []
    for (tested_on, half), halves in TESTS.items():
        accuracy = right.isel(point=np.isin(answers["half"].values, halves)).mean("point").values
        parts.append(runs.assign(tested_on=tested_on, half=half, accuracy=accuracy, train_accuracy=learnt))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(degenerate=table["train_accuracy"] < LEARNT)[ACCURACY]


def pairs_of(answers: xr.Dataset) -> pd.Series:
    """The original argument of each point; a point and its adversarial copy are resampled together."""
    return pd.Series(answers["point"].values).str.removesuffix(ADVERSARIAL)


def drawn_means(
    values: Num[np.ndarray, "run point"], units: Sequence, resamples: int = 999, seed: int = 0
) -> Float[np.ndarray, " draw"]:
    """Means over runs and points, with both resampled: first the sample's own mean, then `resamples` draws.

    Points of the same unit in `units` are drawn together. With the same seed, arrays with equally many runs and units
    get the same draws, so that their differences are paired. Source: Owen 2007, the pigeonhole bootstrap, which is
    conservative.
    """
    codes = pd.factorize(np.asarray(units))[0]
    counts = np.bincount(codes)
    sums = np.stack([np.bincount(codes, row) for row in values.astype(float)])
    runs, points = (
        np.concatenate([np.ones((1, size)), _drawn(size, resamples, (seed, place))])
        for place, size in enumerate((len(sums), len(counts)))
    )
    # If few points count, a draw may have none of them.
    with np.errstate(invalid="ignore"):
        return ((runs @ sums) * points).sum(1) / (len(sums) * (points @ counts))


def _drawn(size: int, resamples: int, seed: tuple[int, int]) -> Int[np.ndarray, "draw unit"]:
    """How often each of `size` units occurs in each draw."""
    return np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), resamples)


def limits(draws: Float[np.ndarray, " draw"]) -> tuple[float, float]:
    """The 95 % percentile interval of the draws; the first value is the sample's own and does not count."""
    low, high = np.nanquantile(draws[1:], [0.025, 0.975])
    return float(low), float(high)


def summary_table(answers: xr.Dataset, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Each model and set-up over its runs: model, setup, trained_on, tested_on, half, runs, mean, sd, median, max.

    low and high are the interval over seeds and points. above_chance counts the runs above one half by the exact
    binomial test (5 %, Holm over the runs). degenerate counts runs; non_degenerate is the mean of the others.
    """
    table, right = accuracy_table(answers), correct(answers)
    rows = []
    for (*keys, tested_on, half), part in table.groupby([*KEYS, "tested_on", "half"], sort=False):
        chosen = _runs(answers, *keys), np.isin(answers["half"].values, TESTS[tested_on, half])
        values = right.values[np.ix_(*chosen)]
        low, high = limits(drawn_means(values, pairs_of(answers)[chosen[1]], resamples, seed))
        accuracy, learnt = part["accuracy"], part.loc[~part["degenerate"], "accuracy"]
        rows.append([*keys, tested_on, half, len(part), accuracy.mean(), low, high, accuracy.std(),
                     accuracy.median(), accuracy.max(), _above_chance(values), int(part["degenerate"].sum()),
                     learnt.mean()])  # fmt: skip
    columns = [*KEYS, "tested_on", "half", "runs", "mean", "low", "high", "sd", "median", "max", "above_chance",
               "degenerate", "non_degenerate"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _runs(answers: xr.Dataset, model: str, setup: str, trained_on: str) -> np.ndarray:
    """Which runs belong to a model, a set-up and a training set."""
    wanted = {"model": model, "setup": setup, "trained_on": trained_on}
    return np.all([answers[name].values == value for name, value in wanted.items()], axis=0)


def _above_chance(values: Num[np.ndarray, "run point"]) -> int:
    """How many runs are above chance, by the exact binomial test with Holm's correction."""
    found = [stats.binomtest(int(np.floor(row.sum())), row.size, CHANCE, "greater").pvalue for row in values]
    return int((adjust(pd.Series(found), "holm") < 0.05).sum())


def of_runs(
    answers: xr.Dataset, model: str, setup: str, trained_on: str = ORIGINAL, half: str = ORIGINAL
) -> xr.DataArray:
    """Whether the runs of a model and set-up are right on one half of the adversarial test set (seed, point)."""
    chosen = answers.isel(
        run=_runs(answers, model, setup, trained_on),
        point=np.isin(answers["half"].values, TESTS[DOUBLED, half]),
    )
    return correct(chosen).assign_coords(seed=("run", chosen["seed"].values)).swap_dims(run="seed")


def difference_draws(
    answers: xr.Dataset, model: str, first: str, second: str, resamples: int = 999, seed: int = 0
) -> Float[np.ndarray, " draw"]:
    """Accuracy of one set-up minus another on the original test points: the sample's difference, then draws.

    Runs are paired by seed, points by id; NaN if a set-up has no run.
    """
    one, other = (of_runs(answers, model, setup) for setup in (first, second))
    seeds = sorted({*one["seed"].values} & {*other["seed"].values})
    if not seeds:
        return np.full(1 + resamples, np.nan)
    difference = one.sel(seed=seeds).values - other.sel(seed=seeds).values
    return drawn_means(difference, one["point"].values, resamples, seed)


def difference_table(answers: xr.Dataset, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Paired differences of set-ups: model, first, second, runs, difference, low, high."""
    rows = []
    for model in dict.fromkeys(answers["model"].values.tolist()):
        there = {name for name in answers["setup"].values[answers["model"].values == model]}
        for first, second in (("full", "W"), ("full", "RW"), ("full", "CW"), ("RW", "W"), ("CW", "W")):
            if {first, second} <= there:
                draws = difference_draws(answers, model, first, second, resamples, seed)
                runs = of_runs(answers, model, first).sizes["seed"]
                rows.append((model, first, second, runs, draws[0], *limits(draws)))
    return pd.DataFrame(rows, columns=["model", "first", "second", "runs", "difference", "low", "high"])


def beside_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """The article's test accuracies and ours, for models that both have, and for its BERT next to our encoder.

    Columns model, setup, trained_on, tested_on, published_ and our mean, sd, median, max, non_degenerate and runs.
    Training and test set are of the same kind, as in the article.
    """
    ours = summary[(summary["tested_on"] == summary["trained_on"]) & (summary["half"] == ALL)]
    values = ["runs", "mean", "sd", "median", "max", "non_degenerate"]
    known = published.rename(columns={name: f"published_{name}" for name in values})
    merged = known.merge(ours[[*KEYS, *values]], on=KEYS, how="outer", sort=False)
    order = [*KEYS, *(f"published_{name}" for name in values), *values]
    return merged.sort_values(["trained_on", "model", "setup"], ascending=[False, True, True])[order]
