"""Runs one notebook with a profile's parameters: `python -m analysis.run 03_test-toy-mrpc --set tau=2.5`.

Results go to results/scratch/<run>/; only Make passes --keep, which writes into the profile's own folder.
"""

import argparse
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from filelock import FileLock, Timeout

from analysis.cache import COUNT
from analysis.errors import InputError, exit_status
from analysis.files import ROOT, parse_yaml, write_text
from analysis.study.machine import cores
from analysis.study.parameters import declared, notebook_names, parse_name, source
from analysis.study.profiles import MADE_UP, in_machine_room, made_up, mark_cache, parameters
from analysis.study.provenance import finish_record, new_record, output_digests, print_older_runs
from analysis.study.runs import VARIABLE, Folders, Run, results_folder, short

ORDER = "STUDY_RUNS"  # the environment variable with all runs of Make, in reading order
# Variables of the user that would change results: a backend that shows no figures, start-up files, a part of a cluster.
NOT_PASSED_ON = "MPLBACKEND MATPLOTLIBRC PYTHONSTARTUP LOCAL_RANK RANK WORLD_SIZE".split()
# The files of a run move to their places in this order, after all others; Make reads the stamp in cache/.
LAST = ("tables", "figures", "notebooks", "provenance", "cache")
COUNTED = "counted.txt"  # what the kernel has computed or found in its cache


def run(name: str, profile: str, settings: Mapping[str, Any], keep: bool = False) -> Path:
    """Executes a notebook and returns the path of the executed copy; raises InputError when a cell fails.

    Without `keep`, or with other values than the profile's, results go to results/scratch/<run>/. A run that another
    process is doing is waited for and not repeated.
    """
    notebook, named = parse_name(name)
    execution = Run(notebook, parameters(notebook, profile, named | dict(settings)), running=True)
    parse_name(execution.name)  # raises for a task that is unknown
    if settings or not keep:
        execution = execution._replace(scratch=execution.name)
        print_older_runs(execution.name, profile)
    mark_cache(Folders(profile))
    folders = Folders(profile, execution)
    done, locks = folders.cache / "done" / execution.name, folders.cache / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    lock, age = FileLock(locks / f"{execution.name}.lock"), _age(done)
    try:
        acquired = lock.acquire(timeout=0)
    except Timeout:
        _say(f"{execution.name}: waiting for another process that runs it")
        acquired = lock.acquire()
    with acquired:
        publish(folders)  # of a process that was killed meanwhile
        if _age(done) == age:
            _perform(execution, folders)
    return folders.home / "notebooks" / f"{execution.name}.ipynb"


