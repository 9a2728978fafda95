"""One notebook run with one profile: executed copies, failures, scratch runs, the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from studies import Study, error_of, shell_script

from analysis import run
from analysis.files import ROOT

STORE = """
import os, signal
import matplotlib.pyplot as plt
import pandas as pd
from analysis.errors import InputError
from analysis.study.results import Results
results = Results(profile)
"""
SAVE = "results.save_table(pd.DataFrame({'n': [n]}), 'first')"
DRAW = "results.save_figure(plt.subplots()[0], 'F1', 'A caption.')"
LOCK = "cache/locks/01_first-mrpc.lock"
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
    "print(profile, task, n, rate, flag, checkpoint, words, os.environ['OMP_WAIT_POLICY'], os.getcwd())",
]


def test_profiles_own_run(study: Study, capsys, monkeypatch):
    """Times, ids, progress bars and saved paths are in the log, not in the copy, which is the same bytes again."""
    foreign = study.folder / "kernels/python3/kernel.json"  # of another Python, which Jupyter finds first
    foreign.parent.mkdir(parents=True)
    foreign.write_text(json.dumps({"argv": ["false"], "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(study.folder))
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    copy = execute(study, *CELLS)
    assert printed(copy) == f"quick mrpc 5 0.0001 False None ['a', 'b'] passive {ROOT}"
    first, second = capsys.readouterr().out.splitlines()
    assert first == "01_first-mrpc started"
    assert re.fullmatch(r"01_first-mrpc  \d+ s", second)
    names = ("notebooks/01_first-mrpc.ipynb", LOG, LOCK, "cache/form", "cache/done/01_first-mrpc")
    assert study.files() == {f"quick/{name}" for name in (*names, "provenance/01_first-mrpc.json")}
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


def test_run_with_another_value_leaves_the_results_alone(study: Study, capsys, caplog):
    """It goes to a folder of its own and says so. Values are YAML, and a path names a notebook too."""
    before = earlier_results(study)
    study.notebook("01_first", "print(n, words, checkpoint)")
    settings = ("--set", "n=7", "--set", "words=[c]", "--set", "checkpoint=a=b", "--keep")
    assert run.main(["notebooks/01_first.py", "--profile", "quick", *settings]) == 0
    scratch = study.folder / "results/scratch/01_first-mrpc"
    assert printed(read(scratch / "notebooks/01_first-mrpc.ipynb")) == "7 ['c'] a=b"
    assert not caplog.records
    assert results(study) == before
    assert not (study.folder / "results/quick/cache/done").exists()
    assert f"01_first-mrpc started: results go to {scratch}/" in capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_nothing_of_the_users_environment_acts(study: Study, monkeypatch, capsys):
    """Start-up files, a backend without pictures, a part of a cluster, another package; results lie where they should.

    Their folder is relative, and has a space and braces, which papermill would fill in.
    """
    (study.folder / "profile_default/startup").mkdir(parents=True)
    (study.folder / "other/analysis").mkdir(parents=True)
    for name in ("profile_default/startup/0.py", "start.py", "other/analysis/__init__.py"):
        (study.folder / name).write_text("leaked = True\n")
    values = {"IPYTHONDIR": study.folder, "PYTHONSTARTUP": study.folder / "start.py", "MPLBACKEND": "Agg"}
    values |= {"LOCAL_RANK": 0, "PYTHONPATH": study.folder / "other", "RESULTS_DIR": "my {n} results"}
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(study.folder)
    look = "import os, matplotlib.pyplot as plt, analysis\n"
    look += (
        "print('leaked' in globals(), os.environ.get('LOCAL_RANK'), analysis.HOMES != {}, plt.get_backend())"
    )
    study.notebook("01_first", STORE, SAVE, look)
    path = run.run("01_first", "quick", {}, keep=True)
    assert re.fullmatch("False None True .*inline.*", printed(read(path)))
    assert path == study.folder / "my {n} results/quick/notebooks/01_first-mrpc.ipynb"
    assert (path.parents[1] / "tables/first.csv").exists()


@pytest.mark.parametrize(
    ("setting", "words"),
    [("n", "'n' has no value: write n=..."), ("n=[1", "n is not valid YAML: while parsing")],
)
def test_wrong_settings_are_one_line(study: Study, capsys, setting: str, words: str):
    study.notebook("01_first")
    assert run.main(["01_first", "--set", setting]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


@pytest.mark.slow
def test_cost_of_a_run(study: Study):
    """CPU seconds of the kernel and of what it starts; where all was cached, the cost of the run before it stays."""
    burn = "import time\nwhile time.process_time() < 3: pass"
    first = f"made = Path({str(study.folder / 'made')!r})\nburnt = made.exists()\nmade.touch()"
    made = f"cached(Path({str(study.folder)!r}), 'some', 1, lambda: xr.Dataset({{'a': 1}}))"
    names = "from pathlib import Path\nimport xarray as xr\nfrom analysis.cache import cached"
    study.notebook(
        "01_first",
        f"import subprocess, sys\n{names}\n{first}",
        f"burnt or exec({burn!r})",
        f"burnt or subprocess.run([sys.executable, '-c', {burn!r}])",
        made,
    )
    records = []
    for _ in range(2):
        run.run("01_first", "quick", {}, keep=True)
        path = study.folder / "results/quick/provenance/01_first-mrpc.json"
        records.append(json.loads(path.read_text()))
    assert [record["cached"] for record in records] == [False, True]
    assert records[0]["cpu_seconds"] > records[1]["cpu_seconds"] + 3
    assert {record["whole_cpu_seconds"] for record in records} == {records[0]["cpu_seconds"]}


def start(study: Study, moves: int = -1, **environment: str) -> subprocess.Popen:
    """The kept run of the first notebook in a process of its own, which is killed after some moves of its results."""
    code = f"""
