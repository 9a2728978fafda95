"""Runs one notebook with a profile's parameters: `python -m analysis.run NOTEBOOK --profile P --set name=value`.

Every notebook is a jupytext percent script; papermill executes it with the values of the profile's sections
`common` and of the notebook's own name. Names that no parameters cell knows are errors. The executed notebook
reaches results/<profile>/notebooks/ only when every cell has run.
"""

import argparse
import ast
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from .errors import InputError
from .store import ROOT, Results, write_text

NOTEBOOKS = ROOT / "notebooks"
PROFILES = ROOT / "profiles"
PACKAGE = Path(__file__).parent
RUNS_PER = ("task", "state")  # a notebook with these parameters is executed once for each of their values
SHOWN = {"text/html", "text/plain"}
CHANCE = re.compile(r"(?<=\bT_)[0-9a-f]{5}(?=_|\b)|(?<= at )0x[0-9a-f]+")  # pandas' names of styled tables
NUMBER = ("a number (1e-4 is written 1.0e-4)", (int, float, type(None)))
KINDS = {  # of a parameter's default: what its values are
    bool: ("true or false", (bool,)),
    int: NUMBER,
    float: NUMBER,
    str: ("a text", (str,)),
    list: ("a list", (list,)),
    type(None): ("a text", (str, type(None))),
}


def notebook_names() -> list[str]:
    """All notebooks in reading order."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.py"))


def source(notebook: str) -> Path:
    """The script of a notebook; raises InputError naming those that exist."""
    if notebook not in notebook_names():
        raise InputError(f"unknown notebook {notebook!r}: choose from {', '.join(notebook_names())}")
    return NOTEBOOKS / f"{notebook}.py"


def declared(notebook: str) -> dict[str, Any]:
    """The names and defaults in a notebook's parameters cell; raises InputError when it is not plain values."""
    path = source(notebook)
    _, *cells = path.read_text(encoding="utf-8").split('# %% tags=["parameters"]')
    if len(cells) != 1:
        raise InputError(f"{path} has {len(cells)} cells tagged parameters: there must be one")
    try:
        return {
            statement.targets[0].id: ast.literal_eval(statement.value)
            for statement in ast.parse(cells[0].split("\n# %%", 1)[0]).body
            if isinstance(statement, ast.Assign)
        }
    except (SyntaxError, ValueError, AttributeError) as error:
        reason = str(error).split(" (")[0].split(" on line")[0]
        raise InputError(
            f"{path}: write name = value in the parameters cell, no expressions ({reason})"
        ) from error


def load_profile(profile: str) -> dict[str, dict[str, Any]]:
    """The sections of profiles/<profile>.yaml; raises InputError for an unknown profile, section or key."""
    known = sorted(path.stem for path in PROFILES.glob("*.yaml"))
    if profile not in known:
        raise InputError(f"unknown profile {profile!r}: choose from {', '.join(known)}")
    path = PROFILES / f"{profile}.yaml"
    try:
        sections = yaml.safe_load(path.read_bytes()) or {}
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(sections, dict):
        raise InputError(f"{path} has no sections: write 'common:' and below it indented lines 'name: value'")
    known_keys = {name: set(declared(name)) - {"profile"} for name in notebook_names()}
    known_keys["common"] = set().union(*known_keys.values())
    for section, values in sections.items():
        _check_section(path, section, values or {}, known_keys)
    return {section: values or {} for section, values in sections.items()}


def _check_section(path: Path, section: str, values: Any, known_keys: Mapping[str, set[str]]) -> None:
    if section not in known_keys:
        raise InputError(f"{path}: unknown section {section!r}: choose from {', '.join(known_keys)}")
    if not isinstance(values, dict):
        raise InputError(f"{path}: section {section!r} is {values!r}: write indented lines 'name: value'")
    for key in values:
        if key not in known_keys[section]:
            raise InputError(
                f"{path}: unknown key {key!r} in section {section!r}: choose from "
                f"{', '.join(sorted(known_keys[section]))}"
            )


