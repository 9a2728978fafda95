"""What is measured of each claim on matching heads (X1 to X14), as frames for `statistics.claims`."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float
from scipy import stats

from analysis.roles import Head
from analysis.statistics.bootstrap import resampled
from analysis.statistics.changes import BASELINE
from analysis.statistics.claims import CONTROL, UNIT, frame, not_applicable, read_claims, with_control
from analysis.statistics.effects import auc_parts, lead_of_weakest, stratified_halves
from analysis.statistics.intervals import (
    MINIMUM_RUNS,
    Interval,
    crossed_interval,
    draws_interval,
    wilson_interval,
)
from analysis.statistics.training import TaskSeed
from analysis.synthesis.matching import BOTH, NATURAL, OTHER_PAIR, OWN, POSITIONS, TO_OWN, TO_WRONG, UNIFORM
from analysis.synthesis.matching_runs import CROSSINGS, DIALLED, SET, Classifier, crossing_draws

CLAIMS = [claim for claim in read_claims(Path(__file__).with_name("claims.yaml")) if claim.id[0] == "X"]
NO_HEAD = "no head matches"
NO_RUN = "no run of such a task was measured and trained successfully"
# By task, the match logits (run, intervention, sequence) of the runs that trained successfully.
Answers = Mapping[str, xr.DataArray]


def answers_by_task(
    scores: Mapping[TaskSeed, xr.DataArray], classifiers: Sequence[Classifier], pair: bool = True
) -> dict[str, xr.DataArray]:
    """The match logits (run, intervention, sequence) of runs that trained successfully, on pairs or on single texts."""
    runs: dict[str, list[xr.DataArray]] = {}
    for classifier in classifiers:
        if classifier.trained and classifier.pair == pair and classifier.run in scores:
            runs.setdefault(classifier.task, []).append(scores[classifier.run])
    return {task: joined(arrays) for task, arrays in runs.items()}


def frames(
    classifiers: Sequence[Classifier],
    heads: Sequence[Head],
    match_scores: Mapping[tuple[str, str], xr.DataArray],
    scores: Mapping[str, Mapping[TaskSeed, xr.DataArray]],
    identical: Mapping[TaskSeed, xr.DataArray],
    blocked: Mapping[str, Mapping[str, Sequence[xr.DataArray]]],
    threshold: float | int,
) -> dict[str, pd.DataFrame]:
    """The frame of every claim on pair tasks, by its id; the units of X7 are roles, those of the others tasks.

    `match_scores` are those of heads (sequence, layer, head), by state and task; `scores` are the match logits of all
    runs by section: "sets", "roles" (sets of heads with other roles), "attention" (with the dial) and "values";
    `identical` are those of texts beside themselves; `blocked` by task the answers of classifiers trained with heads
    blocked, by condition.
    """
    training_blocked = needed(blocked)
    if not heads:
        return {claim.id: not_applicable(NO_HEAD) for claim in CLAIMS if claim.id != "X3"} | {
            "X8": training_blocked
        }
    pairs = {section: answers_by_task(runs, classifiers) for section, runs in scores.items()}
    before = {task: array for (state, task), array in match_scores.items() if state == "pretrained"}
    moved = pairs["attention"]
    return {
        "X1": few(before, threshold),
        "X2": lead(pairs["sets"]),
        "X4": compared_falls(moved, TO_OWN, 0.5, BOTH, UNIFORM),
        "X5": compared_falls(moved, TO_WRONG, 0.25, BOTH, UNIFORM),
        "X6": dial(moved),
        "X7": other_roles(pairs["roles"]),
        "X8": training_blocked,
        "X9": compared_falls(pairs["values"], OTHER_PAIR, 0.5, TO_OWN),
        "X10": compared_falls(pairs["values"], POSITIONS, 0.25, TO_OWN),
        "X11": blind_to_identity(answers_by_task(identical, classifiers)),
        "X12": crossing(moved, "attention of matched words"),
        "X13": crossing(moved, "dial"),
        "X14": shift_on_identical(answers_by_task(identical, classifiers)),
    }


def single_texts(
    classifiers: Sequence[Classifier], heads: Sequence[Head], sets: Mapping[TaskSeed, xr.DataArray]
) -> pd.DataFrame:
    """The frame of X3, from the match logits of the tasks with single texts under sets of heads."""
    return lead(answers_by_task(sets, classifiers, pair=False)) if heads else not_applicable(NO_HEAD)


def over_tasks(units: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The frames of claims from those of single tasks, one below the other with a column claim.

    The value of a unit that several tasks have, as a role, is their mean; tasks are independent samples. Why a task has
    no value counts where no task has one.
    """
    frames = {}
    columns = ["claim", *UNIT, *CONTROL, "runs", "between", "reason"]
    units = units.reindex(columns=columns).fillna({"unit": "", "reason": ""})
    for claim, rows in units.groupby("claim", sort=False):
        measured = rows.dropna(subset="value")
        if measured.empty:
            frames[claim] = rows.drop_duplicates("reason")
            continue
        below, above = measured["value"] - measured["low"], measured["high"] - measured["value"]
        by_unit = measured.assign(below=below, above=above).groupby("unit", sort=False)
        half = by_unit[["below", "above"]].agg(lambda widths: np.linalg.norm(widths) / len(widths))
        means = by_unit.agg({"value": "mean", "runs": "min", **dict.fromkeys([*CONTROL, "between"], "mean")})
        means = means.reset_index()
        ends = {"low": means["value"] - half["below"].values, "high": means["value"] + half["above"].values}
        frames[claim] = means.assign(**ends)
    return frames


