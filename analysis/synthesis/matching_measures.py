"""What is measured of each claim on matching heads (X1 to X8), as frames for `statistics.claims`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float

from analysis.encoders.interventions import Head, head_name
from analysis.statistics.changes import BASELINE
from analysis.statistics.claims import frame, not_applicable, read_claims, with_control
from analysis.statistics.effects import auc_parts, cross_fitted, stratified_halves
from analysis.statistics.intervals import crossed_interval, draws_interval
from analysis.statistics.resampling import resampled
from analysis.synthesis.matching import BOTH, NATURAL, OWN, TO_OWN, TO_WRONG
from analysis.synthesis.matching_runs import Run, Study

CLAIMS = [claim for claim in read_claims(Path(__file__).with_name("claims.yaml")) if claim.id[0] == "X"]
NO_HEAD = "no head matches"
NO_RUN = "no run of such a task trained successfully"
Interval = tuple[float, float, float]


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
    fine-tuning; `blocked` by task the `blocked_answers`.
    """
    answers = {
        task: Answers.of(runs, study.positive[task])
        for task in study.dev
        if (runs := [scores[run] for run in scores if run[0] == task and run in {*study.trained}])
    }
    pairs = {task: answer for task, answer in answers.items() if task in {task for task, _ in study.pairs}}
    singles = {task: answer for task, answer in answers.items() if task not in pairs}
    by_state: dict[str, dict[str, np.ndarray]] = {"pretrained": {}, "untrained": {}, "finetuned": {}}
    for (state, task), scores_by_head in match_scores.items():
        by_state[state][task] = scores_by_head.values.reshape(len(scores_by_head), -1)
    conditions = {
        task: {name: Answers.of(runs, study.positive[task]) for name, runs in by_condition.items()}
        for task, by_condition in blocked.items()
    }
    known = {task: shift for task, shift in shifts.items() if task in pairs}
    return {
        "X1": few(by_state["pretrained"], by_state["untrained"], threshold)
        if heads
        else not_applicable(NO_HEAD),
        "X2": lead(pairs, heads),
        "X3": lead(singles, heads),
        "X4": crossing(pairs, heads, TO_OWN, 0.5),
        "X5": crossing(pairs, heads, TO_WRONG, 0.25),
        "X6": dial(
            known, heads, {task: study.positive[task][: shift.shape[1]] for task, shift in known.items()}
        ),
        "X7": other_roles(pairs, heads, roles),
        "X8": needed(conditions),
    }


class Answers(NamedTuple):
    """The match logits of a task's trained runs under interventions, and which pairs match."""

    scores: Float[np.ndarray, "run intervention sequence"]
    positive: Bool[np.ndarray, " sequence"]
    names: Sequence[str]

    @classmethod
    def of(cls, runs: Sequence[xr.DataArray], positive: Bool[np.ndarray, " sequence"]) -> "Answers":
        """From the match logits (intervention, sequence) of each run."""
        return cls(np.stack([run.values for run in runs]), positive, runs[0]["intervention"].values.tolist())

    def falls(
        self, names: Sequence[str], part: Bool[np.ndarray, " sequence"] | slice = slice(None)
    ) -> Float[np.ndarray, "run intervention sequence"]:
        """The fall of the AUC under each named intervention, as means over sequences of a part of the pairs."""
        rows = [self.names.index(name) for name in (BASELINE, *names)]
        values = auc_parts(self.scores[:, rows][..., part], self.positive[part])
        return values[:, :1] - values[:, 1:]


def few(
    before: Mapping[str, Float[np.ndarray, "sequence head"]],
    untrained: Mapping[str, Float[np.ndarray, "sequence head"]],
    threshold: float | int,
    seed: int = 0,
) -> pd.DataFrame:
    """X1: the share of heads with a match score above the threshold, by pair task; NaN: a pair without shared words."""

    def share(scores: Float[np.ndarray, "sequence head"]) -> Interval:
        known = scores[np.isfinite(scores).all(axis=1)]
        means = resampled(len(known), 499, seed) @ known / len(known)
        return draws_interval((means > threshold).mean(axis=1))

    return with_control(
        frame({task: share(scores) for task, scores in before.items()}),
        {task: share(scores) for task, scores in untrained.items()},
    )


