"""What is measured of each claim on matching heads (X1 to X8), as frames for `statistics.claims`."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float

from analysis.encoders.interventions import Head, head_name
from analysis.statistics.changes import BASELINE
from analysis.statistics.claims import frame, not_applicable, read_claims, with_control
from analysis.statistics.effects import auc_parts, cross_fitted, stratified_halves
from analysis.statistics.intervals import Interval, crossed_interval, draws_interval
from analysis.statistics.resampling import resampled
from analysis.synthesis.matching import BOTH, NATURAL, OWN, TO_OWN, TO_WRONG
from analysis.synthesis.matching_runs import SINGLE, Run, Study

CLAIMS = [claim for claim in read_claims(Path(__file__).with_name("claims.yaml")) if claim.id[0] == "X"]
NO_HEAD = "no head matches"
NO_RUN = "no run of such a task trained successfully"
# By task, the match logits (run, intervention, sequence) of the runs that trained successfully.
Answers = Mapping[str, xr.DataArray]


def frames(
    study: Study,
    scores: Mapping[Run, xr.DataArray],
    heads: Sequence[Head],
    match_scores: Mapping[tuple[str, str], xr.DataArray],
    threshold: float | int,
    shifts: Mapping[str, xr.DataArray],
    roles: Mapping[str, pd.DataFrame],
    blocked: Mapping[str, Mapping[str, Sequence[xr.DataArray]]],
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id.

    `scores` are the match logits of all runs under all edits; `match_scores` those of heads (sequence, layer, head), by
    state and task; `shifts` those of `Study.compare`; `roles` by task the mean scores (layer, head, role, mean) before
    fine-tuning; `blocked` by task the answers of `Study.blocked`.
    """
    conditions = {
        task: {name: joined(runs) for name, runs in by_condition.items()}
        for task, by_condition in blocked.items()
    }
    training_blocked = needed(conditions)
    if not heads:
        return {claim.id: not_applicable(NO_HEAD) for claim in CLAIMS} | {"X8": training_blocked}
    trained = {run: array for run, array in scores.items() if run in {*study.trained}}
    answers = {
        task: joined([array for run, array in trained.items() if run[0] == task])
        for task in dict.fromkeys(task for task, _ in trained)
    }
    pair_tasks = {task for task, _ in study.pairs}
    pairs = {task: array for task, array in answers.items() if task in pair_tasks}
    before, untrained = (
        {task: array for (name, task), array in match_scores.items() if name == state}
        for state in ("pretrained", "untrained")
    )
    return {
        "X1": few(before, untrained, threshold),
        "X2": lead(pairs, heads),
        "X3": lead({task: array for task, array in answers.items() if task not in pairs}, heads),
        "X4": crossing(pairs, TO_OWN, 0.5),
        "X5": crossing(pairs, TO_WRONG, 0.25),
        "X6": dial({task: shift for task, shift in shifts.items() if task in pairs}),
        "X7": other_roles(pairs, heads, roles),
        "X8": training_blocked,
    }


def joined(runs: Sequence[xr.DataArray]) -> xr.DataArray:
    """The match logits (run, intervention, sequence) of several runs."""
    return xr.concat(runs, "run", coords="minimal", compat="override")


def falls(
    scores: xr.DataArray, names: Sequence[str], part: Bool[np.ndarray, " sequence"] | slice = slice(None)
) -> Float[np.ndarray, "run intervention sequence"]:
    """The fall of the AUC under each named intervention, as means over sequences of a part of the pairs."""
    scores = scores.sel(intervention=[BASELINE, *names])[..., part]
    values = auc_parts(scores.values, scores["positive"].values)
    return values[:, :1] - values[:, 1:]


def few(
    before: Mapping[str, xr.DataArray], untrained: Mapping[str, xr.DataArray], threshold: float | int
) -> pd.DataFrame:
    """X1: the share of heads with a match score above the threshold, by pair task; NaN: a pair without shared words."""

    def share(scores: xr.DataArray) -> Interval:
        by_head = scores.values.reshape(len(scores), -1)
        known = by_head[np.isfinite(by_head).all(axis=1)]
        means = resampled(len(known), 499) @ known / len(known)
        return draws_interval((means > threshold).mean(axis=1))

    return with_control(
        frame({task: share(scores) for task, scores in before.items()}),
        {task: share(scores) for task, scores in untrained.items()},
    )


