"""What Make needs to know of a profile; `python -m analysis.study.rules --profile P` writes it to its cache."""

import argparse
import os
import sys
from pathlib import Path

import yaml

from analysis.errors import exit_status
from analysis.files import ROOT, write_text
from analysis.study.profiles import notebook_names, parameters, profile_tasks, source
from analysis.study.results import Results
from analysis.study.tracing import files_of


def write_rules(profile: str) -> Path:
    """Writes what Make needs to know of a profile: its tasks, and for each notebook the files it depends on.

    A notebook's parameters go into a file that is rewritten only when they change, so that a changed parameter
    re-runs only what depends on it.
    """
    results = Results(profile)
    lines = [f"TASKS := {' '.join(profile_tasks(profile))}"]
    for notebook in notebook_names():
        values = results.cache / "parameters" / f"{notebook}.yaml"
        _write_changed(values, yaml.safe_dump(parameters(notebook, profile), sort_keys=True))
        script = source(notebook)
        files = [os.path.relpath(path, ROOT) for path in (script, *files_of(script), values)]
        lines.append(f"DEPENDS_{notebook} := {' '.join(files)}")
    path = results.cache / "rules.mk"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _write_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m analysis.study.rules", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--profile", default="offline")
    profile = parser.parse_args(arguments).profile
    return exit_status(lambda: write_rules(profile))


if __name__ == "__main__":
    sys.exit(main())