def joined(runs: Sequence[xr.DataArray]) -> xr.DataArray:
    """The match logits (run, intervention, sequence) of several runs."""
    return xr.concat(runs, "run", coords="minimal", compat="override", join="outer")


def falls(
    scores: xr.DataArray, names: Sequence[str], part: Bool[np.ndarray, " sequence"] | slice = slice(None)
) -> Float[np.ndarray, "run intervention sequence"]:
    """The fall of the AUC under each named intervention, as means over sequences of a part of the pairs."""
    scores = scores.sel(intervention=[BASELINE, *names])[..., part]
    values = auc_parts(scores.values, scores["positive"].values)
    return values[:, :1] - values[:, 1:]


def few(before: Mapping[str, xr.DataArray], threshold: float | int) -> pd.DataFrame:
    """X1: the share of heads with a match score above the threshold, by pair task; NaN: a pair without shared words."""

    def share(scores: xr.DataArray) -> Interval:
        by_head = scores.values.reshape(len(scores), -1)
        known = by_head[np.isfinite(by_head).all(axis=1)]
        means = resampled(len(known), 499) @ known / len(known)
        return draws_interval((means > threshold).mean(axis=1))

    return frame({task: share(scores) for task, scores in before.items()}, runs=0)


def lead(answers: Answers) -> pd.DataFrame:
    """X2, X3: the fall without the matching heads minus the largest without another set, chosen on the other half."""
    units = {}
    for task, scores in answers.items():
        names = [name for name in scores["intervention"].values if not name.startswith((BASELINE, DIALLED))]
        if len(names) < 2:
            continue
        half = stratified_halves(scores["positive"].values.astype(int))
        differences = lead_of_weakest(partial(falls, scores, names), half, np.array(names) == SET)
        units[task] = crossed_interval(differences)
    if answers and not units:
        return not_applicable("no other set of as many heads in these layers")
    return _frame(units, answers)


def compared_falls(
    answers: Answers, edit: str, share: float, reference: str, other: str = ""
) -> pd.DataFrame:
    """X4, X5, X9, X10: the fall of the AUC under an edit minus a share of the fall under a reference edit.

    The same with the `other` reference edit is for comparison.
    """

    def difference(scores: xr.DataArray, name: str) -> Interval:
        edited, compared = np.moveaxis(falls(scores, [edit, name]), 1, 0)
        return crossed_interval(edited - share * compared)

    allowed = {task: scores for task, scores in answers.items() if edit in scores["intervention"].values}
    if answers and not allowed:
        return not_applicable(f"the encoder does not allow the edit: {edit}")
    units = {task: difference(scores, reference) for task, scores in allowed.items()}
    beside = {task: difference(scores, other) for task, scores in allowed.items() if other}
    return with_control(_frame(units, answers), beside)


