"""Runs one notebook with a profile's parameters: `python -m analysis.run NOTEBOOK --profile P --set name=value`.

Every notebook is a jupytext percent script. papermill executes it with the values of two sections of the profile: the
section `common` and the one with the notebook's name. Unknown parameters are errors. The executed notebook moves to
results/<profile>/notebooks/ when every cell has run.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from analysis.errors import exit_status
from analysis.study.execution import run
from analysis.study.profiles import command_line, notebook_names


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: the value is not valid YAML") from error


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = command_line("analysis.run", __doc__)
    parser.add_argument("notebook", help=f"one of {', '.join(notebook_names())}")
    parser.add_argument(
        "--set", dest="settings", type=_setting, action="append", default=[], metavar="name=value"
    )
    options = parser.parse_args(arguments)
    settings = dict(options.settings)
    name = Path(options.notebook)
    notebook = name.stem if name.suffix == ".py" else options.notebook  # a path names a notebook too
    try:
        return exit_status(lambda: run(notebook, options.profile, settings))
    except KeyboardInterrupt:
        return 130  # as a shell counts it


if __name__ == "__main__":
    sys.exit(main())
