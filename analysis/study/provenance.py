"""The record of every run, provenance/<run>.json: code, parameters, data, weights behind each table, and cost.

`python -m analysis.study.provenance RUN ...` prints what the runs of a profile cost: `make plan`.
"""

import hashlib
import json
import subprocess
import zipfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from analysis.files import READ, ROOT, git, versions, write_text
from analysis.study.profiles import command_line
from analysis.study.runs import Folders, Run

PARSER = "parser"  # its name stands among the weights
Place = Path | zipfile.Path  # a folder or a file, on the disk or in the archive that git makes


def committed(profile: str, root: Path = ROOT) -> Place:
    """The folder of a profile as it is committed, with tables/ and provenance/; outside of git, as it was released.

    Raises InputError if there is none, or in the words of git if it does not read the checkout.
    """
    if archive := git(
        "archive", "--format=zip", f"HEAD:results/{profile}", "provenance", "tables", root=root
    ):
        return zipfile.Path(BytesIO(archive))
    if (root / ".git").exists() and git("rev-parse", "HEAD", root=root) is None:
        command = ["sh", "-c", 'git -C "$0" rev-parse HEAD', str(root)]
        reason = subprocess.run(command, capture_output=True, text=True).stderr
        raise InputError(f"git does not read {root}: {' '.join(reason.split())}")
    released = root / "results" / profile / "released"  # Make keeps it before the first run
    if not files_in(released / "tables"):
        raise InputError(f"profile {profile} has no committed tables: nothing to compare with")
    return released


def files_in(folder: Place) -> list[Place]:
    """The tables or records in a folder, by name; none if there is no such folder."""
    files = folder.iterdir() if folder.is_dir() else []
    return sorted((path for path in files if path.suffix in (".csv", ".json")), key=lambda path: path.name)


def records_in(folder: Place) -> dict[str, dict[str, Any]]:
    """The records in the folder of a profile, by the name of the run."""
    return {path.stem: json.loads(path.read_bytes()) for path in files_in(folder / "provenance")}


def weights_of(records: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """The digests of the weights behind every table, by its name."""
    tables = [record.get("tables", {}) for record in records.values()]
    return {name: entry["weights"] for entries in tables for name, entry in entries.items()}


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


def finish_record(
    folders: Folders, run: Run, seconds: float, cpu_seconds: float, origins: Collection[str]
) -> float:
    """Adds to the record of a run what it has cost, and returns what it costs without its cache (CPU seconds).

    `origins` says of every result that can be cached whether it was "computed" or "cached". If one was cached, a run
    with the same parameters before this one may have cost more: then that is what a run costs.
    """
    path, earlier = folders.provenance / f"{run.name}.json", folders.home / "provenance" / f"{run.name}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else new_record(run)
    whole = round(cpu_seconds, 1)
    if "cached" in origins:
        with suppress(OSError, ValueError, LookupError):  # no record or a damaged one tells nothing
            before = json.loads(earlier.read_text(encoding="utf-8"))
            whole = max(whole, whole_cost(before) or 0) if before["parameters"] == run.parameters else whole
    cost = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1), "whole_cpu_seconds": whole}
    write_record(folders, run, record | cost | {"cached": {*origins} == {"cached"}})
    return whole


def whole_cost(record: Mapping[str, Any]) -> float | None:
    """The CPU seconds of a run without its cache; None if they were not recorded."""
    return record.get("whole_cpu_seconds", record.get("cpu_seconds"))


@cache
def _code() -> tuple[str, str]:
    """The versions of packages, and the commit, with a remark if the code has changes since."""
    packages, _, commit = versions().rpartition(", commit ")
    changed = git("status", "--porcelain", "--", "analysis", "notebooks", "profiles")  # None outside a clone
    return packages, f"{commit}, with changes" if changed else commit


def print_plan(runs: Sequence[str], profile: str) -> None:
    """Prints the CPU seconds of every run without its cache, and their sum."""
    records = records_in(Folders(profile).folder)
    costs = {run: whole_cost(records.get(run, {})) for run in runs}
    for run, cost in costs.items():
        print(f"{run:40} {'not recorded' if cost is None else format(cost, '9,.0f')}")
    known = [cost for cost in costs.values() if cost is not None]
    print(f"{len(costs)} runs, {len(known)} of them recorded: {sum(known):,.0f} CPU seconds")


if __name__ == "__main__":
    parser = command_line("analysis.study.provenance", "What the runs of a profile cost.")
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args()
    print_plan(options.runs, options.profile)
