"""What each claim of Niven 2019 measures, on the runs that fit their training set (see `accuracy.evidence`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from analysis.papers.niven2019.accuracy import (
    ALL,
    CHANCE,
    CUE_HEADS,
    correctness,
    evidence,
    pair_means,
    runs_of,
)
from analysis.papers.niven2019.arguments import (
    BAG,
    BILSTM,
    DOUBLED,
    ENCODER,
    NOT,
    ORIGINAL,
    Argument,
    baseline_table,
    follows_cue,
)
from analysis.statistics.changes import BASELINE
from analysis.statistics.claims import frame, not_applicable, of_table, read_claims, with_control
from analysis.statistics.intervals import crossed_interval

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
NOT_RUN, UNFIT = "set-up not run", "fewer than two runs fit"
Values = Float[np.ndarray, "run point"]


def measures(
    answers: xr.Dataset,
    test: Sequence[Argument],
    cues: pd.DataFrame,
    ablated: Mapping[tuple[str, int], xr.DataArray],
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id.

    `answers` are those of `runs.collect`, `test` the original test arguments, `cues` the table of `cues.cue_table`, and
    `ablated` the logits without heads of `heads.ablate_cue_heads`, by set-up and seed.
    """
    runs = Runs(answers, test)
    return {
        "N1": accuracy_of_full_input(runs),
        "N2": gain_over_warrants(runs, "full"),
        "N3": pd.concat([gain_over_warrants(runs, setup) for setup in ("RW", "CW")], ignore_index=True),
        "N4": productivity_of_cue(cues),
        "N5": distance_from_chance(runs),
        "N7": accuracy_with_minus_against_cue(runs),
        "N8": accuracy_on_negated_claims(runs),
        "N9": accuracy_without_cue_heads(runs, ablated),
    }


class Runs:
    """The answers of all runs, and of those that fit; `signs` says where "not" is (see `follows_cue`)."""

    def __init__(self, answers: xr.Dataset, test: Sequence[Argument]):
        self.answers, self.fitted, self.test = answers, evidence(answers), test
        self.signs = follows_cue(test)

    def right(
        self, model: str, setup: str, trained_on: str = ORIGINAL, halves: Sequence[str] = (ORIGINAL,)
    ) -> Values:
        """Whether each run that fits is right, mean of a point and its copy; no rows if fewer than two runs fit."""
        right = runs_of(self.fitted, model, setup, trained_on, halves)
        return pair_means(right) if len(right) else right.values

    def missing(self, *setups: str, model: str = ENCODER, trained_on: str = ORIGINAL) -> str:
        """Why a set-up has no value: it was not run, or its runs do not fit."""
        rows = (self.answers["model"] == model) & (self.answers["trained_on"] == trained_on)
        return UNFIT if {*setups} <= {*self.answers["setup"].values[rows.values]} else NOT_RUN


def unit_of(name: str, values: Values, control: Values | None = None) -> pd.DataFrame:
    """The frame of one unit over runs and points, with a control if it has runs."""
    unit = frame({name: crossed_interval(values)}, runs=len(values))
    has_control = control is not None and len(control)
    return with_control(unit, {name: crossed_interval(control)}) if has_control else unit


def accuracy_of_full_input(runs: Runs) -> pd.DataFrame:
    """N1: accuracy of the encoder with the full input; the control always takes the warrant with "not"."""
    right = runs.right(ENCODER, "full")
    if not len(right):
        return not_applicable(runs.missing("full"))
    always_not = baseline_table({"test": runs.test}).set_index("baseline").loc[NOT]
    return with_control(unit_of("", right), {"": tuple(always_not[["accuracy", "low", "high"]])})


def gain_over_warrants(runs: Runs, setup: str) -> pd.DataFrame:
    """Accuracy of the encoder in a set-up minus that with warrants alone; the control is a bag of vectors."""
    name = f"{setup} - W"
    encoders, bags = ([runs.right(model, inputs) for inputs in (setup, "W")] for model in (ENCODER, BAG))
    if not all(map(len, encoders)):
        return not_applicable(runs.missing(setup, "W"), name)
    unit = frame({name: crossed_interval(*encoders)}, runs=min(map(len, encoders)))
    return with_control(unit, {name: crossed_interval(*bags)} if all(map(len, bags)) else {})


