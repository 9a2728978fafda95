"""Runs one notebook with a profile's parameters: `python -m analysis.run 03_test --set task=mrpc --set tau=2.5`.

Every notebook is a jupytext percent script. papermill executes it with the values of two sections of the profile: the
section `common` and the one with the notebook's name. `03_test-mrpc` is short for `03_test --set task=mrpc`. Results go
to a folder under results/scratch/; only Make passes --keep, which writes into the profile's own folder.
`--set common.tau=2.5` changes a parameter for all notebooks: it runs all that the change reaches, in the order of the
Makefile, into one folder.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from analysis.errors import InputError, exit_status
from analysis.files import ROOT, write_text
from analysis.study.folders import Folders, short
from analysis.study.profiles import command_line, declared, notebook_names, parameters, reading_order, source
from analysis.study.provenance import finish_record
from analysis.study.runs import VARIABLE, Run, chain_of, named, run_of

# Environment variables that Make sets: the number of its runs, a file in which they count themselves, and their order.
TOTAL, COUNT, ORDER = "STUDY_TOTAL", "STUDY_COUNT", "STUDY_RUNS"
CLEAR = "\r\033[K"  # clears the line of the bar


def run(name: str, profile: str, settings: Mapping[str, Any], keep: bool = False) -> Path:
    """Executes a notebook and returns the path of the executed copy; raises InputError when a cell fails.

    The notebook is executed in cache/failed/ and moves to its place when every cell has run; the copy of a run that
    fails stays in cache/failed/. A run of Make then has a file in cache/done/, as old as the start of the run, so that
    code that changes meanwhile counts as newer. A run that another process is doing is waited for and not repeated.
    """
    notebook, own = named(name)
    return _finished(run_of(notebook, parameters(notebook, profile, own | dict(settings)), keep), profile)


def run_chain(profile: str, settings: Mapping[str, Any]) -> Path:
    """Executes every run that a change of common parameters reaches; returns the folder of their results.

    Raises InputError for a parameter that no notebook has, and when a cell fails.
    """
    for name in settings:
        if not any(name in declared(notebook) for notebook in notebook_names()):
            raise InputError(f"no notebook has a parameter {name!r}: look into the parameters cells")
    reached = [notebook for notebook in notebook_names() if {*settings} & {*declared(notebook)}]
    cache = Path(os.environ.get("RESULTS_DIR", "results"), profile, "cache")  # as the Makefile writes it
    newer = [f"--what-if={cache}/parameters/{notebook}.yaml" for notebook in reached]
    command = ["make", "-n", "study", f"PROFILE={profile}", f"PYTHON={sys.executable}", *newer]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    names = re.findall(r"-m analysis\.run (\S+) --profile", printed.stdout)
    if printed.returncode or not names:
        raise InputError(
            f"make cannot tell what {', '.join(settings)} reaches: run make reproduce PROFILE={profile}"
        )
    for number, this in enumerate(chain_of(names, profile, settings), 1):
        print(f"[{number}/{len(names)}]", end=" ", flush=True)
        copy = _finished(this, profile)
    return copy.parent.parent


def _finished(this: Run, profile: str) -> Path:
    """The executed copy of a run, which is made unless another process is making it."""
    Folders(profile).prepare()
    folders = Folders(profile, this.scratch)
    folders.prepare()
    target, done = folders.notebooks / f"{this.name}.ipynb", folders.cache / "done" / this.name
    with _alone(this, folders.cache / "logs" / f"{this.name}.log", done) as progress:
        if progress is None:
            return target
        start = time.time_ns()
        for path in (target, done, folders.provenance / f"{this.name}.json"):
            path.unlink(missing_ok=True)
        _execute(this, folders, target, progress)
        if this.scratch is None:
            write_text(done, "")
            os.utime(done, ns=(start, start))
    return target


def _execute(this: Run, folders: Folders, target: Path, progress: "Progress") -> None:
    """Executes a run in a kernel of its own and moves the copy to its place; raises InputError if it fails."""
    import jupytext
    import nbformat
    import papermill

    from analysis.study.copies import cleaned, linked, prepared

    path, start = folders.cache / "failed" / target.name, time.monotonic()
    defaults = declared(this.notebook)
    changed = {key: value for key, value in this.parameters.items() if value != defaults[key]}
    write_text(path, nbformat.writes(prepared(jupytext.read(source(this.notebook)))))
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            papermill.execute_notebook(
                path, path, changed, cwd=str(ROOT), progress_bar=False, stdout_file=progress, stderr_file=progress,
                kernel_manager_class=_kernel(progress, this, folder),
            )  # fmt: skip
    except (papermill.PapermillExecutionError, RuntimeError) as error:
        progress.write(f"\n{error}\nexecuted so far: {path}\n")
        reason = f"{error}: is there enough memory?"  # the kernel died
        if isinstance(error, papermill.PapermillExecutionError):
            reason = error.evalue if error.ename == "InputError" else f"{error.ename}: {error.evalue}"
        raise InputError(
            f"{this.name}: {' '.join(reason.split())} (details: {short(progress.path)})"
        ) from error
    notebook = linked(
        cleaned(nbformat.read(path, as_version=4)),
        this.name,
        reading_order(os.environ.get(ORDER, "").split()),
    )
    write_text(target, nbformat.writes(notebook) + "\n")
    path.unlink()
    progress.seconds = time.monotonic() - start
    finish_record(folders, this, progress.seconds)


def _kernel(progress: "Progress", this: Run, folder: str) -> type:
    """A class of kernels that know their run, and whose own messages go to the log.

    Sockets in a folder of their own come first, since kernels that start together can pick the same TCP port.
    """
    import zmq
    from jupyter_client.manager import AsyncKernelManager

    address = f"{folder}/kernel"
    fits = zmq.has("ipc") and len(f"{address}-5") <= zmq.IPC_PATH_MAX_LEN  # five sockets, numbered
    own = {"transport": "ipc", "ip": address} if fits else {}
    environment = os.environ | {VARIABLE: json.dumps(this._asdict())}

    class Kernel(AsyncKernelManager):
        def __init__(self, **options: Any):
            super().__init__(**own | options)

        async def start_kernel(self, **options: Any) -> None:
            await super().start_kernel(stdout=progress, stderr=progress, env=environment, **options)

    return Kernel


class Progress:
    """The output of a run: its log, which takes what the notebook prints, and a live bar on a terminal."""

    def __init__(self, title: str, path: Path):
        self.title, self.path, self.seconds = title, path, None
        self.live = sys.stderr.isatty()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a", encoding="utf-8")  # the kernel appends to it too
        self.flush, self.fileno = self.file.flush, self.file.fileno

    def say(self, text: str) -> None:
        """Prints one line in the place of the bar, in one piece, so that lines of two runs do not mix."""
        print(f"{CLEAR if self.live else ''}{text}\n", end="", flush=True)

    def write(self, text: str) -> None:
        """Takes what the notebook prints."""
        self.file.write(text)
        bar = text.replace("\r", "\n").strip().split("\n")[-1]
        if self.live and "%|" in bar:
            width = get_terminal_size().columns - 1
            print(CLEAR + f"{self.title}: {bar}"[:width], end="", file=sys.stderr, flush=True)


@contextmanager
def _alone(this: Run, log: Path, done: Path) -> Iterator[Progress | None]:
    """Prints how a run starts and ends; None if another process has just done it.

    The lock belongs to the open log, which the kernel inherits; the system releases it when the last of them ends.
    """
    import fcntl

    title = " ".join([this.notebook, *this.values])
    progress = Progress(title, log)
    before = done.stat().st_mtime_ns if done.exists() else None
    try:
        try:
            fcntl.flock(progress.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say(f"{title}: another process is at it: waiting")
            fcntl.flock(progress.file, fcntl.LOCK_EX)
            if done.exists() and done.stat().st_mtime_ns != before:
                yield None
                return
        progress.file.truncate(0)
        label = f"{_number()}{title}"
        progress.say(f"{label} started")
        if this.scratch:
            folder = Folders("", this.scratch).folder
            progress.say(f"{title}: not a run of make: results go to {short(folder)}/")
        try:
            yield progress
            progress.say(f"{label}  {progress.seconds:.0f} s")
        except KeyboardInterrupt:
            progress.say(f"{label} stopped")
            raise
    finally:
        if progress.live:
            sys.stderr.write(CLEAR)
        progress.file.close()


def _number() -> str:
    """The number of this run among those that Make starts, such as `[12/28] `; empty for a single run."""
    if not os.environ.get(COUNT):
        return ""
    total = os.environ[TOTAL]
    with open(os.environ[COUNT], "ab", buffering=0) as count:
        count.write(b".")  # the end of what this run has appended is its number
        return f"[{count.tell():{len(total)}}/{total}] "


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: the value is not valid YAML") from error


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = command_line("analysis.run", __doc__)
    parser.add_argument("notebook", help=f"one of {', '.join(notebook_names())}, or one with its task")
    parser.add_argument(
        "--set", dest="settings", type=_setting, action="append", default=[], metavar="name=value"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write into the folder of the profile, as Make does"
    )
    options = parser.parse_args(arguments)
    name = Path(options.notebook)
    name = name.stem if name.suffix == ".py" else options.notebook  # a path names a notebook too
    try:
        settings = dict(options.settings)
        common = {key.removeprefix("common."): value for key, value in settings.items() if "common." in key}
        if common and len(common) == len(settings):
            return exit_status(lambda: run_chain(options.profile, common))
        return exit_status(lambda: run(name, options.profile, settings, options.keep))
    except KeyboardInterrupt:
        return 130  # as a shell counts it


if __name__ == "__main__":
    sys.exit(main())
