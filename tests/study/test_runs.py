"""Runs: names, changed values, and what a notebook knows of the run it is in."""

import sys
from types import SimpleNamespace

import pytest
from studies import PARAMETERS, Study, error_of

from analysis.study.results import Results
from analysis.study.runs import Run, current_run, parse_name, run_of

OWN = {"profile": "quick", "task": "mrpc", "n": 5, "rate": 1e-4, "flag": False, "checkpoint": None}
OWN["words"] = ["a", "b"]


def test_only_make_keeps_and_only_the_values_of_the_profile(study: Study):
    study.notebook("01_first")
    assert run_of("01_first", OWN | {"task": "qnli"}, keep=True).scratch is None
    assert run_of("01_first", OWN | {"n": 6}, keep=True).scratch == "01_first-mrpc-n=6"


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("01_extract-mrpc", "01_extract-mrpc-pretrained, 01_extract-mrpc-finetuned"),
        ("03_test_all-mrpc", "03_test_all"),
        ("03_test-mprc", "03_test-mrpc, 03_test-qqp, "),
        ("01_extract-sst-2-trained", "01_extract-mrpc-pretrained, 01_extract-mrpc-finetuned, "),
    ],
)
def test_names_that_no_run_has(name: str, choices: str):
    assert error_of(parse_name, name).startswith(f"there is no run {name}: choose from {choices}")


def test_names_of_runs():
    assert parse_name("01_extract-sst-2-finetuned") == ("01_extract", {"task": "sst-2", "state": "finetuned"})
    assert parse_name("01_extract") == ("01_extract", {})


def test_other_values_have_other_folders(study: Study):
    """A digest distinguishes runs with long lists or with characters that a folder's name cannot have."""
    study.notebook("01_first")
    values = ("a/b", "a_b", "a b", ["a b"], "x" * 200, "x" * 201, "../../etc")
    names = {run_of("01_first", OWN | {"checkpoint": value}).scratch for value in values}
    assert len(names) == 7
    assert not [name for name in names if "/" in name or len(name) > 120]


def test_script(study: Study):
    assert current_run("quick") == Run("python", {"profile": "quick"}, "python")
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
    run = current_run("quick")
    assert run.scratch == "01_first-qnli"
    assert (run.notebook, run.parameters["task"]) == ("01_first", "qnli")
    jupyter.update(n=7)
    assert Results("quick").folder == study.folder / "results/scratch/01_first-qnli-n=7"
    line = f"what this session saves goes to {study.folder}/results/scratch/01_first-qnli-n=7/\n"
    assert capsys.readouterr().out == line
