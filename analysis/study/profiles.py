"""Profiles: the parameters of every notebook, from its own cell, a YAML file and the command line."""

import argparse
import ast
import sys
from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import yaml

from analysis.errors import InputError, check_choice, exit_status
from analysis.files import ROOT, parse_yaml, write_text
from analysis.study.runs import RUNS_PER, Folders
from analysis.texts.tasks import TASKS, check_source, task_name

NOTEBOOKS = ROOT / "notebooks"
PROFILES = ROOT / "profiles"
# Parameters that name texts, beside `source`; without a file they stand for the made-up ones.
TEXTS = (
    "parser passage_source conllu conllu_train conllu_documents frames dependency_files argument_source"
).split()
CONDITIONS = {  # of ranges.yaml: whether a value meets one, and what a message says
    "least": (lambda value, limit: value >= limit, "give at least {}"),
    "above": (lambda value, limit: value > limit, "give more than {}"),
    "most": (lambda value, limit: value <= limit, "give at most {}"),
    "below": (lambda value, limit: value < limit, "give less than {}"),
    "choices": (lambda value, limit: value in limit, "choose from {}"),
    "entries": (lambda values, limit: len(values) >= limit, "name at least {}"),
    "distinct": (lambda values, _: all(values.count(value) == 1 for value in values), "name nothing twice"),
}
NOT_RUN = "not_run"  # a key beside the sections: a list of notebooks that the profile does not run
ANNOTATIONS = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "__builtins__": {}}


def notebook_names() -> list[str]:
    """All notebooks in reading order."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.py"))


def source(notebook: str) -> Path:
    """The script of a notebook; raises InputError for an unknown notebook."""
    names = notebook_names() or ["those of a clone of the repository"]
    check_choice(f"unknown notebook {notebook!r}", notebook, names)
    return NOTEBOOKS / f"{notebook}.py"


def declared(notebook: str) -> dict[str, Any]:
    """The names and defaults in a notebook's parameters cell."""
    return {name: default for name, (_, default) in _annotated(source(notebook)).items()}


