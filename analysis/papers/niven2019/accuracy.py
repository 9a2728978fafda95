"""Accuracy of runs and their reliance on "not", with intervals over runs and points, and published values."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int

from analysis import tables
from analysis.papers.niven2019.arguments import (
    DOUBLED,
    MODELS,
    ORIGINAL,
    RUN_KIND,
    SETUPS,
    Argument,
    follows_cue,
)
from analysis.statistics.intervals import (
    MINIMUM_RUNS,
    Interval,
    crossed_interval,
    mean_interval,
    t_interval,
    wilson_interval,
)

ALL = "all"
RIGHT, WRONG, ABSENT = "right", "wrong", "absent"
SIGNS = {RIGHT: 1, WRONG: -1, ABSENT: 0}
CUE_HEADS = "cue heads"  # the intervention that ablates the heads that attend to the cue most
HALVES = (ORIGINAL, DOUBLED)  # of the adversarial test set
# What a run is tested on, and the half or both halves of the test set that this reads.
TESTS = {
    (ORIGINAL, ALL): ORIGINAL,
    (DOUBLED, ALL): ALL,
    (DOUBLED, ORIGINAL): ORIGINAL,
    (DOUBLED, DOUBLED): DOUBLED,
}
COMPARED = ("full", "W"), ("full", "RW"), ("full", "CW"), ("RW", "W"), ("CW", "W")  # set-ups
DEGENERATE = 0.8  # the train accuracy below which a run is degenerate (Niven 2019)
CHANCE = 0.5
RUN = [*RUN_KIND, "seed"]
ACCURACY = [*RUN_KIND, "tested_on", "half", "seed", "accuracy", "train_accuracy", "degenerate", "trained"]
RELIANCE = ["model", "setup", "runs"]
RELIANCE += [f"{kind}{end}" for kind in ("follows", *SIGNS) for end in ("", "_low", "_high")]
RELIANCE += ["always_n", "always_right"]
Right = Float[np.ndarray, "run point"]
published = partial(tables.published, Path(__file__).parent)  # all about ARCT


def own_test(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of runs on the whole test set of the kind that they are trained on: original, or adversarial."""
    same = (table["tested_on"] == ORIGINAL) == (table["trained_on"] == ORIGINAL)
    return table[same & (table["half"] == ALL)]


def correctness(
    logits: Float[np.ndarray, "... point warrant"], labels: Int[np.ndarray, "... point"]
) -> Float[np.ndarray, "... point"]:
    """1 where the right warrant has the larger logit, 0 where the other has, 0.5 where both are equal."""
    lead = (logits[..., 1] - logits[..., 0]) * np.where(labels == 1, 1, -1)
    return (1 + np.sign(lead)) / 2


def right_answers(answers: xr.Dataset) -> xr.DataArray:
    """Whether each run is right (run, half, point) (see `correctness`); `answers` are those of `runs.joined`."""
    logits = answers["logits"].transpose("run", "half", "point", "warrant")
    return logits[..., 0].copy(data=correctness(logits.values, answers["label"].values))


def runs_of(
    right: xr.DataArray, model: str, setup: str, trained_on: str = ORIGINAL, half: str = ORIGINAL
) -> xr.DataArray:
    """The runs of a model, a set-up and a training set, on one half of the test set (seed, point).

    For both halves it is the mean of a point and its adversarial copy, which are no independent items.
    """
    key = zip(RUN_KIND, (model, setup, trained_on), strict=True)
    selected = right.isel(run=np.all([right[name].values == value for name, value in key], axis=0))
    selected = selected.mean("half") if half == ALL else selected.sel(half=half, drop=True)
    return selected.swap_dims(run="seed")


def share_interval(right: Right) -> Interval:
    """The mean of right answers with its interval over points and, with three runs or more, over runs.

    Wilson's limits over points hold near 0 and 1. Their distances from the mean and those of the t limits over runs are
    added as squares (Zou and Donner 2008), and the sums are cut to [0, 1].
    """
    share, points = float(right.mean()), right.shape[1]
    distances = [share - np.array(wilson_interval(round(share * points), points)[1:])]
    if len(right) >= MINIMUM_RUNS:
        distances.append(share - np.array(mean_interval(right.mean(axis=1))[1:]))
    below, above = np.linalg.norm(distances, axis=0)
    return share, max(0.0, share - below), min(1.0, share + above)


def gap_interval(right: Right, signs: Int[np.ndarray, " point"]) -> Interval:
    """Accuracy where the cue is right minus where it is wrong, on other points of the same runs, cut to [-1, 1]."""
    sides = [right[:, signs == sign] for sign in (1, -1)]
    gaps = sides[0].mean(axis=1) - sides[1].mean(axis=1)
    means = [side.mean(axis=0) for side in sides] + [gaps] * (len(gaps) >= MINIMUM_RUNS)
    gap, low, high = t_interval(
        gaps.mean(), [(part.var(ddof=1) / len(part), len(part) - 1) for part in means]
    )
    return gap, max(-1.0, low), min(1.0, high)