def dial(answers: Answers) -> pd.DataFrame:
    """X6: the shift of the match logit at the natural dose, minus that by the same heads turned to their own text."""
    shifts = {
        task: scores.sel(intervention=NATURAL) - scores.sel(intervention=OWN)
        for task, scores in answers.items()
    }
    return _frame({task: crossed_interval(shift.values) for task, shift in shifts.items()}, answers)


def crossing(answers: Answers, measure: str) -> pd.DataFrame:
    """X12, X13: the crossing share of one of CROSSINGS (see `matching_runs.crossing_draws`)."""
    edits = CROSSINGS[measure]
    draws = {task: np.array([crossing_draws(run, edits) for run in runs]) for task, runs in answers.items()}
    return _frame({task: draws_interval(by_run) for task, by_run in draws.items()}, answers)


def blind_to_identity(answers: Answers) -> pd.DataFrame:
    """X11: the share of identical texts called a match, minus that with the heads turned to the own text."""
    units = {}
    for task, scores in answers.items():
        called = (scores.sel(intervention=[BASELINE, TO_OWN]) > 0).values.astype(float)
        units[task] = share_difference(called[:, 0], called[:, 1])
    return _frame(units, answers)


def shift_on_identical(answers: Answers) -> pd.DataFrame:
    """X14: the match logit of identical texts, minus that with the heads turned to the own text."""
    pairs = {task: scores.sel(intervention=[BASELINE, TO_OWN]).values for task, scores in answers.items()}
    return _frame({task: crossed_interval(both[:, 0] - both[:, 1]) for task, both in pairs.items()}, answers)


def share_difference(first: Float[np.ndarray, "run text"], second: Float[np.ndarray, "run text"]) -> Interval:
    """The difference of two shares with Newcombe's interval (1998, method 10), over runs too with three or more."""
    (p, low, high), (q, other_low, other_high) = (
        wilson_interval(round(side.mean() * side.shape[1]), side.shape[1]) for side in (first, second)
    )
    by_run, between = (first - second).mean(axis=1), 0.0
    if len(by_run) >= MINIMUM_RUNS:
        between = stats.t.ppf(0.975, len(by_run) - 1) ** 2 * by_run.var(ddof=1) / len(by_run)
    below = np.sqrt((p - low) ** 2 + (other_high - q) ** 2 + between)
    above = np.sqrt((high - p) ** 2 + (q - other_low) ** 2 + between)
    difference = float(by_run.mean())
    return difference, float(difference - below), float(difference + above)


def other_roles(answers: Answers) -> pd.DataFrame:
    """X7: the fall without the heads of another role, minus that without the matching heads, in one task."""
    units = {}
    for scores in answers.values():
        for role in scores["intervention"].values:
            if role not in (BASELINE, SET):
                others, matching = np.moveaxis(falls(scores, [role, SET]), 1, 0)
                units[str(role)] = crossed_interval(others - matching)
    runs = min(map(len, answers.values()), default=0)
    return frame(units, runs=runs) if units else not_applicable(NO_RUN)


def needed(blocked: Mapping[str, Mapping[str, Sequence[xr.DataArray]]]) -> pd.DataFrame:
    """X8: the AUC that training with the heads blocked loses, minus that with as many other heads blocked, by task.

    `blocked` holds by task and condition of training the answers under each blocking; both are read as trained.
    """
    units, runs = {}, {}
    for task, conditions in blocked.items():
        parts = []
        for name in ("other heads", "matching heads"):
            scores = joined(conditions[name]).sel(intervention=name)
            parts.append(auc_parts(scores.values, scores["positive"].values))
        units[task], runs[task] = crossed_interval(parts[0] - parts[1]), min(map(len, conditions.values()))
    return frame(units, runs=runs) if units else not_applicable("training with blocked heads was not run")


def _frame(units: Mapping[str, Interval], answers: Answers) -> pd.DataFrame:
    runs = {task: len(scores) for task, scores in answers.items()}
    return frame(units, runs=runs) if units else not_applicable(NO_RUN)