def _annotated(path: Path) -> dict[str, tuple[str, Any]]:
    """The annotation and the default of every parameter in the script of a notebook."""
    cell = path.read_text(encoding="utf-8").split('# %% tags=["parameters"]')[1].split("\n# %%")[0]
    try:
        return _assigned(cell)
    except (SyntaxError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: write name: type = value in the parameters cell ({error})") from error


@cache  # the parameters of one notebook need the names of all
def _assigned(code: str) -> dict[str, tuple[str, Any]]:
    return {
        statement.target.id: (ast.unparse(statement.annotation), ast.literal_eval(statement.value))
        for statement in ast.parse(code).body
    }


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of the kind that an annotation names; a whole number is a number too."""
    if isinstance(kind, UnionType):
        return any(fits(value, choice) for choice in get_args(kind))
    if get_origin(kind) is list:
        return isinstance(value, list) and all(fits(element, *get_args(kind)) for element in value)
    return type(value) in ((int, float) if kind is float else (kind,))


_read = cache(parse_yaml)


def load_profile(profile: str) -> dict[str, Any]:
    """The sections of profiles/<profile>.yaml, and its list NOT_RUN; raises InputError for a name that is unknown."""
    check_choice(
        f"unknown profile {profile!r}", profile, sorted(path.stem for path in PROFILES.glob("*.yaml"))
    )
    path = PROFILES / f"{profile}.yaml"
    sections = _read(path.read_bytes(), path) or {}
    if not isinstance(sections, dict) or not all(
        isinstance(values, (list if name == NOT_RUN else dict) | None) for name, values in sections.items()
    ):
        raise InputError(
            f"{path}: write sections such as 'common:', and below them indented lines 'name: value'"
        )
    known = {name: {*declared(name)} - {"profile"} for name in notebook_names()}
    for name in sections.get(NOT_RUN) or []:
        check_choice(f"{path}: {NOT_RUN}: unknown notebook {name!r}", name, known)
    known |= {"common": set().union(*known.values()), NOT_RUN: sections.get(NOT_RUN)}
    for section, values in sections.items():
        check_choice(f"{path}: unknown section {section!r}", section, known)
        for key in values or {}:
            check_choice(f"{path}: unknown key {key!r} in section {section!r}", key, sorted(known[section]))
    return {section: values or {} for section, values in sections.items()}


def not_run(profile: str) -> list[str]:
    """The notebooks that a profile does not run; raises InputError as `load_profile` does."""
    return [*load_profile(profile).get(NOT_RUN, [])]


def parameters(notebook: str, profile: str, settings: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Every parameter of a notebook: its default, or the profile's value, or the value in `settings`.

    Raises InputError for an unknown parameter, and for a value of another kind than its annotation or out of range.
    """
    values, sections = declared(notebook), load_profile(profile)
    choices = [name for name in values if name != "profile"]
    for name in settings:
        check_choice(f"{notebook} has no parameter {name!r}", name, choices)
    for layer in (sections.get("common", {}), sections.get(notebook, {}), settings, {"profile": profile}):
        values |= {name: value for name, value in layer.items() if name in values}
    check_values(notebook, values)
    return values


def declared_ranges() -> dict[str, dict[str, Any]]:
    """The conditions on the parameters of all notebooks by name, from the file beside them."""
    path = NOTEBOOKS / "ranges.yaml"
    return _read(path.read_bytes(), path) if path.exists() else {}


def check_values(notebook: str, values: Mapping[str, Any]) -> None:
    """Raises InputError for a parameter of another kind than its annotation, or out of the range in ranges.yaml."""
    for name, (kind, _) in _annotated(source(notebook)).items():
        if not fits(values[name], eval(kind, ANNOTATIONS)):  # noqa: S307 (of these names alone)
            hint = " (YAML reads 1e-4 as text: write 1.0e-4)" if "float" in kind else ""
            raise InputError(f"{notebook}: parameter {name} is {values[name]!r}: give {kind}{hint}")
        for condition, limit in declared_ranges().get(name, {}).items():
            meets, remedy = CONDITIONS[condition]
            whole = condition in ("entries", "distinct") or not isinstance(values[name], list)
            if not all(
                meets(item, limit) for item in ([values[name]] if whole else values[name]) if item is not None
            ):
                remedy = remedy.format(", ".join(limit) if isinstance(limit, list) else limit)
                raise InputError(f"{notebook}: parameter {name} is {values[name]!r}: {remedy}")


def parse_name(name: str) -> tuple[str, dict[str, str]]:
    """The notebook and the parameters in the name of a run: `03_test-mrpc` has the task mrpc.

    Raises InputError for a name that no run has.
    """
    notebook = name.partition("-")[0]
    keys = [key for key in RUNS_PER if key in declared(notebook)]
    choices = product(*(RUNS_PER[key] for key in keys))
    runs = {"-".join([notebook, *values]): dict(zip(keys, values, strict=True)) for values in choices}
    check_choice(f"there is no run {name}", name, runs | {notebook: {}})
    return notebook, runs.get(name, {})


def write_parameters(profile: str) -> None:
    """Writes what Make needs to know of a profile into its cache: `tasks.mk`, and parameters that have changed.

    `tasks.mk` has the lists of tasks of the notebooks that are run, their ENCODERS, and NOT_RUN. Raises InputError for
    a task that is unknown or does not fit the source of the profile's texts, and for made-up texts beside real ones.
    """
    left_out, common = not_run(profile), load_profile(profile).get("common", {})
    notebooks = {name: parameters(name, profile) for name in notebook_names() if name not in left_out}
    sources = {name: values.get("source", common.get("source")) for name, values in notebooks.items()}
    folders = Folders(profile)
    folders.prepare()
    encoders = {values["encoder"] for values in notebooks.values() if "encoder" in values}
    lines = [f"ENCODERS := {' '.join(sorted(encoders))}\n", f"NOT_RUN := {' '.join(left_out)}\n"]
    for notebook, values in notebooks.items():
        for name in (name for name in values if name.endswith("tasks")):
            tasks = [task_name(task) for task in values[name]]
            for task in tasks:
                check_choice(f"{notebook}: task {task!r} is unknown", task, TASKS)
                check_source(TASKS[task], sources[notebook])
            lines.append(f"{notebook}.{name} := {' '.join(tasks)}\n")
    for notebook, values in notebooks.items():
        for name in TEXTS if sources[notebook] is not None else ():
            if name in values and values[name] in ("bundled", "gold", None, []):
                raise InputError(
                    f"{notebook}: parameter {name} is {values[name]!r}, made-up texts, in a profile on real ones: "
                    "name its files"
                )
        text, path = yaml.safe_dump(values), folders.cache / "parameters" / f"{notebook}.yaml"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    write_text(folders.cache / "tasks.mk", "".join(lines))


def command(function: Callable[..., object], *lists: str) -> None:
    """Ends the process with the status of a function of a profile and of the lists that stand on the command line."""
    parser = argparse.ArgumentParser(description=function.__doc__.splitlines()[0])
    parser.add_argument("--profile", default="offline")
    for name in lists:
        parser.add_argument(name, nargs="+")
    options = vars(parser.parse_args())
    sys.exit(exit_status(lambda: function(**options)))


if __name__ == "__main__":
    command(write_parameters)