def lead(answers: Mapping[str, Answers], heads: Sequence[Head], seed: int = 0) -> pd.DataFrame:
    """X2, X3: the smaller fall of the matching heads minus the largest of any other head, chosen on the other half."""
    if not heads:
        return not_applicable(NO_HEAD)
    units = {}
    for task, answer in answers.items():
        singles = [name for name in answer.names if name.replace("-", "").isdigit()]
        members = np.isin(singles, [head_name(*head) for head in heads])
        half = stratified_halves(answer.positive.astype(int), seed)
        values = cross_fitted(
            lambda part, answer=answer, names=singles: answer.falls(names, part), half, members
        )
        units[task] = crossed_interval(values)
    return _frame(units, answers)


def crossing(answers: Mapping[str, Answers], heads: Sequence[Head], edit: str, share: float) -> pd.DataFrame:
    """X4, X5: the fall of the AUC under an edit minus a share of the fall when the heads are ablated."""
    if not heads:
        return not_applicable(NO_HEAD)
    falls = {task: answer.falls([edit, BOTH]) for task, answer in answers.items()}
    return _frame(
        {task: crossed_interval(fall[:, 0] - share * fall[:, 1]) for task, fall in falls.items()}, answers
    )


def dial(
    shifts: Mapping[str, xr.DataArray], heads: Sequence[Head], labels: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """X6: the shift of the match logit by the dial minus the largest of any reference set, chosen on the other half.

    `shifts` (intervention, sequence) hold the rows NATURAL, OWN (the control) and every reference set, of one run.
    """
    if not heads:
        return not_applicable(NO_HEAD)
    units, control = {}, {}
    for task, shift in shifts.items():
        sets = shift.drop_sel(intervention=OWN)
        members = sets["intervention"].values == NATURAL
        if members.all():
            continue
        half = stratified_halves(labels[task].astype(int))
        values = sets.values[None]
        units[task] = crossed_interval(cross_fitted(lambda part, all=values: all[..., part], half, members))
        control[task] = crossed_interval(shift.sel(intervention=OWN).values[None])
    rows = frame(units, runs=1) if units else not_applicable("no other set of as many heads in these layers")
    return with_control(rows, control)


def other_roles(
    answers: Mapping[str, Answers], heads: Sequence[Head], scores: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """X7: the fall for the head with the highest score of a role before fine-tuning, minus the smaller fall of X2.

    `scores` holds by task the mean scores (layer, head, role, mean) before fine-tuning. A role's value is the mean over
    tasks.
    """
    if not heads:
        return not_applicable(NO_HEAD)
    by_role: dict[str, list[Interval]] = {}
    for task, answer in answers.items():
        falls = answer.falls([head_name(*head) for head in heads])
        smaller = falls[:, falls.mean(axis=(0, 2)).argmin()]
        for role, rows in scores[task].dropna(subset="mean").groupby("role", sort=False):
            best = rows.loc[rows["mean"].idxmax()]
            if role != "match":
                fall = answer.falls([head_name(int(best["layer"]), int(best["head"]))])[:, 0]
                by_role.setdefault(str(role), []).append(crossed_interval(fall - smaller))
    units = {}
    for role, intervals in by_role.items():
        value, low, high = np.array(intervals).T
        mean, half = value.mean(), np.linalg.norm([value - low, high - value], axis=1) / len(value)
        units[role] = (float(mean), float(mean - half[0]), float(mean + half[1]))
    return (
        frame(units, runs=min(len(answer.scores) for answer in answers.values()))
        if units
        else not_applicable(NO_RUN)
    )


def needed(blocked: Mapping[str, Mapping[str, Answers]]) -> pd.DataFrame:
    """X8: the AUC that training with the heads blocked loses, minus that with as many other heads blocked, by task.

    `blocked` holds by task and condition of training the answers under each blocking; both are read as trained.
    """
    units = {}
    for task, conditions in blocked.items():
        parts = [
            auc_parts(answer.scores[:, answer.names.index(name)], answer.positive)
            for name in ("other heads", "matching heads")
            for answer in [conditions[name]]
        ]
        units[task] = crossed_interval(parts[0] - parts[1])
    runs = min(
        (len(answer.scores) for conditions in blocked.values() for answer in conditions.values()), default=0
    )
    return frame(units, runs=runs) if units else not_applicable("training with blocked heads was not run")


def _frame(units: Mapping[str, Interval], answers: Mapping[str, Answers]) -> pd.DataFrame:
    return (
        frame(units, runs={task: len(answers[task].scores) for task in units})
        if units
        else not_applicable(NO_RUN)
    )
