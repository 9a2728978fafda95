"""The papers and the synthesis, found by their folders, and the header of each notebook."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import yaml

from analysis.errors import InputError
from analysis.files import ROOT
from analysis.study.profiles import notebook_names, source

PAPERS = ROOT / "analysis" / "papers"
# The questions across papers: this folder stands beside theirs, and the synthesis counts as one of them.
SYNTHESIS = "synthesis"
ALL = "all"
FORM = "write study: {paper: NAME, after: [NOTEBOOK, ...]} below 'jupyter:'"


class Header(NamedTuple):
    """The paper of a notebook, and the notebooks it needs.

    `after` maps each of these to the runs that need it: {task: mrpc} means the runs with that task, nothing means all.
    A notebook that is `last` needs every notebook before it in the reading order.
    """

    paper: str | None = None
    after: Mapping[str, Mapping[str, str]] = {}
    last: bool = False


def header(notebook: str) -> Header:
    """The header of a notebook; raises InputError if it has another form or names a later notebook."""
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
    before = [name for name in notebook_names() if name < notebook]
    for other in found.after:
        if other not in before:
            raise InputError(
                f"{path}: the header names {other!r} in after: choose from the notebooks before this one"
            )
    return found


def headers() -> dict[str, Header]:
    """The header of every notebook, in reading order."""
    return {notebook: header(notebook) for notebook in notebook_names()}


def packages() -> dict[str, str]:
    """The package of every paper, and of the synthesis, by the name of its folder."""
    there = sorted(PAPERS.glob("*/__init__.py"))
    found = {path.parent.name: f"{PAPERS.parent.name}.{PAPERS.name}.{path.parent.name}" for path in there}
    return found | {SYNTHESIS: f"{PAPERS.parent.name}.{SYNTHESIS}"}


def paper_names() -> list[str]:
    """The folders of `analysis.papers`, and the synthesis, in the order of their first notebooks.

    Raises InputError if a notebook names a paper without a folder.
    """
    folders = packages()
    found = {name: each.paper for name, each in headers().items() if each.paper}
    for notebook, paper in found.items():
        if paper not in folders:
            raise InputError(f"{source(notebook)}: unknown paper {paper!r}: choose from {', '.join(folders)}")
    return list(dict.fromkeys([*found.values(), *folders]))


def papers() -> dict[str, ModuleType]:
    """The package of every paper by its name; each offers `CLAIMS` and `summary(results)`, its claim table."""
    homes = packages()
    return {name: import_module(homes[name]) for name in paper_names()}
