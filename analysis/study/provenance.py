"""What each table of a run was made of, and how long each notebook took: small files that notebooks share."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from functools import cache
from typing import Any

import pandas as pd
from filelock import FileLock

from analysis.files import ROOT, versions, write_text
from analysis.study.folders import Folders

PROVENANCE = "provenance.json"
TIMES = "times"


def provenance(folders: Folders) -> dict[str, dict[str, Any]]:
    """What is known of the tables of a run, by their names; nothing where the file is missing or damaged."""
    try:
        return json.loads((folders.tables / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def record_table(
    folders: Folders, name: str, notebook: str, parameters: Mapping[str, Any], weights: Mapping[str, str]
) -> None:
    """Writes what a table was made of: notebook, parameters, versions, commit, digests of weights and of the table."""
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
    with _alone(folders):
        known = {each: found for each, found in provenance(folders).items() if _is_there(folders, each)}
        text = json.dumps(known | {name: entry}, indent=1, sort_keys=True, default=str)
        write_text(folders.tables / PROVENANCE, text + "\n")


def record_time(folders: Folders, run: str, seconds: float) -> None:
    """Writes how long a run took into the table `times`."""
    path = folders.tables / f"{TIMES}.csv"
    with _alone(folders):
        known = pd.read_csv(path).to_dict("records") if path.exists() else []
        found = {row["notebook"]: row["seconds"] for row in known} | {run: round(seconds, 1)}
        table = pd.DataFrame(sorted(found.items()), columns=["notebook", "seconds"])
        write_text(path, table.to_csv(index=False, lineterminator="\n"))


def _is_there(folders: Folders, name: str) -> bool:
    return (folders.tables / f"{name}.csv").exists()


@cache
def _code() -> tuple[str, str]:
    """The versions of packages, and the commit with a word on whether the code is that of the commit."""
    packages, _, commit = versions().rpartition(", commit ")
    return packages, commit if _is_clean() else f"{commit}, with changes"


def _is_clean() -> bool:
    """Whether nothing was changed since the commit; outside a clone there is nothing to compare."""
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--", "analysis", "notebooks", "profiles"]
    try:
        return not subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return True


def _alone(folders: Folders) -> FileLock:
    """Notebooks run side by side: one at a time reads such a file and writes it anew."""
    folders.cache.mkdir(parents=True, exist_ok=True)
    return FileLock(folders.cache / ".provenance.lock")
