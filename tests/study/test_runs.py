"""Runs: names, and what a notebook knows of the run it is in."""

import pytest
from studies import Study, error_of

from analysis.run import run
from analysis.study.profiles import parse_name
from analysis.study.results import Results, current_run
from analysis.study.runs import Run


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("01_extract-mrpc", "01_extract-mrpc-pretrained, 01_extract-mrpc-finetuned"),
        ("03_test_all-mrpc", "03_test_all"),
        ("03_test-mprc", "03_test-mrpc, 03_test-qqp, "),
    ],
)
def test_names_that_no_run_has(name: str, choices: str):
    assert error_of(parse_name, name).startswith(f"there is no run {name}: choose from {choices}")


def test_names_of_runs():
    assert parse_name("01_extract-sst-2-finetuned") == ("01_extract", {"task": "sst-2", "state": "finetuned"})
    assert parse_name("01_extract") == ("01_extract", {})


def test_a_value_cannot_name_a_folder_elsewhere(study: Study):
    study.notebook("01_first")
    message = error_of(run, "01_first", "quick", {"task": "../../etc"})
    assert message.startswith("there is no run 01_first-../../etc: choose from 01_first-mrpc, ")


def test_sessions_write_to_scratch(study: Study, monkeypatch):
    """A session of Jupyter has the name of its notebook."""
    assert current_run("quick") == Run("python", {"profile": "quick"}, "python")
    monkeypatch.setenv("JPY_SESSION_NAME", str(study.notebooks / "01_first.py"))
    assert Results("quick").folder == study.folder / "results/scratch/01_first"
