"""Which files of this package a script depends on: modules, however indirectly imported, and the data they read."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from modulefinder import Module, ModuleFinder
from pathlib import Path

from analysis.errors import InputError
from analysis.files import ROOT

PACKAGE = "analysis"
FINDS_PAPERS = f"{PACKAGE}.study.discovery"
OFFERED = {"CLAIMS", "summary"}  # by the package of each paper
NO_DATA = {".py", ".pyc", ".md"}


@cache
def files_of(script: Path) -> tuple[Path, ...]:
    """The files of this package that a script needs, in order of their paths.

    A name that a package loads on first use stands for the module it lives in. A module that mentions `__file__`
    reads the data files beside it. A script that finds the papers reads what each offers the summary. Raises
    InputError for code that cannot be read.
    """
    finder = ModuleFinder(path=[str(ROOT)])
    try:
        finder.run_script(str(script))
        _follow_lazy_names(finder)
        _follow_papers(finder)
    except SyntaxError as error:
        raise InputError(
            f"{error.filename}, line {error.lineno}: {error.msg}: correct the Python code"
        ) from error
    modules = [module for name, module in finder.modules.items() if name.split(".")[0] == PACKAGE]
    return tuple(sorted({path for module in modules for path in _files(module)}))


def _follow_lazy_names(finder: ModuleFinder) -> None:
    """Imports the homes of names that the finder took for missing submodules, until no name is new."""
    followed: set[str] = set()
    while waiting := {name for name in finder.badmodules if name.split(".")[0] == PACKAGE} - followed:
        followed |= waiting
        for missing in waiting:
            package, _, name = missing.rpartition(".")
            homes = getattr(import_module(package), "HOMES", {}) if package in finder.modules else {}
            if name in homes:
                finder.import_hook(f"{package}.{homes[name]}")


def _follow_papers(finder: ModuleFinder) -> None:
    """Imports what every paper offers where `papers()` can be called, which names no paper."""
    if FINDS_PAPERS in finder.modules:
        for path in (ROOT / PACKAGE / "papers").glob("*/__init__.py"):
            package = f"{PACKAGE}.papers.{path.parent.name}"
            homes = import_module(package).HOMES
            for name in OFFERED & homes.keys():
                finder.import_hook(f"{package}.{homes[name]}")
        _follow_lazy_names(finder)


def _files(module: Module) -> Iterator[Path]:
    path = Path(module.__file__)
    yield path
    if module.__code__ is not None and "__file__" in module.__code__.co_names:
        yield from (file for file in path.parent.iterdir() if file.is_file() and file.suffix not in NO_DATA)
