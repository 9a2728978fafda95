"""The record of every run, provenance/<run>.json: code, parameters, data, weights behind each table, and cost."""

import hashlib
import json
import tarfile
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from analysis.files import READ, ROOT, git, versions, write_text
from analysis.study.folders import Folders
from analysis.study.runs import Run

PARSER = "parser"  # its name stands among the weights


def files_of(folder: Path) -> dict[str, bytes]:
    """The tables and records in the folder of a profile, by their paths in it."""
    paths = sorted([*folder.glob("provenance/*.json"), *folder.glob("tables/*.csv")])
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def committed(profile: str, root: Path = ROOT) -> dict[str, bytes]:
    """The committed tables and records of a profile, by their paths in its folder; outside of git, the released ones.

    Raises InputError if there are none.
    """
    archive = git("archive", f"HEAD:results/{profile}", "provenance", "tables", root=root)
    if archive:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            return {entry.name: files.extractfile(entry).read() for entry in files if entry.isfile()}
    released = files_of(root / "results" / profile / "released")  # Make keeps them before the first run
    if not released:
        raise InputError(f"profile {profile} has no committed tables: nothing to compare with")
    return released


def records_of(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """The records among files, by the name of the run."""
    return {Path(path).stem: json.loads(files[path]) for path in files if path.startswith("provenance/")}


def weights_of(files: Mapping[str, bytes]) -> dict[str, dict[str, str]]:
    """The digests of the weights behind every table, by its name."""
    tables = [record.get("tables", {}) for record in records_of(files).values()]
    return {name: entry["weights"] for entries in tables for name, entry in entries.items()}


def data_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """The digest of the texts that each run has read, by its name."""
    return {run: record["data"] for run, record in records_of(files).items() if record.get("data")}


def new_record(run: Run) -> dict[str, Any]:
    """The record of a run that has saved nothing: notebook, parameters, versions and commit."""
    packages, commit = _code()
    known = {"notebook": run.notebook, "parameters": run.parameters}
    return known | {"versions": packages, "commit": commit, "tables": {}, "figures": {}}


def data_digest(cache: Path) -> str:
    """One digest of all text files that this process has read outside of the cache; empty if there are none."""
    digests = sorted(READ[path] for path in READ if not path.resolve().is_relative_to(cache.resolve()))
    return hashlib.sha256("".join(digests).encode()).hexdigest() if digests else ""


def write_record(folders: Folders, run: Run, record: Mapping[str, Any]) -> None:
    """Writes the record of a run, whole or not at all."""
    text = json.dumps(record, indent=1, default=str, ensure_ascii=False)
    write_text(folders.provenance / f"{run.name}.json", text + "\n")


def finish_record(folders: Folders, run: Run, cost: Mapping[str, Any]) -> None:
    """Adds to the record of a run what it has cost."""
    path = folders.provenance / f"{run.name}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else new_record(run)
    write_record(folders, run, record | cost)


@cache
def _code() -> tuple[str, str]:
    """The versions of packages, and the commit, with a remark if the code has changes since."""
    packages, _, commit = versions().rpartition(", commit ")
    changed = git("status", "--porcelain", "--", "analysis", "notebooks", "profiles")  # None outside a clone
    return packages, f"{commit}, with changes" if changed else commit