def parameters(notebook: str, profile: str, settings: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Every parameter of a notebook: its defaults, the profile's values, then `settings`.

    Raises InputError for names that the notebook does not know and values of another kind than the default.
    """
    defaults, sections = declared(notebook), load_profile(profile)
    choices = [name for name in defaults if name != "profile"]
    for name in settings:
        if name not in choices:
            raise InputError(f"{notebook} has no parameter {name!r}: choose from {', '.join(choices)}")
    layers = (sections.get("common", {}), sections.get(notebook, {}), settings)
    chosen = {key: value for layer in layers for key, value in layer.items() if key in choices}
    for name, value in chosen.items():
        wanted, types = KINDS[type(defaults[name])]
        if type(value) not in types:
            raise InputError(f"{notebook}: parameter {name} is {value!r}: give {wanted}")
    return defaults | {"profile": profile} | chosen


def run(notebook: str, profile: str, settings: Mapping[str, Any]) -> Path:
    """Executes a notebook and returns the path of the executed copy; nothing is left there when a cell fails.

    The notebook is executed in the profile's cache/failed/, which it leaves when every cell has run: the copy
    of a failed or killed run stays there, with its traceback. Raises InputError when a cell fails.
    """
    import nbformat

    values = parameters(notebook, profile, settings)
    results = Results(profile)
    name = "-".join([notebook, *(values[key] for key in RUNS_PER if key in values)])
    target = results.notebooks / f"{name}.ipynb"
    unfinished = results.cache / "failed" / f"{name}.ipynb"
    target.unlink(missing_ok=True)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    _execute(source(notebook), unfinished, values)
    write_text(target, nbformat.writes(cleaned(nbformat.read(unfinished, as_version=4))) + "\n")
    unfinished.unlink()
    return target


def _execute(script: Path, path: Path, values: Mapping[str, Any]) -> None:
    import jupytext
    import nbformat
    import papermill

    nbformat.write(jupytext.read(script), path)
    try:
        papermill.execute_notebook(path, path, values, cwd=str(ROOT), progress_bar=False, log_output=True)
    except papermill.PapermillExecutionError as error:
        reason = error.evalue if error.ename == "InputError" else f"{error.ename}: {error.evalue}"
        raise InputError(f"{path.stem}: {' '.join(reason.split())} (executed so far: {path})") from error
    except (
        RuntimeError
    ) as error:  # what nbclient raises when the kernel is gone, mostly killed for its memory
        raise InputError(
            f"{path.stem}: {error}: is there enough memory? (executed so far: {path})"
        ) from error


def cleaned(notebook):
    """The executed notebook without times, chance names, paths and progress bars: it differs when results do."""
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_noise(output)]
            for shown in (output.data for output in cell.outputs if "data" in output):
                shown |= {kind: CHANCE.sub(str(number), shown[kind]) for kind in SHOWN & shown.keys()}
    return notebook


def _is_noise(output: Mapping[str, Any]) -> bool:
    """Whether an output is a warning, a progress bar, or the path that saving a figure returns."""
    shown = output.get("data", {}).get("text/plain", "")
    return output.get("name") == "stderr" or shown.startswith(("PosixPath(", "WindowsPath("))


def imported_modules(path: Path, seen: frozenset[str] = frozenset()) -> set[str]:
    """Names of the modules of this package that a script needs, directly or through one another."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    except SyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}: correct the Python code") from error
    found = {name for node in nodes for name in _imported(node) if module_file(name).exists()} - seen
    for name in sorted(found):
        for file in module_files(name):
            if file.suffix == ".py":
                found |= imported_modules(file, seen | found)
    return found


def _imported(node: ast.AST) -> set[str]:
    """Names of this package's modules that one statement imports; a lazy name stands for the module it is from."""
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
        return {name[1] for name in names if name[0] == PACKAGE.name and len(name) > 1}
    if not isinstance(node, ast.ImportFrom):
        return set()
    package, *module = (node.module or "").split(".")
    if node.level:
        module = [package, *module] if package else []
    elif package != PACKAGE.name:
        return set()
    return {module[0]} if module else _homes(alias.name for alias in node.names)


def module_file(name: str) -> Path:
    """The file of a module or subpackage of this package."""
    folder = PACKAGE / name
    return folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{name}.py"


def module_files(name: str) -> list[Path]:
    """The file of a module, or all code and data of a subpackage."""
    file = module_file(name)
    if file.parent == PACKAGE:
        return [file]
    return sorted(path for path in file.parent.iterdir() if path.is_file())


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
        modules = {path for name in imported_modules(source(notebook)) for path in module_files(name)}
        files = [os.path.relpath(path, ROOT) for path in (source(notebook), *sorted(modules), values)]
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
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: the value is not valid YAML") from error


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
