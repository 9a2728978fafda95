"""Profiles: the parameters of every notebook, from its own cell, a YAML file and the command line."""

import argparse
import ast
import sys
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import yaml

from analysis.errors import InputError, exit_status
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
    names = notebook_names()
    if notebook not in names:
        choices = ", ".join(names) or "those of a clone of the repository"
        raise InputError(f"unknown notebook {notebook!r}: choose from {choices}")
    return NOTEBOOKS / f"{notebook}.py"


def declared(notebook: str) -> dict[str, Any]:
    """The names and defaults in a notebook's parameters cell."""
    return {name: value for name, (_, value) in _annotated(notebook).items()}


def _annotated(notebook: str) -> dict[str, tuple[str, Any]]:
    """The annotation and the default of every parameter of a notebook."""
    path = source(notebook)
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


def load_profile(profile: str) -> dict[str, dict[str, Any]]:
    """The sections of profiles/<profile>.yaml, and its list NOT_RUN.

    Raises InputError for an unknown profile, section, key or notebook.
    """
    known = sorted(path.stem for path in PROFILES.glob("*.yaml"))
    if profile not in known:
        raise InputError(f"unknown profile {profile!r}: choose from {', '.join(known)}")
    path = PROFILES / f"{profile}.yaml"
    sections = _read(path.read_bytes(), path) or {}
    if not isinstance(sections, dict) or not all(
        isinstance(values or {}, list if name == NOT_RUN else dict) for name, values in sections.items()
    ):
        raise InputError(
            f"{path}: write sections such as 'common:', and below them indented lines 'name: value'"
        )
    known_keys = {name: {*declared(name)} - {"profile"} for name in notebook_names()}
    for name in sections.get(NOT_RUN) or []:
        if name not in known_keys:
            raise InputError(f"{path}: {NOT_RUN}: unknown notebook {name!r}: choose from {notebook_names()}")
    known_keys |= {"common": set().union(*known_keys.values())}
    for section in (name for name in sections if name != NOT_RUN):
        if section not in known_keys:
            raise InputError(f"{path}: unknown section {section!r}: choose from {', '.join(known_keys)}")
        for key in {*(sections[section] or {})} - known_keys[section]:
            choices = ", ".join(sorted(known_keys[section]))
            raise InputError(f"{path}: unknown key {key!r} in section {section!r}: choose from {choices}")
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
        if name not in choices:
            raise InputError(f"{notebook} has no parameter {name!r}: choose from {', '.join(choices)}")
    layers = (sections.get("common", {}), sections.get(notebook, {}), settings, {"profile": profile})
    values |= {name: value for layer in layers for name, value in layer.items() if name in values}
    check_values(notebook, values)
    return values


def declared_ranges() -> dict[str, dict[str, Any]]:
    """The conditions on the parameters of all notebooks by name, from the file beside them."""
    path = NOTEBOOKS / "ranges.yaml"
    return _read(path.read_bytes(), path) if path.exists() else {}


def check_values(notebook: str, values: Mapping[str, Any]) -> None:
    """Raises InputError for a parameter of another kind than its annotation, or out of the range in ranges.yaml."""
    for name, (kind, _) in _annotated(notebook).items():
        if not fits(values[name], eval(kind, ANNOTATIONS)):  # noqa: S307 (of these names alone)
            hint = " (YAML reads 1e-4 as text: write 1.0e-4)" if "float" in kind else ""
            raise InputError(f"{notebook}: parameter {name} is {values[name]!r}: give {kind}{hint}")
    ranges = declared_ranges()
    for name, value in values.items():
        for condition, limit in ranges.get(name, {}).items():
            meets, remedy = CONDITIONS[condition]
            of_list = condition in ("entries", "distinct") or not isinstance(value, list)
            if value is not None and not all(meets(item, limit) for item in ([value] if of_list else value)):
                remedy = remedy.format(", ".join(limit) if isinstance(limit, list) else limit)
                raise InputError(f"{notebook}: parameter {name} is {value!r}: {remedy}")


def parse_name(name: str) -> tuple[str, dict[str, str]]:
    """The notebook and the parameters in the name of a run: `03_test-mrpc` has the task mrpc.

    Raises InputError for a name that no run has.
    """
    notebook = name.partition("-")[0]
    keys = [key for key in RUNS_PER if key in declared(notebook)]
    choices = product(*(RUNS_PER[key] for key in keys))
    runs = {"-".join([notebook, *values]): dict(zip(keys, values, strict=True)) for values in choices}
    if name not in (notebook, *runs):
        raise InputError(f"there is no run {name}: choose from {', '.join(runs)}")
    return notebook, runs.get(name, {})


def command_line(module: str, text: str) -> argparse.ArgumentParser:
    """A parser for the command of a module with the option --profile; the text's first line describes it."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=text.splitlines()[0])
    parser.add_argument("--profile", default="offline")
    return parser


def write_parameters(profile: str) -> None:
    """Writes what Make needs to know of a profile into its cache: the parameters of every notebook, and their tasks.

    `parameters/<notebook>.yaml` is written only when a value changes, so that Make runs only what depends on it.
    `tasks.mk` has a variable `<notebook>.<name>` for each list of tasks, ENCODERS, which are those of all notebooks,
    and NOT_RUN. Notebooks that are not run have no lists.
    """
    names = [name for name in notebook_names() if name not in not_run(profile)]
    notebooks = {name: parameters(name, profile) for name in names}
    source = load_profile(profile).get("common", {}).get("source")
    folders = Folders(profile)
    folders.prepare()
    for check in (check_tasks, check_texts):
        for notebook, values in notebooks.items():
            check(notebook, values, values.get("source", source))
    encoders = {values["encoder"] for values in notebooks.values() if "encoder" in values}
    lines = [f"ENCODERS := {' '.join(sorted(encoders))}\n", f"NOT_RUN := {' '.join(not_run(profile))}\n"]
    for notebook, values in notebooks.items():
        for name in (name for name in values if name.endswith("tasks")):
            lines.append(f"{notebook}.{name} := {' '.join(map(task_name, values[name]))}\n")
        text, path = yaml.safe_dump(values), folders.cache / "parameters" / f"{notebook}.yaml"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    write_text(folders.cache / "tasks.mk", "".join(lines))


def check_tasks(notebook: str, values: Mapping[str, Any], source: str | None) -> None:
    """Raises InputError for an unknown task, and for one that does not fit the source of a profile."""
    for task in [task_name(task) for name in values if name.endswith("tasks") for task in values[name]]:
        if task not in TASKS:
            raise InputError(f"{notebook}: task {task!r} is unknown: choose from {', '.join(TASKS)}")
        check_source(TASKS[task], source)


def check_texts(notebook: str, values: Mapping[str, Any], source: str | None) -> None:
    """Raises InputError if a profile on real texts lets a notebook fall back to made-up ones."""
    for name in TEXTS:
        if source is not None and name in values and values[name] in ("bundled", "gold", None, []):
            raise InputError(
                f"{notebook}: parameter {name} is {values[name]!r}, made-up texts, in a profile on real ones: "
                "name its files"
            )


if __name__ == "__main__":
    name = command_line("analysis.study.profiles", write_parameters.__doc__).parse_args().profile
    sys.exit(exit_status(lambda: write_parameters(name)))
