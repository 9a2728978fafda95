"""Executes one notebook with a profile's parameters."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analysis.errors import InputError
from analysis.files import ROOT, write_text
from analysis.study.copies import cleaned, linked, prepared
from analysis.study.folders import Folders, short
from analysis.study.plan import plan
from analysis.study.profiles import parameters, source
from analysis.study.progress import Progress, shown
from analysis.study.provenance import record_time
from analysis.study.runs import Context, Run, announced, changes, run_of, scratch_name


def run(notebook: str, profile: str, settings: Mapping[str, Any]) -> Path:
    """Executes a notebook and returns the path of the executed copy; raises InputError when a cell fails.

    A run with other values than the profile's writes to a folder under results/scratch/. The notebook is executed in
    cache/failed/ and moves to its place when every cell has run; the copy of a run that fails stays in cache/failed/.
    """
    values = parameters(notebook, profile, settings)
    this = run_of(notebook, values)
    scratch = _scratch(this, profile, values)
    Folders(profile).prepare()
    folders = Folders(profile, scratch)
    folders.prepare()
    target = folders.notebooks / f"{this.name}.ipynb"
    unfinished = folders.cache / "failed" / target.name
    log, start = folders.cache / "logs" / f"{this.name}.log", time.monotonic()
    environment = os.environ | announced(Context(notebook, values, scratch))
    target.unlink(missing_ok=True)
    with shown(this, log) as progress:
        if scratch:
            progress.say(
                f"{progress.title}: not the values of profile {profile}: results go to {short(folders.folder)}/"
            )
        try:
            _execute(source(notebook), unfinished, values, progress, environment)
        except InputError as error:
            raise InputError(f"{this.name}: {error} (details: {short(log)})") from error
        _finish(unfinished, target, [] if scratch else [other.name for other in plan(profile)])
    if not scratch:
        record_time(folders, this.name, time.monotonic() - start)
    return target


def _scratch(this: Run, profile: str, values: Mapping[str, Any]) -> str | None:
    """The folder's name for a run that is not one of the profile's own, else None."""
    changed = changes(this.notebook, profile, values)
    default = run_of(this.notebook, parameters(this.notebook, profile))
    own = not changed and (this == default or this in plan(profile))
    return None if own else scratch_name(this, changed)


def _execute(
    script: Path, path: Path, values: Mapping[str, Any], progress: Progress, environment: Mapping[str, str]
) -> None:
    """Executes a script as the notebook `path`, in a kernel with this environment; raises InputError if it fails."""
    import jupytext
    import nbformat
    import papermill

    write_text(path, nbformat.writes(prepared(jupytext.read(script), values)))
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            papermill.execute_notebook(
                path, path, cwd=str(ROOT), progress_bar=False, stdout_file=progress, stderr_file=progress,
                kernel_manager_class=_kernel(progress, environment, folder),
            )  # fmt: skip
    except papermill.PapermillExecutionError as error:
        progress.write(f"\n{error}\nexecuted so far: {path}\n")
        reason = error.evalue if error.ename == "InputError" else f"{error.ename}: {error.evalue}"
        raise InputError(" ".join(reason.split())) from error
    except RuntimeError as error:  # the kernel died, mostly for lack of memory
        progress.write(f"\n{error}\nexecuted so far: {path}\n")
        raise InputError(f"{error}: is there enough memory?") from error


def _finish(unfinished: Path, target: Path, order: Sequence[str]) -> None:
    """Moves the executed copy to its place, with links to its neighbours in the reading order."""
    import nbformat

    notebook = cleaned(nbformat.read(unfinished, as_version=4))
    write_text(target, nbformat.writes(linked(notebook, target.stem, order)) + "\n")
    unfinished.unlink()


def _kernel(progress: Progress, environment: Mapping[str, str], folder: str) -> type:
    """A class of kernels with this environment, whose own messages go to the log."""
    from jupyter_client.manager import AsyncKernelManager

    class Kernel(AsyncKernelManager):
        def __init__(self, **options: Any):
            super().__init__(**_connection(folder) | options)

        async def start_kernel(self, **options: Any) -> None:
            await super().start_kernel(stdout=progress, stderr=progress, env=environment, **options)

    return Kernel


def _connection(folder: str) -> dict[str, str]:
    """How to reach a kernel: by sockets in a folder of its own, or by TCP on systems without such sockets.

    Sockets come first since kernels that start at the same time can pick the same TCP port.
    """
    import zmq

    address = f"{folder}/kernel"
    fits = len(f"{address}-5") <= zmq.IPC_PATH_MAX_LEN  # five sockets, numbered
    return {"transport": "ipc", "ip": address} if zmq.has("ipc") and fits else {}
