"""Runs: names, changed values, and what a notebook knows of the run it is in."""

import sys
from types import SimpleNamespace

import pytest
from studies import PARAMETERS, Study

from analysis.study import runs
from analysis.study.results import Results
from analysis.study.runs import Context, Run, announced, changes, context, run_of, scratch_name

RUN = Run("03_test", (("task", "mrpc"),))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "03_test-mrpc"),
        ({"tau": 2.5}, "03_test-mrpc-tau=2.5"),
        ({"tau": 2.5, "relations": ["nsubj", "dobj"]}, "03_test-mrpc-tau=2.5-relations=nsubj+dobj"),
        ({"checkpoint": None}, "03_test-mrpc-checkpoint=None"),
    ],
)
def test_folder_of_a_scratch_run(changed: dict, name: str):
    assert scratch_name(RUN, changed) == name


def test_other_values_have_other_folders():
    """A digest distinguishes runs with long lists or with characters that a folder's name cannot have."""
    names = {
        scratch_name(RUN, {"source": value})
        for value in ("a/b", "a_b", "a b", ["a b"], "x" * 200, "x" * 201, "../../etc")
    }
    assert len(names) == 7
    assert not [name for name in names if "/" in name or len(name) > 120]


def test_changes_are_those_from_the_profile(study: Study):
    study.notebook("01_first")
    own = {"profile": "quick", "task": "qnli", "n": 5, "rate": 1e-4, "flag": False, "checkpoint": None}
    assert changes("01_first", "quick", own | {"words": ["a", "b"]}) == {}
    assert changes("01_first", "quick", own | {"words": ["a"], "n": 3}) == {"n": 3, "words": ["a"]}


def test_announced_run(study: Study, monkeypatch):
    told = Context("01_first", {"n": [1, None, "é"]}, None)
    monkeypatch.setenv(*announced(told).popitem())
    assert context("quick") == told
    assert Results("quick").folder == study.folder / "results/quick"


def test_script(study: Study):
    assert context("quick") == Context("python", {"profile": "quick"}, "python")
    assert Results("quick").folder == study.folder / "results/scratch/python"


@pytest.fixture
def jupyter(study: Study, monkeypatch) -> dict:
    """What a session of Jupyter looks like from inside; the names that its cells have set."""
    study.notebook("01_first", parameters=PARAMETERS)
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=True))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    names = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "__main__", names)
    return vars(names)


def test_jupyter_writes_to_scratch_whatever_the_values_are(study: Study, jupyter: dict, monkeypatch, capsys):
    monkeypatch.setenv("JPY_SESSION_NAME", str(study.notebooks / "01_first.py"))
    jupyter.update(profile="quick", task="qnli", n=5, words=["a", "b"])
    found = context("quick")
    assert found.scratch == "01_first-qnli"
    assert (found.notebook, found.parameters["task"]) == ("01_first", "qnli")
    jupyter.update(n=7)
    assert Results("quick").folder == study.folder / "results/scratch/01_first-qnli-n=7"
    line = f"what this session saves goes to {study.folder}/results/scratch/01_first-qnli-n=7/\n"
    assert capsys.readouterr().out == line


@pytest.mark.parametrize("session", ["", "Untitled.ipynb", "3f2b-unnamed"])
def test_jupyter_that_does_not_tell_its_notebook(jupyter: dict, monkeypatch, session: str):
    monkeypatch.setenv("JPY_SESSION_NAME", session)
    assert context("quick") == Context("jupyter", {"profile": "quick"}, "jupyter")


def test_name_of_a_run():
    run = run_of("01_read", {"state": "finetuned", "n": 3, "task": "sst-2"})
    assert run == Run("01_read", (("task", "sst-2"), ("state", "finetuned")))
    assert run.name == "01_read-sst-2-finetuned"
    assert run_of("05_free", {"n": 3}).name == "05_free"
    assert not runs.in_jupyter()
