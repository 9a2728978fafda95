"""The files of this package on which a script depends: modules that it imports, also indirectly, and their data."""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

from analysis.errors import InputError
from analysis.files import ROOT
from analysis.study import discovery

PACKAGE = "analysis"
OFFERED = {"CLAIMS", "highlights", "summary"}  # names that the package of each paper offers
NO_DATA = {".py", ".pyc", ".md"}


def files_of(script: Path) -> tuple[Path, ...]:
    """The files of this package that a script needs, in order of their paths.

    A name that a package loads on first use counts as an import of its module. A module that mentions `__file__`
    depends on the data files beside it. A script that finds the papers depends on the names that each of them offers.
    Raises InputError for code that is not Python.
    """
    found: set[Path] = set()
    waiting = {script}
    while waiting:
        found |= waiting
        waiting = set().union(*map(_needs, waiting)) - found
    return tuple(sorted(found - {script}))


@cache  # many scripts need the same modules
def _needs(path: Path) -> frozenset[Path]:
    """The modules that the import statements of a module name, and its data."""
    if path.suffix != ".py":
        return frozenset()
    try:
        nodes = [*ast.walk(ast.parse(path.read_bytes(), str(path)))]
    except SyntaxError as error:
        raise InputError(
            f"{error.filename}, line {error.lineno}: {error.msg}: correct the Python code"
        ) from error
    sources = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {f"{source.module}.{each.name}" for source in sources for each in source.names}
    names |= {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    if path == Path(discovery.__file__):
        names |= {f"{package}.{name}" for package in discovery.packages().values() for name in OFFERED}
    found = {file for name in names for file in _modules(name)}
    if any(isinstance(node, ast.Name) and node.id == "__file__" for node in nodes):
        found |= {file for file in path.parent.iterdir() if file.is_file() and file.suffix not in NO_DATA}
    return frozenset(found)


@cache
def _modules(name: str) -> frozenset[Path]:
    """The file of a dotted name of this package, and those of the packages around it; none for other names."""
    parent, _, last = name.rpartition(".")
    around = _modules(parent) if parent else frozenset()
    place = ROOT.joinpath(*name.split("."))
    file = next(filter(Path.is_file, (place / "__init__.py", place.with_suffix(".py"))), None)
    if file and (around or name == PACKAGE):
        return around | {file}
    if place.parent / "__init__.py" in around:
        homes = getattr(import_module(parent), "HOMES", {})
        return _modules(f"{parent}.{homes[last]}") if last in homes else around
    return around
