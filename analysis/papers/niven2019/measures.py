"""What each claim of Niven 2019 measures, on the runs that fit their training set (see `accuracy.evidence`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.papers.niven2019.accuracy import (
    ALL,
    CHANCE,
    CUE_HEADS,
    FOLLOWS,
    RIGHT,
    WRONG,
    Draws,
    difference_draws,
    drawn_means,
    evidence,
    of_runs,
    pairs_of,
    reliance_draws,
    rightness,
)
from analysis.papers.niven2019.arguments import BAG, BILSTM, DOUBLED, ENCODER, ORIGINAL, SETUPS, Argument
from analysis.papers.niven2019.cues import NOT, baseline_table, follows_cue
from analysis.statistics.changes import BASELINE
from analysis.statistics.claims import read_claims, sampled, tabled, untestable

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
FEW = "fewer than two runs fit"


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its notebook saved it."""
    return results.claims("claims-niven2019")


def measures(
    answers: xr.Dataset,
    test: Sequence[Argument],
    cues: pd.DataFrame,
    off: Mapping[tuple[str, int], xr.DataArray],
    resamples: int = 999,
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id.

    `answers` are those of `runs.collect`, `test` the original test arguments, `cues` the table of `cues.cue_table`, and
    `off` the logits without heads of `heads.switched_off`, by set-up and seed. Draws are of runs and points.
    """
    fitted, draws = evidence(answers), {"resamples": resamples, "seed": seed}
    n, cued = len(test), int((follows_cue(test) != 0).sum())
    return {
        "N1": _noted(beats_chance(fitted, test, draws), answers, "full"),
        "N2": _noted(differences(fitted, [("full", "W")], n, draws), answers, "full", "W"),
        "N3": _noted(differences(fitted, [("RW", "W"), ("CW", "W")], n, draws), answers, "RW", "CW", "W"),
        "N4": productive_cue(cues),
        "N5": _noted(adversarial_chance(fitted, n, draws), answers, "full", "CW", trained_on=DOUBLED),
        "N6": _noted(relies_less(fitted, test, cued, draws), answers, "full"),
        "N7": _noted(moves_with_cue(fitted, test, cued, draws), answers, "full"),
        "N8": below_chance(fitted, n, draws),
        "N9": without_cue_heads(_of_fitted(off, fitted), test, draws),
    }


def beats_chance(fitted: xr.Dataset, test: Sequence[Argument], draws: dict[str, int]) -> pd.DataFrame:
    """N1: accuracy of the encoder with the full input, on the original test set."""
    found = _accuracy(fitted, ENCODER, "full", ORIGINAL, ORIGINAL, draws)
    cue = baseline_table({"test": test}, 99).set_index("baseline").loc[NOT, "accuracy"]
    return _judged({"": found}, len(test), control={"": cue})


def differences(
    fitted: xr.Dataset, pairs: Sequence[tuple[str, str]], n: int, draws: dict[str, int]
) -> pd.DataFrame:
    """N2, N3: accuracy of the encoder in one set-up minus another, on the same points."""
    ours, bags = (
        {
            f"{first} - {second}": difference_draws(fitted, model, first, second, **draws)
            for first, second in pairs
        }
        for model in (ENCODER, BAG)
    )
    if any(np.isnan(found[0]) for found in ours.values()):
        return untestable(FEW)
    return _judged(ours, n, control={pair: found[0] for pair, found in bags.items()})


def productive_cue(cues: pd.DataFrame) -> pd.DataFrame:
    """N4: the productivity of "not" in each split; warrants of the adversarial set have 0.5."""
    rows = cues[(cues["rule"] == "expanded") & (cues["cue"] == NOT) & (cues["split"] != ALL)]
    frame = tabled(rows, "split", "productivity", n="applicability")
    return frame.assign(control=CHANCE)


def adversarial_chance(fitted: xr.Dataset, n: int, draws: dict[str, int]) -> pd.DataFrame:
    """N5: how far the accuracy of the encoder is from one half on the adversarial set, after training on one."""
    found = {setup: _accuracy(fitted, ENCODER, setup, DOUBLED, ALL, draws) for setup in ("full", "CW")}
    away = {setup: np.abs(each - CHANCE) for setup, each in found.items() if each is not None}
    accuracies = ", ".join(f"{setup} {each[0]:.3f}" for setup, each in found.items() if each is not None)
    return _judged(away, 2 * n, control=dict.fromkeys(away, 0.0), note=f"accuracy {accuracies}")


def relies_less(fitted: xr.Dataset, test: Sequence[Argument], n: int, draws: dict[str, int]) -> pd.DataFrame:
    """N6: how much more often each small model chooses the warrant with "not" than the encoder does."""
    found = {model: reliance_draws(fitted, model, "full", test, **draws) for model in (ENCODER, BAG, BILSTM)}
    follows = {model: each[FOLLOWS] for model, each in found.items() if FOLLOWS in each}
    if ENCODER not in follows:
        return untestable(FEW)
    more = {model: each - follows[ENCODER] for model, each in follows.items() if model != ENCODER}
    return _judged(more, n, note=", ".join(f"{model} {each[0]:.3f}" for model, each in follows.items()))


def moves_with_cue(
    fitted: xr.Dataset, test: Sequence[Argument], n: int, draws: dict[str, int]
) -> pd.DataFrame:
    """N7: accuracy of the encoder if "not" is in the right warrant, minus that if it is in the wrong one."""
    own, bag = (reliance_draws(fitted, model, "full", test, **draws) for model in (ENCODER, BAG))
    if not {RIGHT, WRONG} <= own.keys():
        return untestable(FEW)
    control = {"": bag[RIGHT][0] - bag[WRONG][0]} if {RIGHT, WRONG} <= bag.keys() else None
    note = f"{own[RIGHT][0]:.3f} where it is right, {own[WRONG][0]:.3f} where it is wrong"
    return _judged({"": own[RIGHT] - own[WRONG]}, n, control, note)


def below_chance(fitted: xr.Dataset, n: int, draws: dict[str, int]) -> pd.DataFrame:
    """N8: accuracy on the negated copies after training on the original arguments, by model and set-up."""
    found = {
        f"{model}, {setup}": _accuracy(fitted, model, setup, ORIGINAL, DOUBLED, draws)
        for model in (ENCODER, BAG, BILSTM)
        for setup in SETUPS
    }
    return _judged(found, n)


def without_cue_heads(
    off: Mapping[tuple[str, int], xr.DataArray],
    test: Sequence[Argument],
    draws: dict[str, int],
    setup: str = "W",
) -> pd.DataFrame:
    """N9: accuracy that a set-up loses where "not" is right, and gains where it is wrong, without the cue heads."""
    logits = [each for (own, _), each in off.items() if own == setup]
    if len(logits) < 2:
        return untestable(FEW)
    labels, signs = np.array([each.label for each in test]), follows_cue(test)
    names = np.array([each.id for each in test])
    right = [each.isel({"class": 0}).copy(data=rightness(each.values, labels)) for each in logits]
    found, control, counts = {}, {}, {}
    for unit, sign in (("lost where it is right", 1), ("gained where it is wrong", -1)):
        cued = signs == sign
        changes = [sign * (each.sel(intervention=BASELINE) - each).isel(sequence=cued) for each in right]
        own = np.stack([each.sel(intervention=CUE_HEADS).values for each in changes])
        others = xr.concat(changes, "run").drop_sel(intervention=[BASELINE, CUE_HEADS])
        found[unit], counts[unit] = drawn_means(own, names[cued], **draws), int(cued.sum())
        control[unit] = float(others.mean()) if others.size else np.nan
    return _judged(found, counts, control, f"{len(logits)} runs")


def _accuracy(
    fitted: xr.Dataset, model: str, setup: str, trained_on: str, half: str, draws: dict[str, int]
) -> Draws | None:
    """Accuracy on a half of the adversarial test set: the sample's, then draws; None without runs."""
    right = of_runs(fitted, model, setup, trained_on, half)
    return drawn_means(right.values, pairs_of(right), **draws) if right.sizes["seed"] else None


def _judged(
    units: Mapping[str, Draws | None],
    n: int | Mapping[str, int],
    control: Mapping[str, float] | None = None,
    note: str = "",
) -> pd.DataFrame:
    """The frame of the units that have draws."""
    there = {unit: each for unit, each in units.items() if each is not None}
    return sampled(there, n, control=control, note=note) if there else untestable(FEW)


def _of_fitted(
    off: Mapping[tuple[str, int], xr.DataArray], fitted: xr.Dataset
) -> dict[tuple[str, int], xr.DataArray]:
    """The logits of the encoders, trained on the original arguments, that fit."""
    own = fitted.isel(run=(fitted["model"].values == ENCODER) & (fitted["trained_on"].values == ORIGINAL))
    there = {*zip(own["setup"].values.tolist(), own["seed"].values.tolist(), strict=True)}
    return {run: each for run, each in off.items() if run in there}


def _noted(
    frame: pd.DataFrame, answers: xr.Dataset, *setups: str, trained_on: str = ORIGINAL
) -> pd.DataFrame:
    """The frame with a note of how many runs of the encoder fit their training set."""
    own = (
        (answers["model"] == ENCODER) & (answers["trained_on"] == trained_on) & answers["setup"].isin(setups)
    )
    fitted = answers["fitted"].values[own.values]
    told = f"{fitted.sum()} of {fitted.size} runs of the encoder fit"
    return frame.assign(note=[f"{note}; {told}" if note else told for note in frame["note"]])
