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
    evidence,
    of_runs,
    pair_means,
    pairs_of,
    rightness,
)
from analysis.papers.niven2019.arguments import BAG, BILSTM, DOUBLED, ENCODER, ORIGINAL, Argument
from analysis.papers.niven2019.cues import NOT, baseline_table, follows_cue
from analysis.statistics.changes import BASELINE
from analysis.statistics.claims import frame, not_applicable, of_table, read_claims, with_control
from analysis.statistics.intervals import crossed_interval

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
NOT_RUN, UNFIT = "set-up not run", "fewer than two runs fit"
Values = Float[np.ndarray, "run point"]
Interval = tuple[float, float, float]


def measures(
    answers: xr.Dataset,
    test: Sequence[Argument],
    cues: pd.DataFrame,
    ablated: Mapping[tuple[str, int], xr.DataArray],
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id.

    `answers` are those of `runs.collect`, `test` the original test arguments, `cues` the table of `cues.cue_table`, and
    `ablated` the logits without heads of `heads.switched_off`, by set-up and seed.
    """
    runs = Runs(answers, test)
    return {
        "N1": beats_chance(runs),
        "N2": differences(runs, [("full", "W")]),
        "N3": differences(runs, [("RW", "W"), ("CW", "W")]),
        "N4": productive_cue(cues),
        "N5": adversarial_chance(runs),
        "N7": moves_with_cue(runs),
        "N8": negated_claims(runs),
        "N9": without_cue_heads(runs, ablated),
    }


class Runs:
    """The answers of all runs, and of those that fit."""

    def __init__(self, answers: xr.Dataset, test: Sequence[Argument]):
        self.answers, self.fitted, self.test = answers, evidence(answers), test
        self.signs = follows_cue(test)

    def right(self, model: str, setup: str, trained_on: str = ORIGINAL, half: str = ORIGINAL) -> Values:
        """Whether each run that fits is right, mean of a point and its adversarial copy; no rows without such runs."""
        values = of_runs(self.fitted, model, setup, trained_on, half)
        return pair_means(values.values, pairs_of(values)) if len(values) else values.values

    def missing(self, *setups: str, model: str = ENCODER, trained_on: str = ORIGINAL) -> str:
        """Why a set-up has no value: it was not run, or its runs do not fit."""
        own = (self.answers["model"] == model) & (self.answers["trained_on"] == trained_on)
        there = {*self.answers["setup"].values[own.values]}
        return UNFIT if {*setups} <= there else NOT_RUN


def of_sides(right: Values, signs: Int[np.ndarray, " point"]) -> Values:
    """Values whose mean over points is accuracy where the cue is right minus where it is wrong."""
    sides = {sign: right[:, signs == sign] for sign in (1, -1)}
    gap = sides[1].mean(axis=1) - sides[-1].mean(axis=1)
    parts = np.tile(gap[:, None], (1, len(signs)))
    for sign, values in sides.items():
        centred = values - values.mean(axis=1, keepdims=True)
        parts[:, signs == sign] += sign * centred * len(signs) / values.shape[1]
    return parts


def beats_chance(runs: Runs) -> pd.DataFrame:
    """N1: accuracy of the encoder with the full input; the control always takes the warrant with "not"."""
    right = runs.right(ENCODER, "full")
    if not len(right):
        return not_applicable(runs.missing("full"))
    cue = baseline_table({"test": runs.test}).set_index("baseline").loc[NOT, ["accuracy", "low", "high"]]
    return with_control(frame({"": crossed_interval(right)}, runs=len(right)), {"": tuple(cue)})


def differences(runs: Runs, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """N2, N3: accuracy of the encoder in one set-up minus another, on the same points; control: a bag of vectors."""
    parts = []
    for setups in pairs:
        name, (own, other) = " - ".join(setups), (runs.right(ENCODER, setup) for setup in setups)
        if not (len(own) and len(other)):
            parts.append(not_applicable(runs.missing(*setups), name))
            continue
        unit = frame({name: crossed_interval(own, other)}, runs=min(len(own), len(other)))
        bags = [runs.right(BAG, setup) for setup in setups]
        parts.append(with_control(unit, {name: crossed_interval(*bags)} if all(map(len, bags)) else {}))
    return pd.concat(parts, ignore_index=True)


def productive_cue(cues: pd.DataFrame) -> pd.DataFrame:
    """N4: the productivity of "not" in each split; in the adversarial set it is one half."""
    rows = cues[(cues["rule"] == "expanded") & (cues["cue"] == NOT) & (cues["split"] != ALL)]
    return of_table(rows, "split", "productivity").assign(control=CHANCE)


def adversarial_chance(runs: Runs) -> pd.DataFrame:
    """N5: how far the accuracy of the encoder is from one half on the adversarial set, after training on one."""
    parts = []
    for setup in ("full", "CW"):
        right = runs.right(ENCODER, setup, DOUBLED, ALL)
        if not len(right):
            parts.append(not_applicable(runs.missing(setup, trained_on=DOUBLED), setup))
            continue
        value, low, high = crossed_interval(right)
        away, half = abs(value - CHANCE), (high - low) / 2
        parts.append(frame({setup: (away, away - half, away + half)}, control=0.0, runs=len(right)))
    return pd.concat(parts, ignore_index=True)


def moves_with_cue(runs: Runs) -> pd.DataFrame:
    """N7: accuracy of the encoder if "not" is in the right warrant, minus that if it is in the wrong one."""
    own, bag = (runs.right(model, "full") for model in (ENCODER, BAG))
    if not len(own):
        return not_applicable(runs.missing("full"))
    unit = frame({"": crossed_interval(of_sides(own, runs.signs))}, runs=len(own))
    return with_control(unit, {"": crossed_interval(of_sides(bag, runs.signs))} if len(bag) else {})


def negated_claims(runs: Runs) -> pd.DataFrame:
    """N8: accuracy on the copies with negated claims after training on the original arguments, by model."""
    parts = []
    for model in (ENCODER, BAG, BILSTM):
        right = runs.right(model, "full", ORIGINAL, DOUBLED)
        parts.append(
            frame({model: crossed_interval(right)}, runs=len(right))
            if len(right)
            else not_applicable(runs.missing("full", model=model), model)
        )
    return pd.concat(parts, ignore_index=True)


def without_cue_heads(
    runs: Runs, ablated: Mapping[tuple[str, int], xr.DataArray], setup: str = "W"
) -> pd.DataFrame:
    """N9: accuracy that a set-up loses where "not" is right, and gains where it is wrong, without the cue heads."""
    own = (runs.fitted["model"].values == ENCODER) & (runs.fitted["trained_on"].values == ORIGINAL)
    fit = {
        *zip(runs.fitted["setup"].values[own].tolist(), runs.fitted["seed"].values[own].tolist(), strict=True)
    }
    logits = [found for run, found in ablated.items() if run in fit and run[0] == setup]
    if len(logits) < 2:
        return not_applicable(runs.missing(setup))
    labels = np.array([argument.label for argument in runs.test])
    right = [each.isel({"class": 0}).copy(data=rightness(each.values, labels)) for each in logits]
    units, control = {}, {}
    for unit, sign in (("lost where it is right", 1), ("gained where it is wrong", -1)):
        cued = runs.signs == sign
        changes = [sign * (each.sel(intervention=BASELINE) - each).isel(sequence=cued) for each in right]
        units[unit] = crossed_interval(
            np.stack([each.sel(intervention=CUE_HEADS).values for each in changes])
        )
        random = [
            each.drop_sel(intervention=[BASELINE, CUE_HEADS]).mean("intervention").values for each in changes
        ]
        control[unit] = crossed_interval(np.stack(random))
    return with_control(frame(units, runs=len(logits)), control)