def publish(folders: Folders) -> None:
    """Moves the files of a run that has ended well to their places, or those that a killed process left."""
    files = [path.relative_to(folders.folder) for path in folders.folder.rglob("*") if path.is_file()]
    if any(path.parts[:2] == ("cache", "done") for path in files):
        for path in sorted(files, key=lambda path: path.parts[0] in LAST and LAST.index(path.parts[0])):
            (folders.home / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(folders.folder / path, folders.home / path)
        shutil.rmtree(folders.folder, ignore_errors=True)


def _age(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _say(text: str) -> None:
    """Prints a line in one piece, so that lines of two runs do not mix."""
    print(f"{text}\n", end="", flush=True)


def _perform(execution: Run, folders: Folders) -> None:
    """Executes a run in its folder of cache/running/, where its files stay if it fails, and publishes them.

    The stamp that Make reads is as old as the start of the run, so that code that changes meanwhile counts as newer. It
    holds the digests of what the run has saved, by which `make verify` knows that it ran here.
    """
    start = time.time_ns()
    destination = f": results go to {short(folders.home)}/" if execution.scratch else ""
    _say(f"{execution.name} started{destination}")
    shutil.rmtree(folders.folder, ignore_errors=True)
    folders.folder.mkdir(parents=True)
    try:
        _execute(execution, folders)
    except KeyboardInterrupt:
        _say(f"{execution.name} stopped")
        raise
    stamp = folders.folder / "cache" / "done" / execution.name
    write_text(stamp, json.dumps(output_digests(folders.folder), indent=1) + "\n")
    os.utime(stamp, ns=(start, start))
    publish(folders)
    _say(f"{execution.name}  {(time.time_ns() - start) / 1e9:.0f} s")


def _execute(execution: Run, folders: Folders) -> None:
    """Executes a run in a kernel of its own; raises InputError if it fails."""
    import jupytext
    import nbformat

    from analysis.study.copies import cleaned, linked, prepared

    path, record = folders.notebooks / f"{execution.name}.ipynb", new_record(execution)
    start, before = time.monotonic(), os.times()
    write_text(path, nbformat.writes(prepared(jupytext.read(source(execution.notebook)))))
    _papermill(execution, folders, path)
    counts = folders.folder / COUNTED
    origins = counts.read_text(encoding="utf-8").split() if counts.exists() else []
    counts.unlink(missing_ok=True)
    cpu_seconds = sum(os.times()[:4]) - sum(before[:4])  # with those of the kernel and what it started
    cost = finish_record(folders, execution.name, record, time.monotonic() - start, cpu_seconds, origins)
    order = [name for name in os.environ.get(ORDER, "").split() if not in_machine_room(name)]
    note = MADE_UP if made_up(execution.parameters["profile"]) else ""
    notebook = linked(cleaned(nbformat.read(path, as_version=4)), execution.name, order, cost, note)
    write_text(path, nbformat.writes(notebook) + "\n")


def _papermill(execution: Run, folders: Folders, path: Path) -> None:
    """Executes a notebook in place, with the parameters that differ from its defaults."""
    import papermill

    defaults = declared(execution.notebook)
    changed = {key: value for key, value in execution.parameters.items() if value != defaults[key]}
    logging.getLogger("papermill").setLevel(logging.ERROR)  # it cannot read `int | None`, and says so
    bar = sys.stderr.isatty() and execution.scratch is not None
    log = folders.cache / "logs" / f"{execution.name}.log"
    write_text(log, "")
    place = str(path).replace("{", "{{").replace("}", "}}")  # papermill formats paths
    with log.open("a", encoding="utf-8") as lines, TemporaryDirectory(ignore_cleanup_errors=True) as sockets:
        kernel = _kernel(lines, execution, folders.folder / COUNTED, sockets)
        options = {"stdout_file": lines, "stderr_file": lines, "kernel_manager_class": kernel}
        try:
            papermill.execute_notebook(place, place, changed, cwd=str(ROOT), progress_bar=bar, **options)
        except (papermill.PapermillExecutionError, RuntimeError) as error:
            lines.write(f"\n{error}\nits results so far: {folders.folder}\n")
            if isinstance(error, papermill.PapermillExecutionError):
                reason = f"{error.ename}: {error.evalue}".removeprefix("InputError: ")
            elif str(error) == "Kernel died":
                reason = "Kernel died: is there enough memory?"
            else:
                reason = f"its kernel, {sys.executable}, did not start"
            line = f"{execution.name}: {' '.join(reason.split())} (details: {short(log)})"
            raise InputError(line) from error


def _kernel(log: TextIO, execution: Run, counted: Path, folder: str) -> type:
    """A class of kernels of this Python that know their run, and whose own messages go to the log.

    Their sockets are files of `folder`, if the system has such, since kernels that start together can pick the same TCP
    port. IPython finds its start-up files there: none, whatever the user has.
    """
    import zmq
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    has_files = zmq.has("ipc") and len(f"{folder}/kernel-5") <= zmq.IPC_PATH_MAX_LEN
    sockets = {"transport": "ipc", "ip": f"{folder}/kernel"} if has_files else {}
    threads = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(cores())}  # before torch is imported
    users = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    own = {
        VARIABLE: json.dumps(execution._asdict()),
        COUNT: str(counted),
        "RESULTS_DIR": str(results_folder()),  # the kernel has another working directory
        "IPYTHONDIR": folder,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [users.get("PYTHONPATH")])]),
    }

    class Kernel(AsyncKernelManager):
        kernel_spec = KernelSpec(**get_kernel_dict())  # not the one that Jupyter finds first

        def __init__(self, **options: Any):
            super().__init__(**sockets | options)

        async def start_kernel(self, **options: Any) -> None:
            await super().start_kernel(stdout=log, stderr=log, env=threads | users | own, **options)

    return Kernel


def _setting(text: str) -> tuple[str, Any]:
    """The name and the value of `name=value`, whose value is YAML; raises InputError for another text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{text!r} has no value: write {text}=...")
    return name, parse_yaml(value.encode(), Path(name))


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.run", description=__doc__.splitlines()[0])
    parser.add_argument("notebook", help=f"one of {', '.join(notebook_names())}, or one with its task")
    parser.add_argument("--profile", default="offline")
    parser.add_argument("--set", action="append", default=[], metavar="name=value")
    parser.add_argument("--keep", action="store_true", help="write into the profile's folder, as Make does")
    options = parser.parse_args(arguments)
    name = Path(options.notebook).name.removesuffix(".py")  # a path names a notebook too
    try:
        return exit_status(lambda: run(name, options.profile, dict(map(_setting, options.set)), options.keep))
    except KeyboardInterrupt:
        return 130  # as a shell counts it


if __name__ == "__main__":
    sys.exit(main())
