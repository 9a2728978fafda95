"""One notebook run with one profile: executed copies, failures, scratch runs, the command line."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from studies import Study, error_of

from analysis import run
from analysis.errors import InputError
from analysis.files import ROOT

LOG = "cache/logs/01_first-mrpc.log"


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def execute(study: Study, *cells: str, **settings: object) -> nbformat.NotebookNode:
    """The executed copy of a notebook of these cells."""
    study.notebook("01_first", *cells)
    return read(run.run("01_first", "quick", settings, keep=True))


def printed(notebook: nbformat.NotebookNode) -> str:
    """What the last cell printed."""
    return notebook.cells[-1].outputs[0].text.strip()


CELLS = [
    "import os, sys, pathlib, warnings",
    "print('on the way', file=sys.stderr)\nwarnings.warn('careful')\nprint('result')\nos.write(2, b'from below\\n');",
    "pathlib.Path('/somewhere/figure.png')",
    "1 + 1",
    "import pandas\npandas.DataFrame({'a': [1]}).style.set_properties(color='red')",
    "print(profile, task, n, rate, flag, checkpoint, words, os.getcwd())",
]


def test_profiles_own_run(study: Study, capsys):
    """Times, ids, progress bars and saved paths are in the log, not in the copy, which is the same bytes again."""
    copy = execute(study, *CELLS)
    assert printed(copy) == f"quick mrpc 5 0.0001 False None ['a', 'b'] {ROOT}"
    first, second = capsys.readouterr().out.splitlines()
    assert first == "01_first mrpc started"
    assert re.fullmatch(r"01_first mrpc  \d+ s", second)
    own = ("notebooks/01_first-mrpc.ipynb", LOG, "cache/form", "cache/done/01_first-mrpc")
    assert study.files() == {f"quick/{name}" for name in (*own, "provenance/01_first-mrpc.json")}
    assert copy.cells[2].source == "# Parameters\nn = 5\n"
    outputs = [[o.get("text", o.get("data")) for o in cell.outputs] for cell in copy.cells[4:7]]
    assert outputs == [["result\n"], [], [{"text/plain": "2"}]]
    log = (study.folder / "results/quick" / LOG).read_text()
    assert all(text in log for text in ("on the way", "careful", "result", "from below"))
    path = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    before = path.read_bytes()
    execute(study, *CELLS)
    assert path.read_bytes() == before
    done = study.folder / "results/quick/cache/done/01_first-mrpc"
    assert done.stat().st_mtime_ns < path.stat().st_mtime_ns  # as old as the start of the run
    record = json.loads((study.folder / "results/quick/provenance/01_first-mrpc.json").read_text())
    assert (record["notebook"], record["parameters"]["n"]) == ("01_first", 5)
    assert record["seconds"] > 0


def test_run_with_another_value_leaves_the_results_alone(study: Study, capsys):
    """It goes to a folder of its own and says so; the earlier copy stays."""
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    copy = execute(study, "print(n, words)", n=7, words=["c"])
    assert printed(copy) == "7 ['c']"
    assert target.read_text() == "an earlier run"
    scratch = "scratch/01_first-mrpc-n=7-words=c"
    assert f"{scratch}/notebooks/01_first-mrpc.ipynb" in study.files()
    assert not [name for name in study.files() if "cache/done" in name]
    said = f"01_first mrpc: not a run of make: results go to {study.folder}/results/{scratch}/"
    assert said in capsys.readouterr().out.splitlines()


def test_a_common_parameter_reaches_later_notebooks_in_one_folder(study: Study, monkeypatch):
    """Make says which runs follow; a later one reads what an earlier one has written there."""
    store = "from analysis.study import Results\nimport pandas as pd\nresults = Results(profile)"
    study.notebook("01_first", store, "results.save_table(pd.DataFrame({'n': [n]}), 'first')")
    study.notebook("02_second", store, "print(results.load_table('first').loc[0, 'n'])")
    run.run("01_first", "quick", {}, keep=True)
    told = "python -m analysis.run 01_first-mrpc --profile quick --keep\n"
    told += "python -m analysis.run 02_second-mrpc --profile quick --keep\n"
    asked = []
    done = SimpleNamespace(returncode=0, stdout=told)
    make = SimpleNamespace(run=lambda command, **_: asked.extend(command) or done)
    monkeypatch.setattr(run, "subprocess", make)
    folder = run.run_chain("quick", {"n": 8})
    assert folder.name == "common-n=8"
    assert {path.stem for path in (folder / "notebooks").iterdir()} == {"01_first-mrpc", "02_second-mrpc"}
    assert printed(read(folder / "notebooks" / "02_second-mrpc.ipynb")) == "8"
    assert [word.split("/")[-1] for word in asked if "what-if" in word] == ["01_first.yaml", "02_second.yaml"]
    with pytest.raises(InputError, match="no notebook has a parameter 'taus'"):
        run.run_chain("quick", {"taus": 1})


def test_run_that_another_process_is_doing(study: Study):
    """The second process waits, and does not repeat it."""
    study.notebook("01_first", "import time\ntime.sleep(3)")
    code = f"""
