"""Accuracy of runs and their reliance on "not", with intervals over runs and points, and published values."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int, Num
from scipy import stats

from analysis.papers.niven2019.arguments import DOUBLED, KEYS, ORIGINAL, Argument
from analysis.papers.niven2019.cues import follows_cue
from analysis.papers.niven2019.negation import ADVERSARIAL
from analysis.statistics.intervals import crossed_interval
from analysis.statistics.significance import adjust

ALL = "all"
RIGHT, WRONG, ABSENT = "right", "wrong", "absent"
SIGNS = {RIGHT: 1, WRONG: -1, ABSENT: 0}
FOLLOWS = "follows"
CUE_HEADS = "cue heads"  # the intervention that ablates the heads that attend to the cue most
# What a run is tested on, with the half of the test set.
TESTS = {
    (ORIGINAL, ALL): (ORIGINAL,),
    (DOUBLED, ALL): (ORIGINAL, DOUBLED),
    (DOUBLED, ORIGINAL): (ORIGINAL,),
    (DOUBLED, DOUBLED): (DOUBLED,),
}
DEGENERATE = 0.8  # the train accuracy below which a run is degenerate (Niven 2019)
CHANCE = 0.5
RUN = [*KEYS, "seed"]
ACCURACY = [*KEYS, "tested_on", "half", "seed", "accuracy", "train_accuracy", "degenerate", "fitted"]


def published(table: str) -> pd.DataFrame:
    """Published values: `cues` (Table 2), `results` (Tables 1, 3, 4) or `reliance` (from the released predictions).

    All values are proportions.
    """
    return pd.read_csv(Path(__file__).with_name(f"published_{table}.csv"))


def correct(answers: xr.Dataset) -> xr.DataArray:
    """Whether each run is right (run, point); equal logits for both warrants count half."""
    right = correctness(
        answers["logits"].transpose("run", "point", "warrant").values, answers["label"].values
    )
    return answers["logits"].isel(warrant=0, drop=True).copy(data=right)


def correctness(
    logits: Float[np.ndarray, "run point warrant"], labels: Int[np.ndarray, " point"]
) -> Float[np.ndarray, "run point"]:
    """1 where the right warrant has the larger logit, 0 where the other has, 0.5 where both are equal."""
    lead = (logits[..., 1] - logits[..., 0]) * np.where(labels == 1, 1, -1)
    return (1 + np.sign(lead)) / 2


def evidence(answers: xr.Dataset) -> xr.Dataset:
    """The runs on which claims are judged: those that fit, if at least two of a model, set-up and training set do.

    A run that does not fit its training set says nothing of what a model learns from it.
    """
    fitted = answers.isel(run=answers["fitted"].values)
    keys = pd.DataFrame({name: fitted[name].values for name in KEYS})
    return fitted.isel(run=(keys.groupby(KEYS)[KEYS[0]].transform("size") > 1).to_numpy(bool))


def accuracy_table(answers: xr.Dataset) -> pd.DataFrame:
    """Accuracy of every run on every test set: the columns of ACCURACY, proportions.

    `half` is "all" for the whole test set. A run is degenerate if its train accuracy is below DEGENERATE, and fitted as
    `runs.collect` says.
    """
    right = correct(answers)
    runs = pd.DataFrame({name: answers[name].values for name in (*RUN, "fitted")})
    runs["train_accuracy"] = answers["train_accuracy"].values
    parts = []
    for (tested_on, half), halves in TESTS.items():
        accuracy = right.isel(point=np.isin(answers["half"].values, halves)).mean("point").values
        parts.append(runs.assign(tested_on=tested_on, half=half, accuracy=accuracy))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(degenerate=table["train_accuracy"] < DEGENERATE)[ACCURACY]


def pairs_of(answers: xr.Dataset) -> pd.Series:
    """The original argument of each point; a point and its adversarial copy are resampled together."""
    return pd.Series(answers["point"].values).str.removesuffix(ADVERSARIAL)


def pair_means(values: Num[np.ndarray, "run point"], pairs: Sequence[str]) -> Float[np.ndarray, "run pair"]:
    """The mean of a point and its adversarial copy, which are no independent items."""
    codes = pd.factorize(np.asarray(pairs))[0]
    return np.stack([np.bincount(codes, row) for row in values.astype(float)]) / np.bincount(codes)


def summary_table(answers: xr.Dataset) -> pd.DataFrame:
    """Each model and set-up over its runs: model, setup, trained_on, tested_on, half, runs, mean, sd, median, max.

    low and high are the interval over runs and points (`crossed_interval`). above_chance counts the runs above one half
    by the exact binomial test (5 %, Holm over the runs). degenerate counts runs; non_degenerate is the mean of the
    others; fitted counts runs, and fitted_mean is their mean.
    """
    table, right = accuracy_table(answers), correct(answers)
    rows = []
    for (*keys, tested_on, half), part in table.groupby([*KEYS, "tested_on", "half"], sort=False):
        points = np.isin(answers["half"].values, TESTS[tested_on, half])
        values = right.values[np.ix_(_is_run(answers, *keys), points)]
        _, low, high = crossed_interval(pair_means(values, pairs_of(answers)[points]))
        accuracy, fitted = part["accuracy"], part["fitted"]
        rows.append([*keys, tested_on, half, len(part), accuracy.mean(), low, high, accuracy.std(),
                     accuracy.median(), accuracy.max(), _above_chance(values), int(part["degenerate"].sum()),
                     accuracy[~part["degenerate"]].mean(), int(fitted.sum()), accuracy[fitted].mean()])  # fmt: skip
    columns = [*KEYS, "tested_on", "half", "runs", "mean", "low", "high", "sd", "median", "max", "above_chance",
               "degenerate", "non_degenerate", "fitted", "fitted_mean"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _is_run(answers: xr.Dataset, model: str, setup: str, trained_on: str) -> Bool[np.ndarray, " run"]:
    """Which runs belong to a model, a set-up and a training set."""
    key = zip(KEYS, (model, setup, trained_on), strict=True)
    return np.all([answers[name].values == value for name, value in key], axis=0)


def _above_chance(values: Num[np.ndarray, "run point"]) -> int:
    """How many runs are above chance, by the exact binomial test with Holm's correction."""
    p = [stats.binomtest(int(np.floor(row.sum())), row.size, CHANCE, "greater").pvalue for row in values]
    return int((adjust(pd.Series(p), "holm") < 0.05).sum())