import itertools, os, signal, sys
from pathlib import Path
from analysis.study import profiles, runs
replace, count = os.replace, itertools.count()
def counted(source, target):
    if "running" in Path(source).parts and "running" not in Path(target).parts and next(count) == {moves}:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = counted
runs.NOTEBOOKS, profiles.PROFILES = Path({str(study.notebooks)!r}), Path({str(study.profiles)!r})
from analysis.run import main
sys.exit(main(["01_first-mrpc", "--profile", "quick", "--keep"]))
"""
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
def test_run_that_another_process_is_doing(study: Study):
    """The second process waits, and does not repeat it."""
    study.notebook("01_first", "import time\ntime.sleep(3)")
    both = [start(study) for _ in "12"]
    outputs = sorted(process.communicate()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[1] == "01_first-mrpc: waiting for another process that runs it\n"
    assert re.fullmatch(r"01_first-mrpc started\n01_first-mrpc  \d+ s\n", outputs[0])


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        pytest.param("raise ValueError('two\\nlines')", "ValueError: two lines", marks=pytest.mark.slow),
        ("raise InputError('row 3 is empty: fill it')", "row 3 is empty: fill it"),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGKILL)",
            "Kernel died: is there enough memory?",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_failing_notebook(study: Study, capsys, cell: str, reason: str):
    """One line; the results of the run before stay, and those of the failed one can be looked at."""
    before = earlier_results(study)
    study.notebook("01_first", STORE, SAVE, "print('got here')", cell, "print('no')")
    assert run.main(["01_first-mrpc", "--profile", "quick", "--keep"]) == 1
    log = study.folder / "results/quick" / LOG
    assert capsys.readouterr().err == f"error: 01_first-mrpc: {reason} (details: {log})\n"
    assert results(study) == before
    failed = study.folder / "results/quick/cache/running/01_first-mrpc"
    assert f"its results so far: {failed}" in log.read_text()
    assert (failed / "tables/first.csv").read_text() == "n\n5\n"
    copy = read(failed / "notebooks/01_first-mrpc.ipynb")
    outputs = [output for c in copy.cells for output in c.get("outputs", [])]
    assert "got here\n" in [output.get("text") for output in outputs]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["inline", "Agg"])
def test_a_saved_figure_stands_above_its_caption_once(study: Study, backend: str):
    copy = execute(study, STORE, f"plt.switch_backend({backend!r})\n{DRAW}\nprint('below')")
    picture, caption, below = copy.cells[-1].outputs
    assert picture.metadata["image/png"]["alt"] == caption.data["text/markdown"] == "A caption."
    assert below.text == "below\n"


def earlier_results(study: Study) -> dict[str, bytes]:
    """The results of a run before, which a profile keeps in git."""
    for name in ("notebooks/01_first-mrpc.ipynb", "tables/first.csv", "provenance/01_first-mrpc.json"):
        path = study.folder / "results/quick" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("an earlier run")
    return results(study)


def results(study: Study) -> dict[str, bytes]:
    """The files of the profile outside of its cache."""
    folder = study.folder / "results/quick"
    files = (path for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.parametrize(("signum", "cells_done"), [(signal.SIGINT, 2), (signal.SIGKILL, 3)])
def test_stopped_run(study: Study, signum: int, cells_done: int):
    """Wherever it is stopped, the results of the run before stay, and the next run replaces them all."""
    before = earlier_results(study)
    wait = "import time\ntime.sleep(3600)"
    cells = [STORE, SAVE, DRAW, "print('done')"]
    study.notebook("01_first", *cells[:cells_done], "print('waits', flush=True)", wait, *cells[cells_done:])
    process = start(study)
    log = study.folder / "results/quick" / LOG
    deadline = time.monotonic() + 3600
    while time.monotonic() < deadline and not (log.exists() and "waits" in log.read_text()):
        time.sleep(0.05)
    process.send_signal(signum)
    process.communicate()
    assert process.returncode == (130 if signum == signal.SIGINT else -signum)
    assert results(study) == before
    study.notebook("01_first", *cells)
    run.run("01_first", "quick", {}, keep=True)
    after = results(study)
    assert set(after) == {*before, "figures/F1.png"}
    assert not [name for name in before if after[name] == before[name]]


@pytest.mark.slow
@pytest.mark.parametrize("moves", [1, 3])
def test_run_that_is_killed_while_its_files_move(study: Study, moves: int, capsys):
    """The next call moves the others and does not repeat the run; the record comes last, before the stamp of Make."""
    before = earlier_results(study)
    study.notebook("01_first", STORE, SAVE, DRAW)
    assert start(study, moves).wait() == -signal.SIGKILL
    done = study.folder / "results/quick/cache/done/01_first-mrpc"
    record = "provenance/01_first-mrpc.json"
    assert results(study)[record] == before[record]
    assert not done.exists()
    run.run("01_first", "quick", {}, keep=True)
    assert capsys.readouterr().out == ""
    assert not before.items() & results(study).items()
    assert {"figures/F1.png", "tables/first.csv"} <= results(study).keys()
    assert done.exists()
    assert not [*(study.folder / "results/quick/cache/running").iterdir()]


def test_kernel_that_does_not_start(study: Study, monkeypatch, capsys):
    python = shell_script(study.folder / "python", "echo no ipykernel here >&2\nexit 1")
    study.notebook("01_first")
    monkeypatch.setattr(sys, "executable", str(python))
    assert run.main(["01_first-mrpc", "--profile", "quick", "--keep"]) == 1
    log = study.folder / "results/quick" / LOG
    line = f"error: 01_first-mrpc: its kernel, {python}, did not start (details: {log})\n"
    assert capsys.readouterr().err == line
    assert "no ipykernel here" in log.read_text()


def test_results_of_another_version(study: Study):
    study.notebook("01_first")
    cache = study.folder / "results/quick/cache"
    for name, text in (("scores", "of an earlier version"), ("form", "1\n")):
        cache.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text(text)
        message = error_of(run.run, "01_first", "quick", {})
        assert message.startswith(f"{cache} was not made by this version of the study: delete it")
