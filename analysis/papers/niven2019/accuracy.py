"""Accuracy of runs and their reliance on "not", with intervals over runs and points, and published values."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy import stats

from analysis.papers.niven2019.arguments import DOUBLED, KEYS, ORIGINAL, Argument, follows_cue
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
    logits = answers["logits"].transpose("run", "point", "warrant")
    return logits[..., 0].copy(data=correctness(logits.values, answers["label"].values))


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
    return fitted.isel(run=keys.duplicated(keep=False).to_numpy())


def accuracy_table(answers: xr.Dataset) -> pd.DataFrame:
    """Accuracy of every run on every test set: the columns of ACCURACY, proportions.

    `half` is "all" for the whole test set. A run is degenerate if its train accuracy is below DEGENERATE, and fitted as
    `runs.collect` says.
    """
    right, parts = correct(answers), []
    runs = pd.DataFrame({name: answers[name].values for name in (*RUN, "fitted", "train_accuracy")})
    for (tested_on, half), halves in TESTS.items():
        accuracy = right.isel(point=np.isin(answers["half"].values, halves)).mean("point").values
        parts.append(runs.assign(tested_on=tested_on, half=half, accuracy=accuracy))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(degenerate=table["train_accuracy"] < DEGENERATE)[ACCURACY]


def runs_of(
    answers: xr.Dataset,
    model: str,
    setup: str,
    trained_on: str = ORIGINAL,
    halves: Sequence[str] = (ORIGINAL,),
) -> xr.DataArray:
    """Whether the runs of a model, a set-up and a training set are right on halves of the test set (seed, point)."""
    key = zip(KEYS, (model, setup, trained_on), strict=True)
    is_selected = np.all([answers[name].values == value for name, value in key], axis=0)
    selected = answers.isel(run=is_selected, point=np.isin(answers["half"].values, halves))
    return correct(selected).swap_dims(run="seed")


def pair_means(right: xr.DataArray) -> Float[np.ndarray, "run pair"]:
    """The mean of a point and its adversarial copy, which are no independent items, for every run of `runs_of`."""
    codes = pd.factorize(pd.Series(right["point"].values).str.removesuffix(ADVERSARIAL))[0]
    return np.stack([np.bincount(codes, row) for row in right.values]) / np.bincount(codes)


def summary_table(answers: xr.Dataset) -> pd.DataFrame:
    """The table `niven_summary` (docs/tables.yaml); low and high are the interval over runs and points."""
    rows = []
    for key, part in accuracy_table(answers).groupby([*KEYS, "tested_on", "half"], sort=False):
        right = runs_of(answers, *key[:3], TESTS[key[3:]])
        _, low, high = crossed_interval(pair_means(right))
        accuracy, fitted = part["accuracy"], part["fitted"]
        rows.append([*key, len(part), accuracy.mean(), low, high, accuracy.std(), accuracy.median(),
                     accuracy.max(), _above_chance(right.values), int(part["degenerate"].sum()),
                     accuracy[~part["degenerate"]].mean(), int(fitted.sum()), accuracy[fitted].mean()])  # fmt: skip
    columns = [*KEYS, "tested_on", "half", "runs", "mean", "low", "high", "sd", "median", "max", "above_chance",
               "degenerate", "non_degenerate", "fitted", "fitted_mean"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _above_chance(right: Float[np.ndarray, "run point"]) -> int:
    """How many runs are above chance, by the exact binomial test with Holm's correction."""
    p = [stats.binomtest(int(np.floor(row.sum())), row.size, CHANCE, "greater").pvalue for row in right]
    return int((adjust(pd.Series(p), "holm") < 0.05).sum())


def difference_table(answers: xr.Dataset) -> pd.DataFrame:
    """The table `niven_differences` (docs/tables.yaml): set-ups trained and tested on the original arguments."""
    rows = []
    for model in dict.fromkeys(answers["model"].values.tolist()):
        setups = {*answers["setup"].values[answers["model"].values == model]}
        for first, second in (("full", "W"), ("full", "RW"), ("full", "CW"), ("RW", "W"), ("CW", "W")):
            if {first, second} <= setups:
                right = [runs_of(answers, model, setup).values for setup in (first, second)]
                rows.append((model, first, second, len(right[0]), *crossed_interval(*right)))
    return pd.DataFrame(rows, columns=["model", "first", "second", "runs", "difference", "low", "high"])


def beside_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """The table `niven_published`: published test accuracies and those of this study.

    Training and test set are of the same kind, as in Niven 2019.
    """
    ours = summary[(summary["tested_on"] == summary["trained_on"]) & (summary["half"] == ALL)]
    values = ["runs", "mean", "sd", "median", "max", "non_degenerate"]
    theirs = published.set_index(KEYS)[values].add_prefix("published_")
    merged = theirs.join(ours.set_index(KEYS)[values], how="outer").reset_index()
    return merged.sort_values(["trained_on", "model", "setup"], ascending=[False, True, True])


def reliance_table(answers: xr.Dataset, test: Sequence[Argument]) -> pd.DataFrame:
    """The table `niven_reliance` (docs/tables.yaml): reliance on "not".

    `which` is "all" runs, or those that "fitted". always_right: among the points that every run has right and to
    which the cue applies, the share where the cue is right; always_n counts these points. Source: Niven 2019,
    conclusion.
    """
    rows, signs = [], follows_cue(test)
    points, applies = [argument.id for argument in test], signs != 0
    original = answers.isel(run=answers["trained_on"].values == ORIGINAL)
    for which, runs in (("all", original), ("fitted", original.isel(run=original["fitted"].values))):
        setups = zip(runs["model"].values.tolist(), runs["setup"].values.tolist(), strict=True)
        for model, setup in dict.fromkeys(setups):
            right = runs_of(runs, model, setup).sel(point=points).values
            row = {"model": model, "setup": setup, "which": which, "runs": len(right)}
            # A run takes the warrant with the cue if it is right where the cue is.
            values = {FOLLOWS: np.where(signs > 0, right, 1 - right)[:, applies]}
            values |= {kind: right[:, signs == sign] for kind, sign in SIGNS.items()}
            for kind, part in values.items():
                if part.size:
                    row[kind], row[f"{kind}_low"], row[f"{kind}_high"] = crossed_interval(part)
            always = (right == 1).all(axis=0) & applies
            share = float((signs[always] > 0).mean()) if always.any() else np.nan
            rows.append(row | {"always_n": int(always.sum()), "always_right": share})
    return pd.DataFrame(rows)
