"""One notebook run with one profile: executed copies, failures, the command line."""

import os
import re
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image
from studies import Study, error_of

from analysis.files import ROOT
from analysis.study import execution as run


def execute(study: Study, *cells: str, **settings: object) -> nbformat.NotebookNode:
    """The executed copy of a notebook of these cells."""
    study.notebook("01_first", *cells)
    return nbformat.read(run.run("01_first", "quick", settings), as_version=4)


def printed(notebook: nbformat.NotebookNode) -> str:
    """What the last cell printed."""
    return notebook.cells[-1].outputs[0].text.strip()


def test_run_injects_the_parameters_and_keeps_only_the_executed_copy(study: Study):
    cell = "import os\nprint(profile, task, n, rate, flag, checkpoint, words, os.getcwd())"
    executed = execute(study, cell, task="sst-2", words=["c"])
    assert printed(executed) == f"quick sst-2 5 0.0001 False None ['c'] {ROOT}"
    assert study.files() == {"quick/notebooks/01_first-sst-2.ipynb"}


def test_pictures_in_the_executed_copy_are_small():
    """Noise on a white ground, as a notebook shows it: fewer bytes, the same size, colours hardly moved."""
    pixels = np.full((60, 80, 3), 255, np.uint8)
    pixels[20:40] = np.random.default_rng(0).integers(0, 8, (20, 80, 1)) * 36
    raw = BytesIO()
    Image.fromarray(pixels).save(raw, "PNG", compress_level=0)
    output = nbformat.v4.new_output("display_data", {"image/png": b64encode(raw.getvalue()).decode()})
    cell = nbformat.v4.new_code_cell("figure", outputs=[output])
    cleaned = run.cleaned(nbformat.v4.new_notebook(cells=[cell]))
    small = b64decode(cleaned.cells[0].outputs[0].data["image/png"])
    assert len(small) < len(raw.getvalue()) / 3
    with Image.open(BytesIO(small)) as image:
        found = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(found - pixels).max() <= 2


def test_run_twice_gives_the_same_bytes(study: Study):
    """Times, ids, progress bars and saved paths are not in the executed copy; what was computed is."""
    cells = [
        "import sys, pathlib, warnings",
        "print('on the way', file=sys.stderr)\nwarnings.warn('careful')\nprint('result')",
        "pathlib.Path('/somewhere/figure.png')",
        "1 + 1",
        "import pandas\npandas.DataFrame({'a': [1]}).style.set_properties(color='red')",
    ]
    first = execute(study, *cells)
    path = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    before = path.read_bytes()
    execute(study, *cells)
    assert path.read_bytes() == before
    outputs = [
        [output.get("text", output.get("data")) for output in cell.outputs] for cell in first.cells[-4:-1]
    ]
    assert outputs == [["result\n"], [], [{"text/plain": "2"}]]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        (
            "from analysis.errors import InputError\nraise InputError('row 3 is empty: fill it')",
            "row 3 is empty: fill it",
        ),
        ("this is no Python", "SyntaxError: invalid syntax"),
    ],
)
def test_failing_notebook(study: Study, cell: str, reason: str):
    """Nothing is left where the executed copy belongs, not even an earlier good one, which would be stale."""
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    study.notebook("01_first", "print('got here')", cell, "print('not here')")
    message = error_of(run.run, "01_first", "quick", {})
    assert message.startswith(f"01_first-mrpc: {reason}")
    failed = study.folder / "results/quick/cache/failed/01_first-mrpc.ipynb"
    assert message.endswith(f"(executed so far: {failed})")
    assert study.files() == {"quick/cache/failed/01_first-mrpc.ipynb"}
    outputs = [output for c in nbformat.read(failed, as_version=4).cells for output in c.get("outputs", [])]
    assert "got here\n" in [output.get("text") for output in outputs]
    assert "error" in [output.output_type for output in outputs]