import sys
from pathlib import Path
from analysis.study import profiles
profiles.NOTEBOOKS, profiles.PROFILES = Path({str(study.notebooks)!r}), Path({str(study.profiles)!r})
from analysis.run import main
sys.exit(main(["01_first-mrpc", "--profile", "quick", "--keep"]))
"""
    both = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in "12"
    ]
    said = sorted(process.communicate()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert said[1] == "01_first mrpc: another process is at it: waiting\n"
    assert re.fullmatch(r"01_first mrpc started\n01_first mrpc  \d+ s\n", said[0])


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        ("raise InputError('row 3 is empty: fill it')", "row 3 is empty: fill it"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "Kernel died: is there enough memory?"),
    ],
)
def test_failing_notebook(study: Study, capsys, cell: str, reason: str):
    """One line; nothing is left where the executed copy belongs, not even an earlier good one."""
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    start = "import os, signal\nfrom analysis.errors import InputError\nprint('got here')"
    study.notebook("01_first", start, cell, "print('not here')")
    assert run.main(["01_first-mrpc", "--profile", "quick", "--keep"]) == 1
    log = study.folder / "results/quick" / LOG
    assert capsys.readouterr().err == f"error: 01_first-mrpc: {reason} (details: {log})\n"
    failed = study.folder / "results/quick/cache/failed/01_first-mrpc.ipynb"
    assert study.files() == {
        f"quick/{name}" for name in ("cache/failed/01_first-mrpc.ipynb", LOG, "cache/form")
    }
    assert f"executed so far: {failed}" in log.read_text()
    outputs = [output for c in read(failed).cells for output in c.get("outputs", [])]
    assert "got here\n" in [output.get("text") for output in outputs]


def test_results_of_another_version(study: Study):
    study.notebook("01_first")
    old = study.folder / "results/quick/cache/scores/mrpc.nc"
    old.parent.mkdir(parents=True)
    old.write_text("of an earlier version")
    folder = study.folder / "results/quick/cache"
    assert f"{folder} was made by another version" in error_of(run.run, "01_first", "quick", {})
    (folder / "form").write_text("1\n")
    assert f"{folder} was made by another version" in error_of(run.run, "01_first", "quick", {})


@pytest.mark.parametrize("named", ["01_first", "notebooks/01_first.py"])
def test_settings_are_read_as_yaml_and_a_path_names_a_notebook(study: Study, monkeypatch, named: str):
    seen = {}
    monkeypatch.setattr(
        run, "run", lambda notebook, profile, values, keep: seen.update(values, name=notebook, keep=keep)
    )
    study.notebook("01_first")
    given = ["n=3", "rate=0.5", "task=a=b", "words=[x, y]", "flag=true"]
    options = [part for setting in given for part in ("--set", setting)]
    assert run.main([named, "--profile", "quick", *options]) == 0
    expected = {"n": 3, "rate": 0.5, "task": "a=b", "words": ["x", "y"], "flag": True}
    assert seen == expected | {"name": "01_first", "keep": False}
