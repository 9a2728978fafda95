"""The record of every run, provenance/<run>.json: code, parameters, data, weights behind each table, and cost."""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from analysis.files import ROOT, git, versions, write_text
from analysis.study.profiles import command
from analysis.study.runs import SAVED, Folders, Run, results_folder

Place = Path | zipfile.Path  # a folder or a file, on the disk or in the archive that git makes


def committed(profile: str, root: Path = ROOT) -> Place:
    """The tables/ and provenance/ of a profile that are committed, or outside of git released.

    Raises InputError if there are none, or in the words of git if it does not read the checkout.
    """
    tree = f"HEAD:results/{profile}"
    if archive := git("archive", "--format=zip", tree, "provenance", "tables", root=root):
        return zipfile.Path(BytesIO(archive))
    read = subprocess.run("git rev-parse HEAD", shell=True, cwd=root, capture_output=True, text=True)
    if (root / ".git").exists() and read.returncode:
        raise InputError(f"git does not read {root}: {' '.join(read.stderr.split())}")
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
    tables = [table for record in records.values() for table in record.get("tables", {}).items()]
    return {name: entry["weights"] for name, entry in tables}


def output_digests(folder: Path, names: Iterable[str] | None = None) -> dict[str, str]:
    """The SHA-256 of the tables and records in a folder, or of the named ones; empty for one that is missing."""
    if names is None:
        paths = [*files_in(folder / "tables"), *files_in(folder / "provenance")]
        names = [path.relative_to(folder).as_posix() for path in paths]
    contents = {name: (folder / name).read_bytes() if (folder / name).is_file() else None for name in names}
    return {name: "" if text is None else hashlib.sha256(text).hexdigest() for name, text in contents.items()}


def read_outputs(stamp: Path) -> dict[str, str]:
    """The digests of the outputs of a run, as its stamp has them; none in a stamp of another form."""
    try:
        return json.loads(stamp.read_text(encoding="utf-8"))
    except ValueError:
        return {}


def print_older_runs(goal: str, profile: str) -> None:
    """Prints which runs Make would do again before `goal`, whose results are older than the code or the profile."""
    command = ["make", "--no-print-directory", "-n", goal, f"PROFILE={profile}", f"PYTHON={sys.executable}"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    variables |= {"RESULTS_DIR": str(results_folder())}
    with suppress(OSError):  # no Make
        asked = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
        runs = re.findall(r"-m analysis\.run (\S+) --profile", asked.stdout)
        if older := [run for run in runs if run != goal and (Folders(profile).cache / "done" / run).exists()]:
            print(
                f"{goal} reads results that are older than the code or the profile, those of {', '.join(older)}: "
                f"make {goal} PROFILE={profile} makes them again",
                flush=True,
            )


def new_record(run: Run) -> dict[str, Any]:
    """The record of a run that starts: notebook, parameters, versions, commit and later changes."""
    packages, _, commit = versions().rpartition(", commit ")
    changed = git("status", "--porcelain", "--", "analysis", "notebooks", "profiles")  # None outside a clone
    known = {"notebook": run.notebook, "parameters": run.parameters, "versions": packages}
    return known | {"commit": commit + ", with changes" * bool(changed)}


def finish_record(
    folders: Folders,
    name: str,
    record: Mapping[str, Any],
    seconds: float,
    cpu_seconds: float,
    origins: Collection[str],
) -> float:
    """Writes the record of a run with its outputs and its cost; returns the cost without its cache (CPU seconds).

    `origins` are "computed" or "cached"; if one is cached, an earlier run with these parameters may have cost more.
    """
    saved, earlier = folders.folder / SAVED, folders.home / "provenance" / f"{name}.json"
    outputs = json.loads(saved.read_bytes()) if saved.exists() else {"tables": {}, "figures": {}}
    saved.unlink(missing_ok=True)
    whole = round(cpu_seconds, 1)
    if "cached" in origins:
        with suppress(OSError, ValueError, LookupError):  # no record or a damaged one tells nothing
            before = json.loads(earlier.read_bytes())
            equal = before["parameters"] == record["parameters"]
            whole = max(whole, whole_cost(before) or 0) if equal else whole
    cost = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1), "whole_cpu_seconds": whole}
    complete = record | outputs | cost | {"cached": {*origins} == {"cached"}}
    text = json.dumps(complete, indent=1, default=str, ensure_ascii=False)
    write_text(folders.provenance / f"{name}.json", text + "\n")
    return whole


def whole_cost(record: Mapping[str, Any]) -> float | None:
    """The CPU seconds of a run without its cache; None if they were not recorded."""
    return record.get("whole_cpu_seconds", record.get("cpu_seconds"))


def print_plan(profile: str, runs: Sequence[str]) -> None:
    """Prints the CPU seconds of every run of a profile without its cache, and their sum."""
    records = records_in(Folders(profile).folder)
    costs = {run: whole_cost(records.get(run, {})) for run in runs}
    for run, cost in costs.items():
        print(f"{run:40} {'not recorded' if cost is None else format(cost, '9,.0f')}")
    known = [cost for cost in costs.values() if cost is not None]
    print(f"{len(costs)} runs, {len(known)} of them recorded: {sum(known):,.0f} CPU seconds")


if __name__ == "__main__":
    command(print_plan, "runs")