def accuracy_table(answers: xr.Dataset) -> pd.DataFrame:
    """Accuracy of every run on every test set: the columns of ACCURACY, proportions.

    `half` is "all" for the whole test set. A run is degenerate if its train accuracy is below DEGENERATE; whether it
    trained successfully, `runs.collect` says.
    """
    right, parts = right_answers(answers).mean("point"), []
    runs = pd.DataFrame({name: answers[name].values for name in (*RUN, "trained", "train_accuracy")})
    for (tested_on, half), read in TESTS.items():
        accuracy = right.mean("half") if read == ALL else right.sel(half=read)
        parts.append(runs.assign(tested_on=tested_on, half=half, accuracy=accuracy.values))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(degenerate=table["train_accuracy"] < DEGENERATE)[ACCURACY]


def summary_table(answers: xr.Dataset) -> pd.DataFrame:
    """The table `niven_summary` (docs/tables.yaml): accuracy by model, set-up, training and test set.

    trained_mean is that of the runs that trained successfully, low and high its interval over runs and points.
    """
    table, keys = accuracy_table(answers), [*RUN_KIND, "tested_on", "half"]
    means = table[~table["degenerate"]].groupby(keys)["accuracy"].mean()
    summary = table.groupby(keys, sort=False).agg(
        runs=("accuracy", "size"), mean=("accuracy", "mean"), sd=("accuracy", "std"), median=("accuracy", "median"),
        max=("accuracy", "max"), degenerate=("degenerate", "sum"), trained=("trained", "sum"),
    )  # fmt: skip
    right = right_answers(answers.isel(run=answers["trained"].values))
    runs = (runs_of(right, *key[:3], TESTS[key[3:]]).values for key in summary.index)
    intervals = [crossed_interval(part) if len(part) else (np.nan,) * 3 for part in runs]
    summary[["trained_mean", "low", "high"]] = np.clip(intervals, 0, 1)
    return summary.assign(non_degenerate=means).reset_index()


def unchanged_claims(test: Sequence[Argument]) -> int:
    """How many copies have the claim of their original: `test` holds the originals, then their copies."""
    half = len(test) // 2
    return sum(first.claim == copy.claim for first, copy in zip(test[:half], test[half:], strict=True))


def halves_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on the originals and on their copies, and their sum, of runs trained on the original arguments.

    Means of the runs of each model. A model that ignores the claim is right in exactly one of a point and its copy, so
    that the sum is 1.
    """
    rows = accuracy[(accuracy["tested_on"] == DOUBLED) & (accuracy["half"] != ALL) & accuracy["trained"]]
    rows = rows[(rows["trained_on"] == ORIGINAL) & (rows["setup"] == "full")]
    halves = rows.pivot_table("accuracy", "model", "half", sort=False).reindex(columns=HALVES)
    return halves.set_axis(["originals", "negated copies"], axis=1).assign(sum=halves.sum(axis=1))


def difference_table(answers: xr.Dataset) -> pd.DataFrame:
    """The table `niven_differences` (docs/tables.yaml): set-ups trained and tested on the original arguments.

    Runs are those that trained successfully.
    """
    right, rows = right_answers(answers.isel(run=answers["trained"].values)), []
    for model, (first, second) in product(MODELS, COMPARED):
        sides = [runs_of(right, model, setup).values for setup in (first, second)]
        if all(map(len, sides)):
            rows.append((model, first, second, len(sides[0]), *crossed_interval(*sides)))
    return pd.DataFrame(rows, columns=["model", "first", "second", "runs", "difference", "low", "high"])


def beside_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """The table `niven_published`: published test accuracies and those of this study.

    Training and test set are of the same kind, as in Niven 2019.
    """
    ours = own_test(summary)
    values = ["runs", "mean", "sd", "median", "max", "non_degenerate"]
    theirs = published.set_index(RUN_KIND)[values].add_prefix("published_")
    merged = theirs.join(ours.set_index(RUN_KIND)[values], how="outer").reset_index()
    return merged.sort_values(["trained_on", "model", "setup"], ascending=[False, True, True])


def reliance_table(answers: xr.Dataset, test: Sequence[Argument]) -> pd.DataFrame:
    """The table `niven_reliance` (docs/tables.yaml): reliance on "not" of the runs that trained successfully.

    always_right: among the points that every run has right and to which the cue applies, the share where the cue is
    right; always_n counts these points. Source: Niven 2019, conclusion.
    """
    right, rows = right_answers(answers.isel(run=answers["trained"].values)), []
    for model, setup in product(MODELS, SETUPS):
        if len(runs := runs_of(right, model, setup).values):
            row = {"model": model, "setup": setup, "runs": len(runs)}
            rows.append(row | _reliance(runs, follows_cue(test)))
    return pd.DataFrame(rows, columns=RELIANCE)


def _reliance(right: Right, signs: Int[np.ndarray, " point"]) -> dict[str, float]:
    """How often runs take the warrant with the cue, and their accuracy by where it stands."""
    applies, row = signs != 0, {}
    # A run takes the warrant with the cue if it is right where the cue is.
    values = {"follows": np.where(signs > 0, right, 1 - right)[:, applies]}
    values |= {kind: right[:, signs == sign] for kind, sign in SIGNS.items()}
    for kind, part in values.items():
        if part.size:
            row[kind], row[f"{kind}_low"], row[f"{kind}_high"] = crossed_interval(part)
    always: Bool[np.ndarray, " point"] = (right == 1).all(axis=0) & applies
    share = float((signs[always] > 0).mean()) if always.any() else np.nan
    return row | {"always_n": int(always.sum()), "always_right": share}
