"""What Make needs to know of a profile: `python -m analysis.rules --profile P` writes it to the profile's cache."""

import argparse
import ast
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from .errors import InputError, exit_status
from .profiles import notebook_names, parameters, profile_tasks, source
from .store import ROOT, Results, write_text

PACKAGE = Path(__file__).parent


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
    lines = [f"TASKS := {' '.join(profile_tasks(profile))}"]
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


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.rules", description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="offline")
    profile = parser.parse_args(arguments).profile
    return exit_status(lambda: write_rules(profile))


if __name__ == "__main__":
    sys.exit(main())
