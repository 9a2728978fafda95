"""Findings on the claims of Niven 2019, from the answers of runs and the table of cues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from analysis.papers.niven2019.accuracy import (
    ALL,
    CHANCE,
    LEARNT,
    difference_draws,
    drawn_means,
    of_runs,
    pairs_of,
)
from analysis.papers.niven2019.arguments import Argument
from analysis.papers.niven2019.cues import NOT, baseline_table, follows_cue
from analysis.papers.niven2019.published import BAG, BILSTM, DOUBLED, ENCODER, ORIGINAL
from analysis.papers.niven2019.reliance import FOLLOWS, RIGHT, WRONG, reliance_draws
from analysis.statistics.measures import drawn_measures, with_limits
from analysis.statistics.verdicts import Finding, untestable

Draws = Float[np.ndarray, " draw"]


@dataclass(frozen=True)
class Answers:
    """The evidence: the answers of the runs, the original test arguments, and the table of cues."""

    answers: xr.Dataset
    test: Sequence[Argument]
    cues: pd.DataFrame
    resamples: int = 999
    seed: int = 0
    drawn: str = "seeds and points"

    @property
    def options(self) -> tuple[int, int]:
        """The number of draws, and their seed."""
        return self.resamples, self.seed


def _judged_on(units: Mapping[str, Draws], value: str, n: int, control: str) -> Finding:
    """A finding from the draws of each unit; the first is the sample's own value."""
    if not units:
        return untestable("no such runs")
    return Finding(value, n, drawn_measures(units), control=control)


def _accuracy(evidence: Answers, setup: str, trained_on: str, half: str) -> Draws | None:
    right = of_runs(evidence.answers, ENCODER, setup, trained_on, half)
    if not right.sizes["seed"]:
        return None
    return drawn_means(right.values, pairs_of(right), *evidence.options)


def _degenerate(evidence: Answers, *setups: str) -> str:
    """How many runs of the encoder in these set-ups did not learn their training set, in words after a value."""
    answers = evidence.answers
    own = (answers["model"] == ENCODER) & (answers["trained_on"] == ORIGINAL) & answers["setup"].isin(setups)
    learnt = answers["train_accuracy"].values[own.values]
    return f"; encoder: {(learnt < LEARNT).sum()} of {learnt.size} runs degenerate"


def beats_chance(evidence: Answers) -> Finding:
    """N1: accuracy of the encoder with the full input, on the original test set."""
    draws = _accuracy(evidence, "full", ORIGINAL, ORIGINAL)
    if draws is None:
        return untestable("no run of the encoder")
    cue = baseline_table({"test": evidence.test}, 99).set_index("baseline").loc[NOT, "accuracy"]
    value = f"{draws[0]:.3f}{_degenerate(evidence, 'full')}"
    return _judged_on({"full": draws}, value, len(evidence.test), f'always the warrant with "not": {cue:.3f}')


def differences(evidence: Answers, pairs: Sequence[tuple[str, str]]) -> Finding:
    """N2, N3: accuracy of the encoder in one set-up minus another, on the same points."""
    found = {
        f"{first} - {second}": difference_draws(evidence.answers, ENCODER, first, second, *evidence.options)
        for first, second in pairs
    }
    if any(np.isnan(draws[0]) for draws in found.values()):
        return untestable("a set-up has no run of the encoder")
    beside = [difference_draws(evidence.answers, BAG, *pair, *evidence.options)[0] for pair in pairs]
    value, control = (
        ", ".join(f"{name} {number:+.3f}" for name, number in zip(found, numbers, strict=True))
        for numbers in ([draws[0] for draws in found.values()], beside)
    )
    value += _degenerate(evidence, *{setup for pair in pairs for setup in pair})
    control = "" if np.isnan(beside).any() else f"bag of vectors: {control}"
    return _judged_on(found, value, len(evidence.test), control)


def productive_cue(evidence: Answers) -> Finding:
    """N4: the productivity of "not" in each split."""
    rows = evidence.cues[(evidence.cues["rule"] == "expanded") & (evidence.cues["cue"] == NOT)]
    rows = rows[rows["split"] != ALL].set_index("split")
    measures, limits = with_limits(rows.index, rows["productivity"], rows["low"], rows["high"])
    value = ", ".join(f"{split} {number:.3f}" for split, number in rows["productivity"].items())
    counts = {split: int(number) for split, number in rows["applicability"].items()}
    return Finding(value, counts, measures, limits, "in the adversarial set: 0.5 exactly")


def adversarial_chance(evidence: Answers) -> Finding:
    """N5: how far the accuracy of the encoder is from one half on the adversarial set, after training on one."""
    found = {setup: _accuracy(evidence, setup, DOUBLED, ALL) for setup in ("full", "CW")}
    found = {setup: draws for setup, draws in found.items() if draws is not None}
    value = ", ".join(f"{setup} {draws[0]:.3f}" for setup, draws in found.items())
    away = {setup: np.abs(draws - CHANCE) for setup, draws in found.items()}
    return _judged_on(away, value, 2 * len(evidence.test), "warrants alone, or with the reason: 0.5 exactly")


def relies_less(evidence: Answers) -> Finding:
    """N6: how much more often each small model chooses the warrant with "not" than the encoder does."""
    found = {
        model: reliance_draws(evidence.answers, model, "full", evidence.test, *evidence.options)
        for model in (ENCODER, BAG, BILSTM)
    }
    follows = {model: draws[FOLLOWS] for model, draws in found.items() if FOLLOWS in draws}
    value = ", ".join(f"{model} {draws[0]:.3f}" for model, draws in follows.items())
    value += _degenerate(evidence, "full")
    if ENCODER not in follows:
        return untestable("no run of the encoder, or no cue")
    more = {model: draws - follows[ENCODER] for model, draws in follows.items() if model != ENCODER}
    n = int((follows_cue(evidence.test) != 0).sum())
    return _judged_on(more, value, n, "a model that ignores the cue: 0.5")


def moves_with_cue(evidence: Answers) -> Finding:
    """N7: accuracy of the encoder if "not" is in the right warrant, minus that if it is in the wrong one."""
    draws = reliance_draws(evidence.answers, ENCODER, "full", evidence.test, *evidence.options)
    if not {RIGHT, WRONG} <= draws.keys():
        return untestable("no run of the encoder, or no cue")
    bag = reliance_draws(evidence.answers, BAG, "full", evidence.test, *evidence.options)
    control = f"bag of vectors: {bag[RIGHT][0]:.3f} and {bag[WRONG][0]:.3f}" if bag else ""
    value = f"{draws[RIGHT][0]:.3f} where it is right, {draws[WRONG][0]:.3f} where it is wrong"
    value += _degenerate(evidence, "full")
    n = int((follows_cue(evidence.test) != 0).sum())
    return _judged_on({"full": draws[RIGHT] - draws[WRONG]}, value, n, control)
