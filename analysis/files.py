"""The root of the checkout, paths with variables, versions, and the reading and atomic writing of text files."""

import hashlib
import importlib.metadata
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Any

import yaml

from analysis.errors import UNWRITABLE, InputError, cannot_be_written

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data" / "cache"  # where `make data` puts what it downloads
READ: dict[Path, str] = {}  # the SHA-256 of every text file that this process has read
VERSIONED = "torch transformers datasets scipy statsmodels numpy pandas xarray spacy".split()


def data_folder() -> Path:
    """The folder with the data of the study: the one that DATA_DIR names, or that of `make data`."""
    return Path(os.environ.get("DATA_DIR") or DATA).expanduser()


def expand(path: str | Path) -> Path:
    """A path with its environment variables replaced; raises InputError for an unset variable and for a URL.

    DATA_DIR and PARSER name what `make data` downloads unless they are set; raises InputError if it is not there.
    """
    if "://" in str(path):
        raise InputError(f"{path} is a URL: mount what it names and give the path there")
    downloads = {"DATA_DIR": str(data_folder()), "PARSER": str(data_folder() / "en_core_web_sm")}
    expanded = os.path.expanduser(Template(str(path)).safe_substitute(downloads | os.environ))
    if "$" in expanded:
        raise InputError(
            f"{path} names an environment variable that is not set: run the command with NAME=..."
        )
    if "$" in str(path) and expanded.startswith(str(DATA)) and not Path(expanded).exists():
        raise InputError(
            f"{path} is not there: run make data, or name a folder of your own with DATA_DIR=..."
        )
    return Path(expanded)


def suffix(path: str | Path) -> str:
    """The end of a file's name from the last full stop on, in lower case: `.txt` of `NOTES.TXT`."""
    return Path(path).suffix.lower()


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a mapping that names a key twice, of which YAML would drop the first; says where a value is wrong."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:  # such as a date that is none
            problem = f"{node.value!r} is no value ({error}): write it in quotes"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        names = set()
        for key, _ in node.value:
            if str(key.value) in names:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value!r} stands twice: delete one of them", problem_mark=key.start_mark
                )
            names.add(str(key.value))
        return super().construct_mapping(node, deep)


def parse_yaml(content: bytes, path: Path) -> Any:
    """The values in the YAML file `path` with this content; raises InputError if it is wrong or names a key twice."""
    try:
        return yaml.load(content, _UniqueKeys)  # a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, which is renamed to `path` if the context ends well, and deleted otherwise.

    Raises InputError if the file cannot be written (a full or read-only disk, a folder of another user); an earlier
    file at `path` then stays.
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
        if error.errno not in UNWRITABLE:
            raise
        raise InputError(cannot_be_written(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def read_text(path: Path) -> str:
    """A text file in UTF-8, without its byte order mark.

    Raises InputError for a file that cannot be read, and with the number of the first line that is not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}: correct the path or the file") from error
    READ[path] = hashlib.sha256(content).hexdigest()
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: not UTF-8; save the file in UTF-8") from None


def wrong_file(folder: Path, digests: Mapping[str, str]) -> str:
    """The first file of a folder that is missing or has another SHA-256, in words; empty if all are right."""
    for name, digest in digests.items():
        if not (folder / name).is_file():
            return f"{folder / name} is missing"
        with (folder / name).open("rb") as file:
            if (other := hashlib.file_digest(file, "sha256").hexdigest()) != digest:
                return f"{folder / name} has SHA-256 {other[:12]}..., not {digest[:12]}..."
    return ""


def write_text(path: Path, text: str) -> None:
    """Writes a text file, as a whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def git(*arguments: str, root: Path = ROOT) -> bytes | None:
    """The output of git for a checkout; None if the command fails or git is not installed."""
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> str:
    """The installed versions of the packages on which results depend, and the commit of the code."""
    installed = [f"{name} {importlib.metadata.version(name)}" for name in VERSIONED]
    commit = git("rev-parse", "--short=12", "HEAD") or b"unknown"
    return ", ".join([*installed, f"commit {commit.decode().strip()}"])
