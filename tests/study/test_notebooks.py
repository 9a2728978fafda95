"""Rules that every notebook keeps, so that each reads well, and runs anywhere with any profile."""

import ast
import re
import sys
import tomllib
from fnmatch import fnmatchcase
from importlib.metadata import packages_distributions

import jupytext
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from studies import runs_of, saved

from analysis.files import ROOT
from analysis.study.parameters import declared, notebook_names, source
from analysis.study.profiles import not_run, parameters

NOTEBOOKS = notebook_names()
# The notebooks of every paper, by their numbers; those of the study itself come first.
NUMBERS = {
    "study": "00_|01_|12_|98_|99_",
    "pande2021": "02_|03_|04_",
    "clark2019": "05_",
    "michel2019": "06_",
}
NUMBERS |= {"kovaleva2019": "07_", "pascual2021": "08_", "niven2019": "09_", "synthesis": "10_|11_"}
PAPERS = {paper: [name for name in NOTEBOOKS if re.match(start, name)] for paper, start in NUMBERS.items()}
PROFILES = sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))


@pytest.fixture(params=NOTEBOOKS)
def notebook(request) -> str:
    return request.param


def test_every_notebook_belongs_to_a_paper_or_to_the_study():
    assert sorted(name for names in PAPERS.values() for name in names) == NOTEBOOKS


def test_saving_in_jupyter_changes_nothing(notebook: str):
    """Below the header, jupytext writes exactly what it has read."""
    text = source(notebook).read_text(encoding="utf-8")
    written = jupytext.writes(jupytext.reads(text, "py:percent"), "py:percent")
    assert written.split("# ---\n", 2)[2] == text.split("# ---\n", 2)[2]


def test_parameters_are_plain_values_in_the_first_code_cell(notebook: str):
    """A value computed from others would keep its default when papermill sets those others."""
    cells = jupytext.read(source(notebook)).cells
    cell = cells[1]
    assert [item for item in cells if "parameters" in item.metadata.get("tags", [])] == [cell]
    statements = ast.parse(cell.source).body
    assert all(isinstance(statement, ast.AnnAssign) for statement in statements)
    defaults = {statement.target.id: ast.literal_eval(statement.value) for statement in statements}
    assert defaults == declared(notebook)
    assert len(defaults) == len(statements)
    assert next(iter(defaults.items())) == ("profile", "offline")


def test_defaults_are_those_of_the_profile_offline(notebook: str):
    """Run All in Jupyter then does what `make reproduce` does."""
    assert parameters(notebook, "offline") == declared(notebook)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_notebooks_of_a_paper_share_their_parameters(paper: str):
    """Papers differ in their tasks, sizes and recipes; a question may leave tasks out or name others."""
    for profile in PROFILES:
        values: dict[str, set[str]] = {}
        for name in {*PAPERS[paper]} - {*not_run(profile)}:
            for key, value in parameters(name, profile).items():
                values.setdefault(key, set()).add(repr(value))
        different = {key for key, shared in values.items() if len(shared) > 1}
        assert different <= {"tasks"}, profile


@pytest.mark.parametrize("profile", PROFILES)
def test_every_notebook_runs(profile: str):
    """An undefined variable of the Makefile is an empty list, and its runs would silently be missing."""
    assert {run.split("-")[0] for run in runs_of(profile)} == {*NOTEBOOKS} - {*not_run(profile)}


def imported(folder: str) -> set[str]:
    """Distributions that the files of a folder import, the standard library and the study itself left out."""
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.split(".")[0])
    homes = packages_distributions()
    outside = names - set(sys.stdlib_module_names) - {"analysis"}
    return {canonicalize_name(homes[name][0]) for name in outside}


@pytest.mark.parametrize("folder", ["analysis", "notebooks"])
def test_imported_packages_are_dependencies(folder: str):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = project["dependencies"] + project["optional-dependencies"]["ray"]
    assert imported(folder) - {canonicalize_name(Requirement(text).name) for text in texts} == set()


def test_figures_of_the_papers_are_among_those_that_notebooks_save():
    names = {name for notebook in notebook_names() for part in saved(notebook, "figure") for name in part}
    linked = re.findall(r"figures/([\w-]+)\.png", (ROOT / "docs" / "figures.md").read_text(encoding="utf-8"))
    assert [figure for figure in linked if not any(fnmatchcase(figure, name) for name in names)] == []
    assert len(names - {"F0-training-*"}) <= 90  # git ignores the figures of training


def test_every_finding_is_shown(notebook: str):
    """Jupyter shows the last expression of a cell, and nothing else that is not displayed."""
    for cell in jupytext.read(source(notebook)).cells:
        tree = ast.parse(cell.source if cell.cell_type == "code" else "")
        silent = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            silent.remove(tree.body[-1].value)
        calls = [ast.unparse(node.func) for node in silent if isinstance(node, ast.Call)]
        assert {"finding", "Markdown"}.isdisjoint(calls), cell.source
