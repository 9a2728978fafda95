"""The index of a profile's results, and the links between executed notebooks."""

import re
from types import SimpleNamespace

import nbformat
import pytest

from analysis.study import index
from analysis.study.copies import linked
from analysis.study.folders import Folders
from analysis.study.runs import Run

ORDER = ["01_first-mrpc", "02_second", "99_last"]


@pytest.mark.parametrize(
    ("name", "links"),
    [("01_first-mrpc", ["../README.md", "02_second.ipynb"]),
     ("02_second", ["01_first-mrpc.ipynb", "../README.md", "99_last.ipynb"]),
     ("99_last", ["02_second.ipynb", "../README.md"])],
)  # fmt: skip
def test_links_to_the_neighbours(name: str, links: list[str]):
    notebook = linked(nbformat.v4.new_notebook(), name, ORDER)
    assert re.findall(r"\]\((.*?)\)", notebook.cells[-1].source) == links
    nbformat.validate(notebook)


def test_runs_outside_of_the_profile_have_no_links():
    assert not linked(nbformat.v4.new_notebook(), "02_second", []).cells


@pytest.mark.parametrize("profile", ["glue-minilm", "offline"])
def test_committed_index_is_complete(profile: str, monkeypatch):
    """Every notebook and every figure that is committed stands in the index, and every link leads somewhere."""
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    folders = Folders(profile)
    text = (folders.folder / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((.*?)\)", text)
    assert all((folders.folder / link).is_file() for link in links)
    there = {*folders.notebooks.glob("*.ipynb"), *folders.figures.glob("*.png")}
    assert {str(path.relative_to(folders.folder)) for path in there} == {*links}


@pytest.mark.parametrize("profile", ["glue-minilm", "offline"])
def test_committed_verdicts_are_those_of_the_tables(profile: str, monkeypatch):
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    text = (Folders(profile).folder / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^- (\w+: \d.*)$", text, re.MULTILINE) == [*index.verdicts(profile)]


def test_one_claim_is_told_in_the_singular(monkeypatch):
    paper = SimpleNamespace(summary=lambda results: {"verdict": ["holds", "undecided", "undecided"]})
    monkeypatch.setattr(index, "papers", lambda: {"toy": paper})
    assert [*index.verdicts("offline")] == ["toy: 1 holds, 2 undecided"]


def test_figures_stand_under_their_headings(monkeypatch):
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    found = dict(index.figures(Run("03_test", (("task", "mrpc"),)), Folders("glue-minilm")))
    assert found["F4-assignment-mrpc"] == "F4. Heads and roles"
    assert found["F9-p-values-mrpc"].startswith("F9")