def lead(answers: Answers, heads: Sequence[Head]) -> pd.DataFrame:
    """X2, X3: the smaller fall of the matching heads minus the largest of any other head, chosen on the other half."""
    units = {}
    for task, scores in answers.items():
        names = scores["intervention"].to_series()
        singles = names[names.str.fullmatch(SINGLE)].tolist()
        members = np.isin(singles, [head_name(*head) for head in heads])
        half = stratified_halves(scores["positive"].values.astype(int))
        units[task] = crossed_interval(cross_fitted(partial(falls, scores, singles), half, members))
    return _frame(units, answers)


def crossing(answers: Answers, edit: str, share: float) -> pd.DataFrame:
    """X4, X5: the fall of the AUC under an edit minus a share of the fall when the heads are ablated."""
    units = {}
    for task, scores in answers.items():
        edited, ablated = np.moveaxis(falls(scores, [edit, BOTH]), 1, 0)
        units[task] = crossed_interval(edited - share * ablated)
    return _frame(units, answers)


def dial(shifts: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    """X6: the shift of the match logit by the dial minus the largest of any reference set, chosen on the other half.

    `shifts` (intervention, sequence) hold the rows NATURAL, OWN (the control) and every reference set, of one run.
    """
    units, control = {}, {}
    for task, shift in shifts.items():
        sets = shift.drop_sel(intervention=OWN)
        members = sets["intervention"].values == NATURAL
        if members.all():
            continue
        half = stratified_halves(shift["positive"].values.astype(int))
        values = sets.values[None]
        units[task] = crossed_interval(cross_fitted(lambda part, all=values: all[..., part], half, members))
        control[task] = crossed_interval(shift.sel(intervention=OWN).values[None])
    rows = frame(units, runs=1) if units else not_applicable("no other set of as many heads in these layers")
    return with_control(rows, control)


def other_roles(answers: Answers, heads: Sequence[Head], roles: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """X7: the fall for the head with the highest score of a role before fine-tuning, minus the smaller fall of X2.

    A role's value is the mean over tasks.
    """
    by_role: dict[str, list[Interval]] = {}
    for task, scores in answers.items():
        by_head = falls(scores, [head_name(*head) for head in heads])
        smaller = by_head[:, by_head.mean(axis=(0, 2)).argmin()]
        for role, rows in roles[task].dropna(subset="mean").groupby("role", sort=False):
            best = rows.loc[rows["mean"].idxmax()]
            if role != "match":
                fall = falls(scores, [head_name(int(best["layer"]), int(best["head"]))])[:, 0]
                by_role.setdefault(str(role), []).append(crossed_interval(fall - smaller))
    units = {}
    for role, intervals in by_role.items():
        value, low, high = np.array(intervals).T
        mean, half = value.mean(), np.linalg.norm([value - low, high - value], axis=1) / len(value)
        units[role] = (float(mean), float(mean - half[0]), float(mean + half[1]))
    runs = min(map(len, answers.values()), default=0)
    return frame(units, runs=runs) if units else not_applicable(NO_RUN)


def needed(blocked: Mapping[str, Answers]) -> pd.DataFrame:
    """X8: the AUC that training with the heads blocked loses, minus that with as many other heads blocked, by task.

    `blocked` holds by task and condition of training the answers under each blocking; both are read as trained.
    """
    units, runs = {}, []
    for task, conditions in blocked.items():
        others, matching = (
            auc_parts(conditions[name].sel(intervention=name).values, conditions[name]["positive"].values)
            for name in ("other heads", "matching heads")
        )
        units[task] = crossed_interval(others - matching)
        runs += map(len, conditions.values())
    if not units:
        return not_applicable("training with blocked heads was not run")
    return frame(units, runs=min(runs))


def _frame(units: Mapping[str, Interval], answers: Answers) -> pd.DataFrame:
    runs = {task: len(scores) for task, scores in answers.items()}
    return frame(units, runs=runs) if units else not_applicable(NO_RUN)
