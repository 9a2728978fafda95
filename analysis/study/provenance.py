"""How each table of a run was made, and how long each notebook took: small files that notebooks share."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pandas as pd
from filelock import FileLock

from analysis.files import git, versions, write_text
from analysis.study.folders import Folders

PROVENANCE = "provenance.json"
TIMES = "times"


def provenance(folders: Folders) -> dict[str, dict[str, Any]]:
    """The provenance of the tables of a run, by their names; empty if the file is missing or damaged."""
    try:
        return json.loads((folders.tables / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def record_table(
    folders: Folders, name: str, notebook: str, parameters: Mapping[str, Any], weights: Mapping[str, str]
) -> None:
    """Writes the provenance of a table: notebook, parameters, versions, commit, digests of weights and of the table."""
    packages, commit = _code()
    content = (folders.tables / f"{name}.csv").read_bytes()
    entry = {
        "notebook": notebook,
        "parameters": dict(parameters),
        "versions": packages,
        "commit": commit,
        "weights": dict(weights),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    with _lock(folders):
        there = {path.stem for path in folders.tables.glob("*.csv")}
        known = {each: found for each, found in provenance(folders).items() if each in there}
        text = json.dumps(known | {name: entry}, indent=1, sort_keys=True, default=str)
        write_text(folders.tables / PROVENANCE, text + "\n")


def record_time(folders: Folders, run: str, seconds: float) -> None:
    """Writes how long a run took into the table `times`."""
    path = folders.tables / f"{TIMES}.csv"
    with _lock(folders):
        known = pd.read_csv(path).to_dict("records") if path.exists() else []
        found = {row["notebook"]: row["seconds"] for row in known} | {run: round(seconds, 1)}
        table = pd.DataFrame(sorted(found.items()), columns=["notebook", "seconds"])
        write_text(path, table.to_csv(index=False, lineterminator="\n"))


@cache
def _code() -> tuple[str, str]:
    """The versions of packages, and the commit, with a remark if the code has changes since."""
    packages, _, commit = versions().rpartition(", commit ")
    changed = git("status", "--porcelain", "--", "analysis", "notebooks", "profiles")  # None outside a clone
    return packages, f"{commit}, with changes" if changed else commit


def _lock(folders: Folders) -> FileLock:
    """Lets one notebook at a time read these files and write them anew."""
    folders.cache.mkdir(parents=True, exist_ok=True)
    return FileLock(folders.cache / ".provenance.lock")
