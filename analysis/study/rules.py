"""The rules of Make for a profile; `python -m analysis.study.rules --profile P` writes them to its cache."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from analysis.errors import exit_status
from analysis.files import ROOT, write_text
from analysis.study.folders import Folders
from analysis.study.plan import plan
from analysis.study.profiles import command_line, parameters, source
from analysis.study.runs import Run
from analysis.study.tracing import files_of


def write_rules(profile: str, papers: Sequence[str] = ()) -> Path:
    """Writes the rules of a profile, or of some papers: the goals, and the needs and the command of each run.

    The parameters of a notebook stand in a file that is written only when they change. So a changed parameter re-runs
    only the notebooks that depend on it.
    """
    results, needs = Folders(profile), plan(profile, papers)
    results.prepare()
    lines = [f"GOALS := {_stamps(needs)}"]
    for notebook in dict.fromkeys(run.notebook for run in needs):
        values = results.cache / "parameters" / f"{notebook}.yaml"
        text = yaml.safe_dump(parameters(notebook, profile), sort_keys=True)
        if not values.exists() or values.read_text(encoding="utf-8") != text:
            write_text(values, text)
        script = source(notebook)
        files = [os.path.relpath(path, ROOT) for path in (script, *files_of(script), values)]
        lines.append(f"FILES_{notebook} := {' '.join(files)}")
    lines += [_rule(run, others) for run, others in needs.items()]
    path = results.cache / "rules" / f"{'+'.join(sorted({*papers})) or 'all'}.mk"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _rule(run: Run, needs: Iterable[Run]) -> str:
    """The rule of one run; STAMPS, RUN and stamp are variables of the Makefile."""
    settings = "".join(f" --set {key}={value}" for key, value in run.settings)
    first = f"{_stamps([run])}: $(FILES_{run.notebook}) {_stamps(needs)}".rstrip()
    return f"{first}\n\t@$(RUN) {run.notebook}{settings}\n\t$(stamp)"


def _stamps(runs: Iterable[Run]) -> str:
    return " ".join(f"$(STAMPS)/{run.name}" for run in runs)


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = command_line("analysis.study.rules", __doc__)
    parser.add_argument("papers", nargs="*", help="papers to run; none for all")
    options = parser.parse_args(arguments)
    return exit_status(lambda: write_rules(options.profile, options.papers))


if __name__ == "__main__":
    sys.exit(main())
