"""Executes one notebook with a profile's parameters, and cleans the executed copy."""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analysis.errors import InputError
from analysis.files import ROOT, write_text
from analysis.study.pictures import in_palette
from analysis.study.plan import run_of
from analysis.study.profiles import parameters, source
from analysis.study.results import Results

SHOWN = {"text/html", "text/plain"}
CHANCE = re.compile(r"(?<=\bT_)[0-9a-f]{5}(?=_|\b)|(?<= at )0x[0-9a-f]+")  # pandas' names of styled tables


def run(notebook: str, profile: str, settings: Mapping[str, Any]) -> Path:
    """Executes a notebook and returns the path of the executed copy; nothing is left there when a cell fails.

    The notebook is executed in the profile's cache/failed/, which it leaves when every cell has run: the copy
    of a failed or killed run stays there, with its traceback. Raises InputError when a cell fails.
    """
    import nbformat

    values = parameters(notebook, profile, settings)
    results = Results(profile)
    name = run_of(notebook, values).name
    target = results.notebooks / f"{name}.ipynb"
    unfinished = results.cache / "failed" / f"{name}.ipynb"
    target.unlink(missing_ok=True)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    _execute(source(notebook), unfinished, values)
    write_text(target, nbformat.writes(cleaned(nbformat.read(unfinished, as_version=4))) + "\n")
    unfinished.unlink()
    return target


def _execute(script: Path, path: Path, values: Mapping[str, Any]) -> None:
    import jupytext
    import nbformat
    import papermill
    from traitlets.config import Config

    nbformat.write(jupytext.read(script), path)
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            config = Config(KernelManager=_connection(folder))
            options = {"cwd": str(ROOT), "config": config, "progress_bar": False, "log_output": True}
            papermill.execute_notebook(path, path, values, **options)
    except papermill.PapermillExecutionError as error:
        reason = error.evalue if error.ename == "InputError" else f"{error.ename}: {error.evalue}"
        raise InputError(f"{path.stem}: {' '.join(reason.split())} (executed so far: {path})") from error
    except (
        RuntimeError
    ) as error:  # what nbclient raises when the kernel is gone, mostly killed for its memory
        raise InputError(
            f"{path.stem}: {error}: is there enough memory? (executed so far: {path})"
        ) from error


def _connection(folder: str) -> dict[str, str]:
    """How to reach a kernel: by sockets in a folder of its own, or by TCP where the system has no such sockets.

    TCP ports are picked first and opened later, so that kernels that start side by side can pick the same.
    """
    import zmq

    address = f"{folder}/kernel"
    fits = len(f"{address}-5") <= zmq.IPC_PATH_MAX_LEN  # five sockets, numbered
    return {"transport": "ipc", "ip": address} if zmq.has("ipc") and fits else {}


def cleaned(notebook):
    """The executed notebook without times, chance names, paths and progress bars, its pictures made small.

    It differs when results do.
    """
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_noise(output)]
            for shown in (output.data for output in cell.outputs if "data" in output):
                shown |= {kind: CHANCE.sub(str(number), shown[kind]) for kind in SHOWN & shown.keys()}
                shown |= {kind: _compact(shown[kind]) for kind in {"image/png"} & shown.keys()}
    return notebook


def _compact(image: str) -> str:
    """A picture in base64 as a smaller one."""
    return b64encode(in_palette(b64decode(image))).decode()


def _is_noise(output: Mapping[str, Any]) -> bool:
    """Whether an output is a warning, a progress bar, or the path that saving a figure returns."""
    shown = output.get("data", {}).get("text/plain", "")
    return output.get("name") == "stderr" or shown.startswith(("PosixPath(", "WindowsPath("))
