"""Runs one notebook with a profile's parameters: `python -m analysis.run 03_test --set task=toy-mrpc --set tau=2.5`.

Every notebook is a jupytext percent script. papermill executes it with the values of two sections of the profile: the
section `common` and the one with the notebook's name. `03_test-toy-mrpc` is short for `03_test --set task=toy-mrpc`.
Results go to a folder under results/scratch/; only Make passes --keep, which writes into the profile's own folder.
"""

import argparse
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import yaml
from filelock import Timeout

from analysis.cache import COUNT
from analysis.errors import InputError, exit_status
from analysis.files import ROOT, write_text
from analysis.study.folders import Folders, short
from analysis.study.machine import cores
from analysis.study.profiles import command_line, declared, notebook_names, parameters, source
from analysis.study.provenance import finish_record
from analysis.study.runs import VARIABLE, Run, parse_name, run_of

# Environment variables that Make sets: the number of its runs, a file in which they count themselves, and their order.
TOTAL, NUMBER, ORDER = "STUDY_TOTAL", "STUDY_COUNT", "STUDY_RUNS"
COUNTED = "counted.txt"  # what the kernel has computed or found in its cache


def run(name: str, profile: str, settings: Mapping[str, Any], keep: bool = False) -> Path:
    """Executes a notebook and returns the path of the executed copy; raises InputError when a cell fails.

    A run writes to a folder of its own in cache/running/. When every cell has run, the files replace those of the run
    before; those of a run that fails move to cache/failed/. A run of Make then has a file in cache/done/, as old as the
    start of the run, so that code that changes meanwhile counts as newer. A run that another process is doing is waited
    for and not repeated.
    """
    notebook, name_settings = parse_name(name)
    execution = run_of(notebook, parameters(notebook, profile, name_settings | dict(settings)), keep)
    Folders(profile).prepare()
    folders = Folders(profile, execution.scratch)
    folders.prepare()
    with _alone(execution, folders) as free:
        if free:
            _finish(execution, folders)
    return folders.notebooks / f"{execution.name}.ipynb"


def _finish(execution: Run, folders: Folders) -> None:
    """Executes a run whose files then replace those of the run before."""
    folders.publish(execution.name)
    running, failed, finished = (
        folders.cache / state / execution.name for state in ("running", "failed", "finished")
    )
    for folder in (running, failed, finished):
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    running.mkdir()
    start = time.time_ns()
    # A kernel outlives a killed process by a second: no later run writes to its folder.
    execution = execution._replace(stage=tempfile.mkdtemp(dir=running))
    try:
        stage = Folders(execution.parameters["profile"], execution.scratch, execution.stage)
        _execute(execution, stage, folders.cache / "logs" / f"{execution.name}.log")
    except InputError:
        os.replace(execution.stage, failed)
        raise
    if execution.scratch is None:
        done = Path(execution.stage, "cache", "done", execution.name)
        write_text(done, "")
        os.utime(done, ns=(start, start))
    os.replace(execution.stage, finished)
    shutil.rmtree(running, ignore_errors=True)
    folders.publish(execution.name)


