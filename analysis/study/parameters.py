"""The parameters of a notebook: names, types and defaults in its cell, and the values that they may have."""

import ast
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from analysis.errors import InputError, check_choice
from analysis.files import parse_yaml
from analysis.study import runs
from analysis.study.runs import RUNS_PER, notebook_names

CONDITIONS = {  # of ranges.yaml: whether a value meets one, and what a message says
    "least": (lambda value, limit: value >= limit, "give at least {}"),
    "above": (lambda value, limit: value > limit, "give more than {}"),
    "most": (lambda value, limit: value <= limit, "give at most {}"),
    "below": (lambda value, limit: value < limit, "give less than {}"),
    "choices": (lambda value, limit: value in limit, "choose from {}"),
    "entries": (lambda values, limit: len(values) >= limit, "name at least {}"),
    "distinct": (lambda values, _: all(values.count(value) == 1 for value in values), "name nothing twice"),
}
ANNOTATIONS = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "__builtins__": {}}
read_yaml = cache(parse_yaml)


def source(notebook: str) -> Path:
    """The script of a notebook; raises InputError for an unknown notebook."""
    names = notebook_names() or ["those of a clone of the repository"]
    check_choice(f"unknown notebook {notebook!r}", notebook, names)
    return runs.NOTEBOOKS / f"{notebook}.py"


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


def declared_ranges() -> dict[str, dict[str, Any]]:
    """The conditions on the parameters of all notebooks by name, from the file beside them."""
    path = runs.NOTEBOOKS / "ranges.yaml"
    return read_yaml(path.read_bytes(), path) if path.exists() else {}


def check_values(notebook: str, values: Mapping[str, Any]) -> None:
    """Raises InputError for a parameter of another kind than its annotation, or out of the range in ranges.yaml."""
    for name, (kind, _) in _annotated(source(notebook)).items():
        try:
            TypeAdapter(eval(kind, ANNOTATIONS)).validate_python(values[name], strict=True)  # noqa: S307 (these names alone)
        except ValidationError:
            hint = " (YAML reads 1e-4 as text: write 1.0e-4)" if "float" in kind else ""
            raise InputError(f"{notebook}: parameter {name} is {values[name]!r}: give {kind}{hint}") from None
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
    named = {"-".join([notebook, *values]): dict(zip(keys, values, strict=True)) for values in choices}
    check_choice(f"there is no run {name}", name, named | {notebook: {}})
    return notebook, named.get(name, {})