def test_kernel_that_dies(study: Study):
    """As when the system kills it for its memory."""
    study.notebook("01_first", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    message = error_of(run.run, "01_first", "quick", {})
    assert message.startswith("01_first-mrpc: Kernel died: is there enough memory?")
    assert study.files() == {"quick/cache/failed/01_first-mrpc.ipynb"}


KERNEL = """
from ipykernel.kernelapp import IPKernelApp
app = IPKernelApp.instance()
print(app.transport, app.ip)
"""


def test_kernels_have_sockets_of_their_own(study: Study):
    """Kernels that start side by side share no TCP port, and leave nothing behind."""
    addresses = [printed(execute(study, KERNEL)).split() for _ in range(2)]
    assert [transport for transport, _ in addresses] == ["ipc", "ipc"]
    folders = {Path(address).parent for _, address in addresses}
    assert len(folders) == 2
    assert not any(folder.exists() for folder in folders)


def test_kernel_where_a_socket_has_no_room(study: Study, monkeypatch: pytest.MonkeyPatch):
    """The name of a socket has about a hundred characters at most."""
    deep = study.folder / ("temporary" * 12)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert printed(execute(study, KERNEL)) == "tcp 127.0.0.1"
    assert not [*deep.iterdir()]


def test_success_clears_the_failed_copy(study: Study):
    failed = study.folder / "results/quick/cache/failed/01_first-mrpc.ipynb"
    failed.parent.mkdir(parents=True)
    failed.write_text("of a run that was killed")
    execute(study, "print(n)")
    assert study.files() == {"quick/notebooks/01_first-mrpc.ipynb"}


def test_wrong_setting_leaves_the_earlier_copy(study: Study):
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    study.notebook("01_first")
    error_of(run.run, "01_first", "quick", {"m": 3})
    assert target.read_text() == "an earlier run"


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "analysis.run", *arguments],
        cwd=ROOT,
        env=os.environ | {"RESULTS_DIR": str(folder)},
        capture_output=True,
        text=True,
    )


WRONG = {
    "01_extract --profile absent": "error: unknown profile 'absent': choose from ",
    "05_absent --profile smoke": "error: unknown notebook '05_absent': choose from 00_finetune, ",
    "01_extract --profile smoke --set m=3": "error: 01_extract has no parameter 'm': choose from task, ",
    "01_extract --profile smoke --set n=abc": "error: 01_extract: parameter n is 'abc': give a number",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_command(tmp_path: Path, monkeypatch, capsys, arguments: str):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    assert run.main(arguments.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(WRONG[arguments])
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_no_notebook_named(capsys):
    with pytest.raises(SystemExit) as caught:
        run.main(["--profile", "smoke"])
    assert caught.value.code == 2
    assert "required: notebook" in capsys.readouterr().err


def test_wrong_command_in_a_shell(tmp_path: Path):
    done = command("01_extract", "--profile", "absent", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch("error: unknown profile 'absent': choose from .*smoke.*\n", done.stderr)


@pytest.mark.parametrize("setting", ["n", "n=[1", "n: 3"])
def test_setting_that_is_not_one(capsys, setting: str):
    with pytest.raises(SystemExit) as caught:
        run.main(["01_extract", "--set", setting])
    assert caught.value.code == 2
    assert f"error: argument --set: {setting!r}" in capsys.readouterr().err


def test_error_in_a_notebook_is_the_last_line(tmp_path: Path):
    """What the notebook itself refuses reaches the command line as one line, without a traceback."""
    done = command("01_extract", "--profile", "smoke", "--set", "task=nonsense", folder=tmp_path)
    failed = tmp_path / "smoke/cache/failed/01_extract-nonsense-pretrained.ipynb"
    assert done.returncode == 1
    assert "Traceback" not in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1] == (
        "error: 01_extract-nonsense-pretrained: task 'nonsense' is unknown; choose one of mrpc, qqp, sst-2, qnli "
        f"(executed so far: {failed})"
    )
    assert [line.startswith("error: ") for line in done.stderr.splitlines()].count(True) == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [failed]


def test_settings_are_read_as_yaml(study: Study, monkeypatch, capsys):
    seen = {}
    monkeypatch.setattr(run, "run", lambda notebook, profile, values: seen.update(values) or study.folder)
    study.notebook("01_first")
    options = [
        "--set",
        "n=3",
        "--set",
        "rate=0.5",
        "--set",
        "task=a=b",
        "--set",
        "words=[x, y]",
        "--set",
        "flag=true",
    ]
    assert run.main(["01_first", "--profile", "quick", *options]) == 0
    assert seen == {"n": 3, "rate": 0.5, "task": "a=b", "words": ["x", "y"], "flag": True}
    assert capsys.readouterr().out.strip() == os.path.relpath(study.folder)
