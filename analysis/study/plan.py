"""Which notebooks a profile runs, with which values of `task` and `state`, and in which order."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from analysis.errors import InputError
from analysis.study.discovery import Header, headers, paper_names
from analysis.study.folders import STATES
from analysis.study.profiles import parameters
from analysis.study.runs import RUNS_PER, Run
from analysis.texts.tasks import TASKS


def plan(profile: str, chosen: Sequence[str] = ()) -> dict[Run, list[Run]]:
    """Every run of a profile, in reading order, with the runs that it needs.

    `chosen` limits the plan to the notebooks of some papers, those that they need, and those that come last. A notebook
    of a paper runs for the `tasks` of all the paper's notebooks, one without a paper for the tasks that others need.
    Raises InputError for an unknown paper or task.
    """
    known, found = paper_names(), headers()
    for paper in chosen:
        if paper not in known:
            raise InputError(f"unknown paper {paper!r}: choose from {', '.join(known)}")
    values = {notebook: parameters(notebook, profile) for notebook in found}
    waiting = [run for name in found for run in _starts(name, found, values, chosen)]
    needs: dict[Run, list[Run]] = {}
    while waiting:
        run = waiting.pop()
        if run not in needs:
            needs[run] = _needed(run, found[run.notebook], values)
            waiting += needs[run]
    for run in needs:
        if found[run.notebook].last:
            needs[run] = sorted(other for other in needs if other.notebook < run.notebook)
    return dict(sorted(needs.items()))


def _starts(
    notebook: str, found: Mapping[str, Header], values: Mapping[str, Mapping[str, Any]], chosen: Sequence[str]
) -> list[Run]:
    """The runs of a notebook that are part of the plan whether or not another run needs them."""
    paper, last = found[notebook].paper, found[notebook].last
    if chosen and paper not in chosen and not last:
        return []
    own = [name for name, each in found.items() if paper and each.paper == paper]
    tasks = [task for name in own for task in _tasks(name, values[name])]
    return _runs(notebook, values[notebook], {"task": tasks, "state": STATES})


def _needed(run: Run, header: Header, values: Mapping[str, Mapping[str, Any]]) -> list[Run]:
    """The runs of other notebooks that a run needs: those with its task and state, or all of them if it has none."""
    own, found = dict(run.settings), []
    asked = {"task": _tasks(run.notebook, values[run.notebook]), "state": STATES}
    for other, limits in header.after.items():
        if all(own.get(key, value) == value for key, value in limits.items()):
            fixed = {key: [value] for key, value in {**own, **limits}.items()}
            runs = _runs(other, values[other], asked | fixed)
            if not runs:
                raise InputError(
                    f"{run.notebook} comes after {other}, which runs per task: give it a parameter task or tasks"
                )
            found += runs
    return found


def _runs(notebook: str, values: Mapping[str, Any], choices: Mapping[str, Iterable[str]]) -> list[Run]:
    keys = [key for key in RUNS_PER if key in values]
    combined = product(*(dict.fromkeys(choices[key]) for key in keys))
    return [Run(notebook, tuple(zip(keys, each, strict=True))) for each in combined]


def _tasks(notebook: str, values: Mapping[str, Any]) -> list[str]:
    """The `tasks` of a notebook; raises InputError if the list is empty or a task is unknown."""
    tasks = values.get("tasks")
    unknown = [task for task in tasks or [] if task not in TASKS]
    if unknown or tasks == []:
        wrong = f"task {unknown[0]!r} is unknown" if unknown else "tasks is empty"
        raise InputError(f"{notebook}: {wrong}: choose from {', '.join(TASKS)}")
    return tasks or []
