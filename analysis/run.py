"""Runs one notebook with a profile's parameters: `python -m analysis.run NOTEBOOK --profile P --set name=value`.

Every notebook is a jupytext percent script; papermill executes it with the values of the profile's sections
`common` and of the notebook's own name. Names that no parameters cell knows are errors. The executed notebook
reaches results/<profile>/notebooks/ only when every cell has run.
"""

import argparse
import ast
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from .errors import InputError
from .store import ROOT, Results, replacing, write_text

NOTEBOOKS = ROOT / "notebooks"
PROFILES = ROOT / "profiles"
PACKAGE = Path(__file__).parent
RUNS_PER = ("task", "state")  # a notebook with these parameters is executed once for each of their values


def notebook_names() -> list[str]:
    """All notebooks in reading order."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.py"))


def source(notebook: str) -> Path:
    """The script of a notebook; raises InputError naming those that exist."""
    if notebook not in notebook_names():
        raise InputError(f"unknown notebook {notebook!r}: choose from {', '.join(notebook_names())}")
    return NOTEBOOKS / f"{notebook}.py"


def declared(notebook: str) -> dict[str, Any]:
    """The names and defaults in a notebook's parameters cell."""
    cell = (
        source(notebook)
        .read_text(encoding="utf-8")
        .split('# %% tags=["parameters"]', 1)[1]
        .split("# %%", 1)[0]
    )
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(cell).body
        if isinstance(statement, ast.Assign)
    }


def load_profile(profile: str) -> dict[str, dict[str, Any]]:
    """The sections of profiles/<profile>.yaml; raises InputError for an unknown profile, section or key."""
    path = PROFILES / f"{profile}.yaml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.yaml")))
        raise InputError(f"unknown profile {profile!r}: choose from {known}")
    try:
        sections = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    known_keys = {name: set(declared(name)) for name in notebook_names()}
    known_keys["common"] = set().union(*known_keys.values())
    for section, values in sections.items():
        if section not in known_keys:
            raise InputError(f"{path}: unknown section {section!r}: choose from {', '.join(known_keys)}")
        for key in values or {}:
            if key not in known_keys[section]:
                raise InputError(
                    f"{path}: unknown key {key!r} in section {section!r}: choose from "
                    f"{', '.join(sorted(known_keys[section]))}"
                )
    return {section: values or {} for section, values in sections.items()}


def parameters(notebook: str, profile: str, settings: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Every parameter of a notebook: its defaults, the profile's values, then `settings`."""
    defaults, sections = declared(notebook), load_profile(profile)
    for name in settings:
        if name not in defaults:
            raise InputError(f"{notebook} has no parameter {name!r}: choose from {', '.join(defaults)}")
    layers = (sections.get("common", {}), sections.get(notebook, {}), settings)
    chosen = {key: value for layer in layers for key, value in layer.items() if key in defaults}
    return defaults | {"profile": profile} | chosen


def run(notebook: str, profile: str, settings: Mapping[str, Any]) -> Path:
    """Executes a notebook and returns the path of the executed copy; nothing is left there when a cell fails.

    The failed copy, traceback included, is kept in the profile's cache/failed/.
    """
    import jupytext
    import nbformat
    import papermill

    values = parameters(notebook, profile, settings)
    results = Results(profile)
    name = "-".join([notebook, *(values[key] for key in RUNS_PER if key in values)])
    target = results.notebooks / f"{name}.ipynb"
    failed = results.cache / "failed" / f"{name}.ipynb"
    target.unlink(missing_ok=True)
    with replacing(target) as temporary:
        nbformat.write(jupytext.read(source(notebook)), temporary)
        try:
            papermill.execute_notebook(
                temporary, temporary, values, cwd=str(ROOT), progress_bar=False, log_output=True
            )
        except papermill.PapermillExecutionError as error:
            write_text(failed, temporary.read_text(encoding="utf-8"))
            reason = error.evalue if error.ename == "InputError" else f"{error.ename}: {error.evalue}"
            raise InputError(f"{name}: {' '.join(reason.split())} (executed so far: {failed})") from error
        nbformat.write(cleaned(nbformat.read(temporary, as_version=4)), temporary)
    failed.unlink(missing_ok=True)
    return target


def cleaned(notebook):
    """The executed notebook without times, paths and progress bars, so that it differs only when results do."""
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def imported_modules(path: Path, seen: frozenset[str] = frozenset()) -> set[str]:
    """Names of the modules of this package that a script needs, directly or through one another."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            own = node.level == 1 or (node.module or "").startswith("analysis")
            module = (node.module or "").removeprefix("analysis").lstrip(".")
            if own:
                found |= {module.split(".")[0]} if module else _homes(alias.name for alias in node.names)
    found = {name for name in found if name and module_file(name).exists()} - seen
    for name in sorted(found):
        found |= imported_modules(module_file(name), seen | found)
    return found


def module_file(name: str) -> Path:
    """The file of a module or subpackage of this package."""
    folder = PACKAGE / name
    return folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{name}.py"


def _homes(names: Iterable[str]) -> set[str]:
    from . import _HOMES

    return {_HOMES.get(name, name) for name in names}


def write_rules(profile: str) -> Path:
    """Writes what Make needs to know of a profile: its tasks, and for each notebook the files it depends on.

    A notebook's parameters go into a file that is rewritten only when they change, so that a changed parameter
    re-runs only what depends on it.
    """
    results = Results(profile)
    tasks = parameters("03_test_all", profile)["tasks"]
    lines = [f"TASKS := {' '.join(tasks)}"]
    for notebook in notebook_names():
        values = results.cache / "parameters" / f"{notebook}.yaml"
        _write_changed(values, yaml.safe_dump(parameters(notebook, profile), sort_keys=True))
        modules = [module_file(name) for name in sorted(imported_modules(source(notebook)))]
        files = [os.path.relpath(path, ROOT) for path in (source(notebook), *modules, values)]
        lines.append(f"DEPENDS_{notebook} := {' '.join(files)}")
    path = results.cache / "rules.mk"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _write_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    return name, yaml.safe_load(value)


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.run", description=__doc__.splitlines()[0])
    parser.add_argument("notebook", nargs="?", help="name of a notebook, such as 01_extract")
    parser.add_argument("--profile", default="offline")
    parser.add_argument(
        "--set", dest="settings", type=_setting, action="append", default=[], metavar="name=value"
    )
    parser.add_argument("--rules", action="store_true", help="write the profile's rules for Make instead")
    options = parser.parse_args(arguments)
    try:
        if options.rules:
            write_rules(options.profile)
        elif options.notebook is None:
            raise InputError(f"name a notebook: {', '.join(notebook_names())}")
        else:
            path = run(options.notebook, options.profile, dict(options.settings))
            print(os.path.relpath(path))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