def runs_of(
    answers: xr.Dataset, model: str, setup: str, trained_on: str = ORIGINAL, half: str = ORIGINAL
) -> xr.DataArray:
    """Whether the runs of a model and set-up are right on one half of the adversarial test set (seed, point)."""
    points = np.isin(answers["half"].values, TESTS[DOUBLED, half])
    selected = answers.isel(run=_is_run(answers, model, setup, trained_on), point=points)
    return correct(selected).assign_coords(seed=("run", selected["seed"].values)).swap_dims(run="seed")


def difference_table(answers: xr.Dataset) -> pd.DataFrame:
    """Paired differences of set-ups: model, first, second, runs, difference, low, high."""
    rows = []
    for model in dict.fromkeys(answers["model"].values.tolist()):
        setups = {*answers["setup"].values[answers["model"].values == model]}
        for first, second in (("full", "W"), ("full", "RW"), ("full", "CW"), ("RW", "W"), ("CW", "W")):
            if {first, second} <= setups:
                right = [runs_of(answers, model, setup).values for setup in (first, second)]
                rows.append((model, first, second, len(right[0]), *crossed_interval(*right)))
    return pd.DataFrame(rows, columns=["model", "first", "second", "runs", "difference", "low", "high"])


def beside_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Published test accuracies and those of this study, a row per model, set-up and training set.

    Columns model, setup, trained_on; published_ runs, mean, sd, median, max and non_degenerate; the same of this study.
    Training and test set are of the same kind, as in Niven 2019.
    """
    ours = summary[(summary["tested_on"] == summary["trained_on"]) & (summary["half"] == ALL)]
    values = ["runs", "mean", "sd", "median", "max", "non_degenerate"]
    theirs = published.rename(columns={name: f"published_{name}" for name in values})
    merged = theirs.merge(ours[[*KEYS, *values]], on=KEYS, how="outer", sort=False)
    order = [*KEYS, *(f"published_{name}" for name in values), *values]
    return merged.sort_values(["trained_on", "model", "setup"], ascending=[False, True, True])[order]


def takes_cue(
    right: Float[np.ndarray, "seed point"], signs: Int[np.ndarray, " point"]
) -> Float[np.ndarray, "seed applicable"]:
    """Whether a run takes the warrant with the cue, at the points where the cue applies."""
    applies = signs != 0
    return np.where(signs[applies] > 0, right[:, applies], 1 - right[:, applies])


def reliance_table(answers: xr.Dataset, test: Sequence[Argument]) -> pd.DataFrame:
    """Reliance on "not": model, setup, which, runs, then follows, right, wrong and absent with their intervals.

    `which` is "all" runs, or those that "fitted". always_right: among the points that every run has right and to
    which the cue applies, the share where the cue is right; always_n counts these points. Source: Niven 2019,
    conclusion.
    """
    rows, signs = [], follows_cue(test)
    points = [argument.id for argument in test]
    for which in ("all", "fitted"):
        keep = (answers["trained_on"].values == ORIGINAL) & (answers["fitted"].values | (which == "all"))
        runs = answers.isel(run=keep)
        setups = zip(runs["model"].values.tolist(), runs["setup"].values.tolist(), strict=True)
        for model, setup in dict.fromkeys(setups):
            right = runs_of(runs, model, setup).sel(point=points).values
            row = {"model": model, "setup": setup, "which": which, "runs": len(right)}
            values = {FOLLOWS: takes_cue(right, signs)}
            values |= {kind: right[:, signs == sign] for kind, sign in SIGNS.items()}
            for kind, part in values.items():
                if part.size:
                    row[kind], row[f"{kind}_low"], row[f"{kind}_high"] = crossed_interval(part)
            always = (right == 1).all(axis=0) & (signs != 0)
            share = float((signs[always] > 0).mean()) if always.any() else np.nan
            rows.append(row | {"always_n": int(always.sum()), "always_right": share})
    return pd.DataFrame(rows)
