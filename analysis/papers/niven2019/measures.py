"""What each claim of Niven 2019 measures, on the runs that trained successfully."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis.papers.niven2019.accuracy import (
    ALL,
    CHANCE,
    CUE_HEADS,
    correctness,
    gap_interval,
    runs_of,
    share_interval,
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
from analysis.statistics.claims import frame, not_applicable, of_table, read_claims, together, with_control
from analysis.statistics.intervals import Interval, crossed_interval

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
NOT_RUN, UNTRAINED = "set-up not run", "no run trained successfully"


def accuracy_of_encoder(right: xr.DataArray, test: Sequence[Argument]) -> pd.DataFrame:
    """N1: accuracy of the encoder with the full input; the control is the warrant with "not".

    `right` are `accuracy.right_answers` of the answers of all runs, `test` the original test arguments.
    """
    rows = unit("", share_interval, trained_answers(right, ENCODER, "full"))
    always_not = baseline_table({"test": test})[["accuracy", "low", "high"]]
    return with_control(rows, {"": tuple(always_not.iloc[0])})


def gains_over_warrants(right: xr.DataArray, *setups: str) -> pd.DataFrame:
    """N2, N3: how far the encoder's accuracy in set-ups is from that with warrants alone; control: a bag of vectors."""
    units = []
    for setup in setups:
        pairs = ([trained_answers(right, model, name) for name in (setup, "W")] for model in (ENCODER, BAG))
        sides, control = pairs
        units.append(
            unit(f"{setup} - W", lambda *pair: size(crossed_interval(*pair)), *sides, control=control)
        )
    return together(units)


def distance_from_chance(right: xr.DataArray) -> pd.DataFrame:
    """N5: how far the encoder trained on the adversarial set is from one half on it, by set-up."""
    runs = {setup: trained_answers(right, ENCODER, setup, DOUBLED, ALL) for setup in ("full", "CW")}
    units = [
        unit(setup, lambda right: size(crossed_interval(right - CHANCE)), side)
        for setup, side in runs.items()
    ]
    return together(units).assign(control=0.0)


def gap_by_cue(right: xr.DataArray, test: Sequence[Argument]) -> pd.DataFrame:
    """N7: accuracy where "not" is right minus where it is wrong, with the full input; control: a bag of vectors."""
    gap = partial(gap_interval, signs=follows_cue(test))
    encoder, bag = (trained_answers(right, model, "full") for model in (ENCODER, BAG))
    return unit("", gap, encoder, control=[bag])


def accuracy_on_copies(right: xr.DataArray) -> pd.DataFrame:
    """N8: accuracy on the negated copies of the arguments, by model."""
    runs = {model: trained_answers(right, model, "full", half=DOUBLED) for model in (ENCODER, BAG, BILSTM)}
    return together([unit(model, share_interval, side) for model, side in runs.items()])


def trained_answers(
    right: xr.DataArray, model: str, setup: str, trained_on: str = ORIGINAL, half: str = ORIGINAL
) -> xr.DataArray:
    """Whether each run that trained successfully is right (see `runs_of`); `reason` says why there is none."""
    runs = runs_of(right, model, setup, trained_on, half)
    return runs[runs["trained"].values].assign_attrs(reason=UNTRAINED if len(runs) else NOT_RUN)


def unit(name: str, interval, *sides: xr.DataArray, control: Sequence[xr.DataArray] = ()) -> pd.DataFrame:
    """The frame of one unit: the interval of its runs, and that of the control's if it has any."""
    if empty := [side for side in sides if not len(side)]:
        return not_applicable(empty[0].attrs["reason"], name)
    rows = frame({name: interval(*(side.values for side in sides))}, runs=min(map(len, sides)))
    has_control = control and all(map(len, control))
    return with_control(rows, {name: interval(*(side.values for side in control))} if has_control else {})


def size(interval: Interval) -> Interval:
    """The absolute value, with an interval that is as wide and begins at 0 at the least."""
    value, low, high = interval
    return abs(value), max(0.0, abs(value) - (high - low) / 2), abs(value) + (high - low) / 2


def productivity_of_cue(cues: pd.DataFrame) -> pd.DataFrame:
    """N4: the productivity of "not" in each split; in the adversarial set it is one half."""
    rows = cues[(cues["cue"] == NOT) & (cues["split"] != ALL)]
    return of_table(rows, "split", "productivity").assign(control=CHANCE)


def loss_without_cue_heads(
    right: xr.DataArray, test: Sequence[Argument], ablated: Mapping[tuple[str, int], xr.DataArray]
) -> pd.DataFrame:
    """N9: accuracy lost where "not" is right, and gained where it is wrong, without the cue heads (set-up W).

    `ablated` are the logits of `heads.ablate_cue_heads`, by set-up and seed.
    """
    trained = trained_answers(right, ENCODER, "W")
    logits = [ablated["W", seed] for seed in trained["seed"].values.tolist() if ("W", seed) in ablated]
    if not logits:
        return not_applicable(trained.attrs["reason"])
    labels, signs = np.array([argument.label for argument in test]), follows_cue(test)
    runs = [array.isel({"class": 0}).copy(data=correctness(array.values, labels)) for array in logits]
    answers = xr.concat(runs, "run").transpose("run", "intervention", "sequence")
    losses = answers.sel(intervention=BASELINE) - answers.drop_sel(intervention=BASELINE)
    sides = losses.sel(intervention=CUE_HEADS), losses.drop_sel(intervention=CUE_HEADS).mean("intervention")
    units = []
    for name, sign in {"lost where it is right": 1, "gained where it is wrong": -1}.items():
        cue, random = (sign * side[:, signs == sign] for side in sides)
        units.append(unit(name, crossed_interval, cue, control=[random]))
    return together(units)
