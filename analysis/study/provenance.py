"""How each table and figure was made: a file for every run, provenance/<run>.json, beside the results."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from analysis.files import git, versions, write_text
from analysis.study.folders import Folders
from analysis.study.runs import Run


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of provenance in the folder of a profile, by their paths in it."""
    return {f"provenance/{path.name}": path.read_bytes() for path in sorted(folder.glob("provenance/*.json"))}


def tables_of(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """The digest and the weights of every table, by its name; raises InputError for a damaged file."""
    found: dict[str, dict[str, Any]] = {}
    for path in (path for path in files if path.startswith("provenance/")):
        try:
            found |= json.loads(files[path]).get("tables", {})
        except ValueError as error:
            raise InputError(f"{path} is damaged ({error}): run make reproduce again") from error
    return found


def new_record(run: Run) -> dict[str, Any]:
    """What is known of a run before it saves anything: notebook, parameters, versions and commit."""
    packages, commit = _code()
    known = {"notebook": run.notebook, "parameters": dict(run.parameters)}
    return known | {"versions": packages, "commit": commit, "tables": {}, "figures": {}}


def add(record: dict[str, Any], kind: str, path: Path, weights: Mapping[str, str]) -> None:
    """Adds a saved table or figure, with the digest of the file and of the weights behind it, to a record."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    record[kind][path.stem] = {"sha256": digest, "weights": dict(weights)}


def write_record(folders: Folders, run: str, record: Mapping[str, Any]) -> None:
    """Writes the record of a run, whole or not at all."""
    text = json.dumps(record, indent=1, default=str, ensure_ascii=False)
    write_text(folders.provenance / f"{run}.json", text + "\n")


def finish_record(folders: Folders, run: Run, seconds: float, cpu_seconds: float, cached: bool) -> None:
    """Adds to the record of a run how long it took, and whether it found everything that is cached.

    `cpu_seconds` are those of its process, of its kernel and of what they started.
    """
    path = folders.provenance / f"{run.name}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else new_record(run)
    cost = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1), "cached": cached}
    write_record(folders, run.name, record | cost)


@cache
def _code() -> tuple[str, str]:
    """The versions of packages, and the commit, with a remark if the code has changes since."""
    packages, _, commit = versions().rpartition(", commit ")
    changed = git("status", "--porcelain", "--", "analysis", "notebooks", "profiles")  # None outside a clone
    return packages, f"{commit}, with changes" if changed else commit
