"""The root of the checkout, paths with variables, versions, and files written whole or not at all."""

import importlib.metadata
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analysis.errors import InputError, unwritable

ROOT = Path(__file__).resolve().parents[1]
VERSIONED = (
    "torch",
    "transformers",
    "datasets",
    "scipy",
    "statsmodels",
    "numpy",
    "numba",
    "pandas",
    "xarray",
    "spacy",
)


def expand(path: str | Path) -> Path:
    """A path with its environment variables filled in; raises InputError naming a variable that is not set, and for
    a URL."""
    if "://" in str(path):
        raise InputError(f"{path} is a URL: mount what it names and give the path there")
    expanded = os.path.expandvars(os.path.expanduser(str(path)))
    if "$" in expanded:
        name = expanded.split("$", 1)[1].split("/")[0].strip("{}")
        raise InputError(
            f"{path}: the environment variable {name} is not set: run the command with {name}=..."
        )
    return Path(expanded)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that becomes `path` when the context ends well and vanishes otherwise.

    Raises InputError where the disk does not take the file: it is full, read-only or another user's. What stood at
    `path` before stays.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except OSError as error:
        reason = unwritable(error)
        if not reason or not _is_beside(error.filename, path):
            raise
        raise InputError(f"{path} cannot be written: {reason}: mend that and run it again") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _is_beside(name: str | None, path: Path) -> bool:
    """Whether an error speaks of a file where `path` is written, rather than of one that is read meanwhile."""
    absolute = path.absolute()
    return name is None or Path(name).absolute().parent == absolute.parent or Path(name) in absolute.parents


def write_text(path: Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def versions() -> str:
    """Installed versions of the packages that results depend on, and the commit of the code."""
    installed = [f"{name} {importlib.metadata.version(name)}" for name in VERSIONED]
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return ", ".join([*installed, f"commit {commit}"])
