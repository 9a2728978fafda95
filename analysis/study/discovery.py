"""What is there to run: the papers, by their folders, and what the header of each notebook says."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import yaml

from analysis.errors import InputError
from analysis.files import ROOT
from analysis.study.profiles import notebook_names, source

PAPERS = ROOT / "analysis" / "papers"
ALL = "all"
FORM = "write study: {paper: NAME, after: [NOTEBOOK, ...]} below 'jupyter:'"


class Header(NamedTuple):
    """What a notebook says of itself: its paper, and the notebooks it comes after.

    `after` maps each of them to the values of `task` or `state` between which the order holds, mostly none. `last`:
    it comes after every notebook that stands before it in the reading order.
    """

    paper: str | None = None
    after: Mapping[str, Mapping[str, str]] = {}
    last: bool = False


def header(notebook: str) -> Header:
    """What the header of a notebook says; raises InputError when it is not of the form or names what is not there."""
    path = source(notebook)
    lines = path.read_text(encoding="utf-8").split("# ---\n", 2)[1:2]
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for part in lines for line in part.split("\n"))
    try:
        study = (yaml.safe_load(text) or {}).get("jupyter", {}).get("study") or {}
        paper, after = study.get("paper"), study.get("after") or []
        unknown = [key for key in study if key not in ("paper", "after")]
        if unknown:
            raise InputError(f"{path}: the header has an unknown key {unknown[0]!r}: {FORM}")
        if after == ALL:
            return Header(paper, {}, last=True)
        pairs = [each.items() if isinstance(each, dict) else [(each, {})] for each in after]
        found = Header(paper, {name: values for pair in pairs for name, values in pair})
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise InputError(f"{path}: the header cannot be read: {FORM}") from error
    _check(notebook, path, found)
    return found


def _check(notebook: str, path: Path, found: Header) -> None:
    names = notebook_names()
    for other in found.after:
        if other not in names[: names.index(notebook)]:
            raise InputError(
                f"{path}: the header names {other!r} in after: choose from the notebooks before this one"
            )


def headers() -> dict[str, Header]:
    """The header of every notebook, in reading order."""
    return {notebook: header(notebook) for notebook in notebook_names()}


def paper_names() -> list[str]:
    """The papers: the folders of `analysis.papers`, in the order of their first notebooks.

    Raises InputError when a notebook names a paper that has no folder.
    """
    folders = sorted(path.parent.name for path in PAPERS.glob("*/__init__.py"))
    found = {name: each.paper for name, each in headers().items() if each.paper}
    for notebook, paper in found.items():
        if paper not in folders:
            raise InputError(f"{source(notebook)}: unknown paper {paper!r}: choose from {', '.join(folders)}")
    return list(dict.fromkeys([*found.values(), *folders]))


def papers() -> dict[str, ModuleType]:
    """The package of every paper, by name: each offers `CLAIMS` and `summary(results)`, its claim table."""
    return {name: import_module(f"{PAPERS.parent.name}.{PAPERS.name}.{name}") for name in paper_names()}
