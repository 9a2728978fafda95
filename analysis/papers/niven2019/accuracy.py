"""Accuracy of runs, their reliance on "not", intervals over seeds and points together, and the article's values."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int, Num
from scipy import stats

from analysis.errors import InputError
from analysis.papers.niven2019.arguments import DOUBLED, KEYS, ORIGINAL, Argument
from analysis.papers.niven2019.cues import follows_cue
from analysis.papers.niven2019.negation import ADVERSARIAL
from analysis.statistics.intervals import crossed_interval
from analysis.statistics.significance import adjust

TABLES = ("cues", "results", "reliance")
ALL = "all"
RIGHT, WRONG, ABSENT = "right", "wrong", "absent"
SIGNS = {RIGHT: 1, WRONG: -1, ABSENT: 0}
FOLLOWS = "follows"
CUE_HEADS = "cue heads"  # the name of the intervention that switches them off
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
ACCURACY = [*KEYS, "tested_on", "half", "seed", "accuracy", "train_accuracy", "degenerate", "fitted"]


def niven(table: str) -> pd.DataFrame:
    """A table of Niven 2019: `cues` (Table 2), `results` (Tables 1, 3, 4) or `reliance` (from the released
    predictions); all values are proportions. Raises InputError for another table."""
    if table not in TABLES:
        raise InputError(f"Niven 2019 has no table {table!r} here; use one of {', '.join(TABLES)}")
    return pd.read_csv(Path(__file__).with_name(f"published_{table}.csv"))


def correct(answers: xr.Dataset) -> xr.DataArray:
    """Whether each run is right (run, point); equal logits for both warrants count half."""
    right = rightness(answers["logits"].transpose("run", "point", "warrant").values, answers["label"].values)
    return answers["logits"].isel(warrant=0, drop=True).copy(data=right)


def rightness(
    logits: Float[np.ndarray, "run point warrant"], labels: Int[np.ndarray, " point"]
) -> Float[np.ndarray, "run point"]:
    """1 where the right warrant has the larger logit, 0 where the other has, 0.5 where both are equal."""
    lead = (logits[..., 1] - logits[..., 0]) * np.where(labels == 1, 1, -1)
    return (1 + np.sign(lead)) / 2


def evidence(answers: xr.Dataset) -> xr.Dataset:
    """The runs that claims are judged on: those that fit, of which a model, set-up and training set has at least two.

    A run that has not learnt its training set says nothing of what a model learns from it.
    """
    fitted = answers.isel(run=answers["fitted"].values)
    keys = pd.DataFrame({name: fitted[name].values for name in KEYS})
    return fitted.isel(run=(keys.groupby(KEYS)[KEYS[0]].transform("size") > 1).to_numpy(bool))


def accuracy_table(answers: xr.Dataset) -> pd.DataFrame:
    """Accuracy of every run on every test set: the columns of ACCURACY, proportions.

    `half` is "all" for the whole test set. A run is degenerate if its train accuracy is below LEARNT (Niven 2019), and
    fitted as `runs.collect` says.
    """
    right = correct(answers)
    runs = pd.DataFrame({name: answers[name].values for name in (*RUN, "fitted")})
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
        chosen = _runs(answers, *keys), np.isin(answers["half"].values, TESTS[tested_on, half])
        values = right.values[np.ix_(*chosen)]
        _, low, high = crossed_interval(pair_means(values, pairs_of(answers)[chosen[1]]))
        accuracy, fitted = part["accuracy"], part["fitted"]
        rows.append([*keys, tested_on, half, len(part), accuracy.mean(), low, high, accuracy.std(),
                     accuracy.median(), accuracy.max(), _above_chance(values), int(part["degenerate"].sum()),
                     accuracy[~part["degenerate"]].mean(), int(fitted.sum()), accuracy[fitted].mean()])  # fmt: skip
    columns = [*KEYS, "tested_on", "half", "runs", "mean", "low", "high", "sd", "median", "max", "above_chance",
               "degenerate", "non_degenerate", "fitted", "fitted_mean"]  # fmt: skip
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


def difference_table(answers: xr.Dataset) -> pd.DataFrame:
    """Paired differences of set-ups: model, first, second, runs, difference, low, high."""
    rows = []
    for model in dict.fromkeys(answers["model"].values.tolist()):
        there = {name for name in answers["setup"].values[answers["model"].values == model]}
        for first, second in (("full", "W"), ("full", "RW"), ("full", "CW"), ("RW", "W"), ("CW", "W")):
            if {first, second} <= there:
                one, other = (of_runs(answers, model, setup) for setup in (first, second))
                rows.append(
                    (model, first, second, one.sizes["seed"], *crossed_interval(one.values, other.values))
                )
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


def following(
    right: Float[np.ndarray, "seed point"], signs: Int[np.ndarray, " point"]
) -> Float[np.ndarray, "seed applicable"]:
    """Whether a run chooses the warrant with the cue, at the points where the cue applies."""
    applies = signs != 0
    return np.where(signs[applies] > 0, right[:, applies], 1 - right[:, applies])


def reliance_table(answers: xr.Dataset, test: Sequence[Argument]) -> pd.DataFrame:
    """Reliance on "not": model, setup, which, runs, then follows, right, wrong and absent with their intervals.

    `which` is "all" runs, or those that "fitted". always_right: among the points that every run has right and to
    which the cue applies, the share where the cue is right; always_n counts these points. Source: Niven 2019,
    conclusion.
    """
    rows, signs = [], follows_cue(test)
    trained = answers.isel(run=answers["trained_on"].values == ORIGINAL)
    for which, chosen in (
        ("all", trained),
        ("fitted", trained.isel(run=trained["fitted"].values)),
    ):
        pairs = dict.fromkeys(
            zip(chosen["model"].values.tolist(), chosen["setup"].values.tolist(), strict=True)
        )
        for model, setup in pairs:
            right = of_runs(chosen, model, setup).sel(point=[each.id for each in test]).values
            kinds = {FOLLOWS: following(right, signs)}
            kinds |= {kind: right[:, signs == sign] for kind, sign in SIGNS.items()}
            row = {
                "model": model,
                "setup": setup,
                "which": which,
                "runs": len(right),
            }
            for kind, values in kinds.items():
                if values.size:
                    row |= dict(
                        zip((kind, f"{kind}_low", f"{kind}_high"), crossed_interval(values), strict=True)
                    )
            always = (right == 1).all(axis=0) & (signs != 0)
            row |= {
                "always_n": int(always.sum()),
                "always_right": float((signs[always] > 0).mean()) if always.any() else np.nan,
            }
            rows.append(row)
    return pd.DataFrame(rows)