def _execute(execution: Run, folders: Folders, log: Path) -> None:
    """Executes a run in a kernel of its own; raises InputError if it fails."""
    import jupytext
    import nbformat
    import papermill

    from analysis.study.copies import cleaned, linked, prepared

    path, start, cpu_start = folders.notebooks / f"{execution.name}.ipynb", time.monotonic(), _cpu_seconds()
    defaults = declared(execution.notebook)
    changed = {key: value for key, value in execution.parameters.items() if value != defaults[key]}
    write_text(path, nbformat.writes(prepared(jupytext.read(source(execution.notebook)))))
    write_text(log, "")
    logging.getLogger("papermill").setLevel(logging.ERROR)  # it cannot read `int | None`, and says so
    with (
        log.open("a", encoding="utf-8") as lines,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as sockets,
    ):
        try:
            papermill.execute_notebook(
                path, path, changed, cwd=str(ROOT), progress_bar=sys.stderr.isatty() and NUMBER not in os.environ,
                stdout_file=lines, stderr_file=lines,
                kernel_manager_class=_kernel(lines, execution, sockets),
            )  # fmt: skip
        except (papermill.PapermillExecutionError, RuntimeError) as error:
            lines.write(f"\n{error}\nits results so far: {folders.cache / 'failed' / execution.name}\n")
            reason = f"its kernel, {sys.executable}, did not start"
            if str(error) == "Kernel died":
                reason = f"{error}: is there enough memory?"
            elif isinstance(error, papermill.PapermillExecutionError):
                reason = error.evalue if error.ename == "InputError" else f"{error.ename}: {error.evalue}"
            raise InputError(
                f"{execution.name}: {' '.join(reason.split())} (details: {short(log)})"
            ) from error
    order = os.environ.get(ORDER, "").split()
    notebook = linked(cleaned(nbformat.read(path, as_version=4)), execution.name, order)
    write_text(path, nbformat.writes(notebook) + "\n")
    counts = folders.folder / COUNTED
    kinds = set(counts.read_text(encoding="utf-8").split()) if counts.exists() else set()
    counts.unlink(missing_ok=True)
    cost = time.monotonic() - start, _cpu_seconds() - cpu_start
    finish_record(folders, execution, *cost, cached=kinds == {"cached"})


def _cpu_seconds() -> float:
    """CPU time, user and system, of this process and of all that have ended below it."""
    return sum(os.times()[:4])


def _kernel(log: TextIO, execution: Run, folder: str) -> type:
    """A class of kernels of this Python that know their run, and whose own messages go to the log.

    Sockets in a folder of their own come first, since kernels that start together can pick the same TCP port.
    """
    import zmq
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    address = f"{folder}/kernel"
    fits = zmq.has("ipc") and len(f"{address}-5") <= zmq.IPC_PATH_MAX_LEN  # five sockets, numbered
    sockets = {"transport": "ipc", "ip": address} if fits else {}
    threads = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(cores())}  # before torch is imported
    environment = (
        threads
        | os.environ
        | {VARIABLE: json.dumps(execution._asdict()), COUNT: str(Path(execution.stage, COUNTED))}
    )

    class Kernel(AsyncKernelManager):
        kernel_spec = KernelSpec(**get_kernel_dict())  # not the one that Jupyter finds first

        def __init__(self, **options: Any):
            super().__init__(**sockets | options)

        async def start_kernel(self, **options: Any) -> None:
            await super().start_kernel(stdout=log, stderr=log, env=environment, **options)

    return Kernel


@contextmanager
def _alone(execution: Run, folders: Folders) -> Iterator[bool]:
    """Prints how a run starts and ends, and keeps other processes from it; False if one of them has just done it."""
    title, done = " ".join([execution.notebook, *execution.values]), folders.cache / "done" / execution.name
    lock, age = folders.lock(execution.name), _age(done)
    try:
        acquired = lock.acquire(timeout=0)
    except Timeout:
        _say(f"{title}: waiting for another process that runs it")
        acquired = lock.acquire()
    with acquired:
        if _age(done) != age:
            yield False
            return
        label, start = f"{_number()}{title}", time.monotonic()
        _say(f"{label} started")
        if execution.scratch:
            _say(f"{title}: not a run of make: results go to {short(folders.home)}/")
        try:
            yield True
            _say(f"{label}  {time.monotonic() - start:.0f} s")
        except KeyboardInterrupt:
            _say(f"{label} stopped")
            raise


def _age(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _say(text: str) -> None:
    """Prints a line in one piece, so that lines of two runs do not mix."""
    print(f"{text}\n", end="", flush=True)


def _number() -> str:
    """The number of this run among those that Make starts, such as `[12/28] `; empty for a single run."""
    if not os.environ.get(NUMBER):
        return ""
    total = os.environ[TOTAL]
    with open(os.environ[NUMBER], "ab", buffering=0) as count:
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
        return exit_status(lambda: run(name, options.profile, dict(options.settings), options.keep))
    except KeyboardInterrupt:
        return 130  # as a shell counts it


if __name__ == "__main__":
    sys.exit(main())
