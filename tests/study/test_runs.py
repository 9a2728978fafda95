import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jupytext
import nbformat
import pandas as pd
import pytest
from studies import Study, error_of

from analysis.files import ROOT
from analysis.run import run
from analysis.study import sessions
from analysis.study.parameters import notebook_names, source
from analysis.study.results import Results
from analysis.study.runs import results_folder


@pytest.fixture(autouse=True)
def _make(monkeypatch) -> None:
    """Nobody asks Make what is older than the code."""
    monkeypatch.setattr(sessions, "print_older_runs", lambda *_: None)


def test_a_value_cannot_name_a_folder_elsewhere(study: Study):
    study.notebook("01_first")
    message = error_of(run, "01_first", "quick", {"task": "../../etc"})
    assert message.startswith("there is no run 01_first-../../etc: choose from 01_first-mrpc, ")


COPY = "results/offline/notebooks/03_test-toy-qqp.ipynb"
SET_UP = 2  # the second code cell of a notebook, after prose and parameters


@pytest.mark.parametrize(
    ("session", "variables", "name"),
    [
        ("notebooks/03_test.py", {}, "03_test-toy-mrpc"),
        ("notebooks/03_test.py", {"task": "toy-qqp"}, "03_test-toy-qqp"),
        (COPY, {"task": "toy-qqp"}, "03_test-toy-qqp"),
        ("notebooks/04_compare.py", {}, "04_compare"),
        ("my-own.ipynb", {}, "my-own"),
        (None, {"__vsc_ipynb_file__": "/home/me/heads/notebooks/01_extract.ipynb"}, "01_extract-toy-mrpc-pretrained"),
        (None, {"In": ["", "task = 'toy-qqp'", "03_test"], "task": "toy-qqp"}, "03_test-toy-qqp"),
        (None, {"In": ["", "04_compare"]}, "04_compare"),
        (None, {"In": ["", "1 + 1"]}, "python"),
        (None, {}, "python"),
    ],
)  # fmt: skip
def test_sessions_write_to_a_folder_of_the_notebook_and_its_task(
    tmp_path, monkeypatch, session: str | None, variables: dict, name: str
):
    """In JupyterLab, VS Code, and under papermill or nbconvert, where only the executed cells name the notebook."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if session:
        monkeypatch.setenv("JPY_SESSION_NAME", f"/home/me/heads/{session}")
    known = {*notebook_names()}
    cells = [set_up(cell) if cell in known else cell for cell in variables.get("In", [])]
    shell = SimpleNamespace(user_ns=variables | {"In": cells})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    results = Results("offline")
    assert results.folder == tmp_path / "scratch" / name
    assert results.run.parameters["profile"] == "offline"
    path = results.save_table(pd.DataFrame({"n": [1]}), "some")
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]  # and no provenance


@pytest.mark.parametrize(
    ("file", "copied", "name"),
    [
        ("03_test-Copy1", "workbook", "03_test-Copy1-toy-mrpc"),  # JupyterLab's Duplicate
        ("mine", "workbook", "mine-toy-mrpc"),
        ("02_score", "workbook", "02_score-toy-mrpc"),  # the name of another notebook
        ("03_test-toy-mrpc-Copy1", "executed", "03_test-toy-mrpc-Copy1"),
        ("03_test", None, "03_test"),  # a notebook of one's own
        ("03_test", "damaged", "03_test-toy-mrpc"),
    ],
)
def test_a_copy_is_known_by_its_code_and_has_a_folder_of_its_name(
    tmp_path: Path, monkeypatch, file: str, copied: str | None, name: str
):
    """Its values are checked like those of the notebook."""
    path = tmp_path / f"{file}.ipynb"
    notebook = jupytext.read(source("03_test"))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    code[0].source = code[0].source.replace("3.0", "2.5") + "\nmore = 1"
    if copied == "executed":
        notebook.cells.insert(2, nbformat.v4.new_code_cell("tau = 2.5"))
    if copied is None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    path.write_text("{" if copied == "damaged" else nbformat.writes(notebook))
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    variables = {"In": []}
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(user_ns=variables))
    )
    assert Results("offline").folder == tmp_path / "scratch" / name
    variables["tau"] = -5
    if copied:
        assert error_of(Results, "offline").startswith("03_test: parameter tau is -5: give more than 0")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("tau", -1, "give more than 0"),
        ("seeds", [0, 0], "name nothing twice"),
        ("relations", ["nosuch"], "choose from acl, "),
        ("tau", "3", "give float"),
        ("seeds", 0, "give list[int]"),
    ],
)
def test_sessions_check_the_values_that_a_reader_has_typed(monkeypatch, name: str, value: object, words: str):
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/me/heads/workbook/03_test.ipynb")
    shell = SimpleNamespace(user_ns={name: value, "In": []})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    message = error_of(Results, "offline")
    assert message.startswith(f"03_test: parameter {name} is {value!r}: {words}")


def set_up(notebook: str) -> str:
    cells = [cell.source for cell in jupytext.read(source(notebook)).cells if cell.cell_type == "code"]
    return cells[SET_UP - 1]


def test_an_error_in_a_notebook_is_one_line():
    code = "from analysis.errors import InputError\nraise InputError('row 3 is empty: fill it')"
    command = [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout + done.stderr).strip() == "error: row 3 is empty: fill it"


@pytest.mark.parametrize(
    ("value", "folder"),
    [("", "results"), ("/elsewhere", "/elsewhere"), ("mine", "docs/mine"), ("~/mine", "/home/a/mine")],
)
def test_folder_of_results(monkeypatch, value: str, folder: str):
    """An empty variable names none; a relative path is that of the shell, and ~ the user's folder."""
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.chdir(ROOT / "docs")
    monkeypatch.setenv("RESULTS_DIR", value)
    assert results_folder() == ROOT / folder