def productivity_of_cue(cues: pd.DataFrame) -> pd.DataFrame:
    """N4: the productivity of "not" in each split; in the adversarial set it is one half."""
    rows = cues[(cues["cue"] == NOT) & (cues["split"] != ALL)]
    return of_table(rows, "split", "productivity").assign(control=CHANCE)


def distance_from_chance(runs: Runs) -> pd.DataFrame:
    """N5: how far the accuracy of the encoder is from one half on the adversarial set, after training on one."""
    units = []
    for setup in ("full", "CW"):
        right = runs.right(ENCODER, setup, DOUBLED, (ORIGINAL, DOUBLED))
        if not len(right):
            units.append(not_applicable(runs.missing(setup, trained_on=DOUBLED), setup))
            continue
        value, low, high = crossed_interval(right)
        distance, half_width = abs(value - CHANCE), (high - low) / 2
        interval = distance, distance - half_width, distance + half_width
        units.append(frame({setup: interval}, control=0.0, runs=len(right)))
    return pd.concat(units, ignore_index=True)


def accuracy_with_minus_against_cue(runs: Runs) -> pd.DataFrame:
    """N7: accuracy of the encoder if "not" is in the right warrant, minus that if it is in the wrong one."""
    encoder, bag = (runs.right(model, "full") for model in (ENCODER, BAG))
    if not len(encoder):
        return not_applicable(runs.missing("full"))
    return unit_of("", gap_by_cue(encoder, runs.signs), gap_by_cue(bag, runs.signs) if len(bag) else None)


def gap_by_cue(right: Values, signs: Int[np.ndarray, " point"]) -> Values:
    """Values whose mean over points is accuracy where the cue is right minus that where it is wrong."""
    sides = {sign: right[:, signs == sign] for sign in (1, -1)}
    gap = sides[1].mean(axis=1) - sides[-1].mean(axis=1)
    values = np.tile(gap[:, None], (1, len(signs)))
    for sign, side in sides.items():
        centred = side - side.mean(axis=1, keepdims=True)
        values[:, signs == sign] += sign * centred * len(signs) / side.shape[1]
    return values


def accuracy_on_negated_claims(runs: Runs) -> pd.DataFrame:
    """N8: accuracy on the copies with negated claims after training on the original arguments, by model."""
    units = []
    for model in (ENCODER, BAG, BILSTM):
        right = runs.right(model, "full", halves=(DOUBLED,))
        reason = runs.missing("full", model=model)
        units.append(unit_of(model, right) if len(right) else not_applicable(reason, model))
    return pd.concat(units, ignore_index=True)


def accuracy_without_cue_heads(runs: Runs, ablated: Mapping[tuple[str, int], xr.DataArray]) -> pd.DataFrame:
    """N9: accuracy lost where "not" is right, and gained where it is wrong, without the cue heads (set-up W)."""
    seeds = runs_of(runs.fitted, ENCODER, "W")["seed"].values.tolist()
    logits = [array for (setup, seed), array in ablated.items() if setup == "W" and seed in seeds]
    if len(logits) < 2:
        return not_applicable(runs.missing("W"))
    labels = np.array([argument.label for argument in runs.test])
    losses = []  # of every run: intervention, sequence
    for array in logits:
        right = array.isel({"class": 0}).copy(data=correctness(array.values, labels))
        losses.append(right.sel(intervention=BASELINE) - right)
    cue = np.stack([loss.sel(intervention=CUE_HEADS).values for loss in losses])
    random = [loss.drop_sel(intervention=[BASELINE, CUE_HEADS]).mean("intervention") for loss in losses]
    units = []
    for unit, sign in (("lost where it is right", 1), ("gained where it is wrong", -1)):
        points = runs.signs == sign
        units.append(unit_of(unit, sign * cue[:, points], sign * np.stack(random)[:, points]))
    return pd.concat(units, ignore_index=True)
