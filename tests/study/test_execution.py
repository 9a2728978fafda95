"""One notebook run with one profile: executed copies, failures, scratch runs, the command line."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from studies import Study, error_of

import analysis.run as command_line
from analysis.files import ROOT
from analysis.study import execution as run

LOG = "cache/logs/01_first-mrpc.log"


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def execute(study: Study, *cells: str, **settings: object) -> nbformat.NotebookNode:
    """The executed copy of a notebook of these cells."""
    study.notebook("01_first", *cells)
    return read(run.run("01_first", "quick", settings))


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
    own = {
        f"quick/{name}" for name in ("notebooks/01_first-mrpc.ipynb", LOG, "cache/form", "tables/times.csv")
    }
    assert {name for name in study.files() if not name.endswith(".lock")} == own
    outputs = [[o.get("text", o.get("data")) for o in cell.outputs] for cell in copy.cells[3:6]]
    assert outputs == [["result\n"], [], [{"text/plain": "2"}]]
    log = (study.folder / "results/quick" / LOG).read_text()
    assert all(text in log for text in ("on the way", "careful", "result", "from below"))
    path = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    before = path.read_bytes()
    execute(study, *CELLS)
    assert path.read_bytes() == before
    times = (study.folder / "results/quick/tables/times.csv").read_text().splitlines()
    assert times[0] == "notebook,seconds"
    assert re.fullmatch(r"01_first-mrpc,\d+\.\d", times[1])
    assert len(times) == 2


def test_run_with_another_value_leaves_the_results_alone(study: Study, capsys):
    """It goes to a folder of its own and says so; the earlier copy stays."""
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    copy = execute(study, "print(n, words)", n=7, words=["c"])
    assert printed(copy) == "7 ['c']"
    assert target.read_text() == "an earlier run"
    scratch = "scratch/01_first-mrpc-n=7-words=c"
    assert {name for name in study.files() if name.endswith(".ipynb")} == {
        "quick/notebooks/01_first-mrpc.ipynb", f"{scratch}/notebooks/01_first-mrpc.ipynb"
    }  # fmt: skip
    assert not (study.folder / "results" / scratch / "tables/times.csv").exists()
    said = f"01_first mrpc: not the values of profile quick: results go to {study.folder}/results/{scratch}/"
    assert said in capsys.readouterr().out.splitlines()
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2]  # one cell of parameters, as they were
    assert 'n = 7\nrate = 1e-4\nflag = False\ncheckpoint = None\nwords = ["c"]' in code[0].source
    assert 'task = "mrpc"  # with a comment\n' in code[0].source


def test_value_that_is_the_profiles_is_no_change(study: Study):
    study.notebook("01_first")
    parameters = '# %% tags=["parameters"]\nprofile = "quick"\ntasks = ["qnli"]\n'
    study.notebook("02_second", parameters=parameters, study="{after: [01_first]}")
    assert run._scratch(*asked("mrpc")) is None
    assert run._scratch(*asked("qnli")) is None  # 02_second asks for it
    assert run._scratch(*asked("sst-2")) == "01_first-sst-2"
    assert run._scratch(*asked("qnli", n=5)) is None
    assert run._scratch(*asked("qnli", n=6)) == "01_first-qnli-n=6"


def asked(task: str, **values: object):
    given = run.parameters("01_first", "quick", {"task": task, **values})
    return run.run_of("01_first", given), "quick", given


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        (
            "from analysis.errors import InputError\nraise InputError('row 3 is empty: fill it')",
            "row 3 is empty: fill it",
        ),
        ("os.kill(os.getpid(), signal.SIGKILL)", "Kernel died: is there enough memory?"),
    ],
)
def test_failing_notebook(study: Study, capsys, cell: str, reason: str):
    """One line; nothing is left where the executed copy belongs, not even an earlier good one."""
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    study.notebook("01_first", "import os, signal\nprint('got here')", cell, "print('not here')")
    assert command_line.main(["01_first", "--profile", "quick"]) == 1
    log = study.folder / "results/quick" / LOG
    out, err = capsys.readouterr()
    assert err == f"error: 01_first-mrpc: {reason} (details: {log})\n"
    assert out == "01_first mrpc started\n"
    failed = study.folder / "results/quick/cache/failed/01_first-mrpc.ipynb"
    assert study.files() == {
        f"quick/{name}" for name in ("cache/failed/01_first-mrpc.ipynb", LOG, "cache/form")
    }
    text = log.read_text()
    assert "got here" in text
    assert f"executed so far: {failed}" in text
    assert reason.startswith("Kernel") or "Traceback" in text
    outputs = [output for c in read(failed).cells for output in c.get("outputs", [])]
    assert "got here\n" in [output.get("text") for output in outputs]


KERNEL = """
from ipykernel.kernelapp import IPKernelApp
app = IPKernelApp.instance()
print(app.transport, app.ip)
"""


def test_kernel_where_a_socket_has_no_room(study: Study, monkeypatch: pytest.MonkeyPatch):
    """The name of a socket has about a hundred characters at most. Elsewhere each kernel has a folder of its own."""
    transport, address = printed(execute(study, KERNEL)).split()
    assert transport == "ipc"
    assert not Path(address).parent.exists()
    deep = study.folder / ("temporary" * 12)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert printed(execute(study, KERNEL)) == "tcp 127.0.0.1"
    assert not [*deep.iterdir()]
    assert not [*(study.folder / "results/quick/cache/failed").iterdir()]


def test_wrong_setting_leaves_everything(study: Study):
    study.notebook("01_first")
    error_of(run.run, "01_first", "quick", {"m": 3})
    assert study.files() == set()


def test_results_of_another_version(study: Study):
    study.notebook("01_first")
    old = study.folder / "results/quick/cache/scores/mrpc.nc"
    old.parent.mkdir(parents=True)
    old.write_text("of an earlier version")
    message = error_of(run.run, "01_first", "quick", {})
    folder = study.folder / "results/quick/cache"
    assert (
        message == f"{folder} was made by another version of the study: delete it (make clean) and run again"
    )
    (folder / "form").write_text("1\n")
    assert error_of(run.run, "01_first", "quick", {}) == message


WRONG = {
    "01_extract --profile absent": "error: unknown profile 'absent': choose from ",
    "05_absent --profile smoke": "error: unknown notebook '05_absent': choose from 00_finetune, ",
    "notebooks/05_absent.py --profile smoke": "error: unknown notebook '05_absent': choose from 00_finetune, ",
    "01_extract --profile smoke --set m=3": "error: 01_extract has no parameter 'm': choose from task, ",
    "01_extract --profile smoke --set n=abc": "error: 01_extract: parameter n is 'abc': give a number",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_command(tmp_path: Path, monkeypatch, capsys, arguments: str):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    assert command_line.main(arguments.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(WRONG[arguments])
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_no_notebook_named(capsys):
    with pytest.raises(SystemExit) as caught:
        command_line.main(["--profile", "smoke"])
    assert caught.value.code == 2
    assert "required: notebook" in capsys.readouterr().err


def test_wrong_command_in_a_shell(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "analysis.run", "01_extract", "--profile", "absent"],
        cwd=ROOT, env=os.environ | {"RESULTS_DIR": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch("error: unknown profile 'absent': choose from .*smoke.*\n", done.stderr)


@pytest.mark.parametrize("setting", ["n", "n=[1", "n: 3"])
def test_setting_that_is_not_one(capsys, setting: str):
    with pytest.raises(SystemExit) as caught:
        command_line.main(["01_extract", "--set", setting])
    assert caught.value.code == 2
    assert f"error: argument --set: {setting!r}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "named", ["01_first", "notebooks/01_first.py", "./01_first.py", "/some/where/01_first.py"]
)
def test_settings_are_read_as_yaml_and_a_path_names_a_notebook(study: Study, monkeypatch, named: str):
    seen = {}
    monkeypatch.setattr(
        command_line, "run", lambda notebook, profile, values: seen.update(values, name=notebook)
    )
    study.notebook("01_first")
    given = ["n=3", "rate=0.5", "task=a=b", "words=[x, y]", "flag=true"]
    options = [part for setting in given for part in ("--set", setting)]
    assert command_line.main([named, "--profile", "quick", *options]) == 0
    expected = {"n": 3, "rate": 0.5, "task": "a=b", "words": ["x", "y"], "flag": True}
    assert seen == expected | {"name": "01_first"}


def test_interruption_is_no_traceback(study: Study, monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "run", interrupted)
    assert command_line.main(["01_first"]) == 130
    assert capsys.readouterr() == ("", "")
