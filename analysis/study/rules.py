"""The rules of Make for a profile; `python -m analysis.study.rules --profile P` writes them to its cache."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from analysis.errors import exit_status
from analysis.files import ROOT, write_text
from analysis.study.folders import Folders
from analysis.study.plan import plan
from analysis.study.profiles import parameters, source
from analysis.study.runs import Run
from analysis.study.tracing import files_of


def write_rules(profile: str, papers: Sequence[str] = ()) -> Path:
    """Writes the rules of a profile, or of some papers: the goals, and for each run what it needs and its command.

    A notebook's parameters go into a file that is rewritten only when they change, so that a changed parameter
    re-runs only what depends on it.
    """
    results, needs = Folders(profile), plan(profile, papers)
    results.prepare()
    lines = [f"GOALS := {_stamps(needs)}"]
    for notebook in dict.fromkeys(run.notebook for run in needs):
        values = results.cache / "parameters" / f"{notebook}.yaml"
        _write_changed(values, yaml.safe_dump(parameters(notebook, profile), sort_keys=True))
        script = source(notebook)
        files = [os.path.relpath(path, ROOT) for path in (script, *files_of(script), values)]
        lines.append(f"FILES_{notebook} := {' '.join(files)}")
    lines += [_rule(run, others) for run, others in needs.items()]
    path = results.cache / "rules" / f"{'+'.join(sorted({*papers})) or 'all'}.mk"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _rule(run: Run, needs: Iterable[Run]) -> str:
    """What Make does for one run; STAMPS, RUN and stamp are the Makefile's."""
    settings = "".join(f" --set {key}={value}" for key, value in run.settings)
    first = f"{_stamps([run])}: $(FILES_{run.notebook}) {_stamps(needs)}".rstrip()
    return f"{first}\n\t@$(RUN) {run.notebook}{settings}\n\t$(stamp)"


def _stamps(runs: Iterable[Run]) -> str:
    return " ".join(f"$(STAMPS)/{run.name}" for run in runs)


def _write_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m analysis.study.rules", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--profile", default="offline")
    parser.add_argument("papers", nargs="*", help="papers to run; none for all")
    options = parser.parse_args(arguments)
    return exit_status(lambda: write_rules(options.profile, options.papers))


if __name__ == "__main__":
    sys.exit(main())
