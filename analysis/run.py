"""Runs one notebook with a profile's parameters: `python -m analysis.run NOTEBOOK --profile P --set name=value`.

Every notebook is a jupytext percent script; papermill executes it with the values of the profile's sections
`common` and of the notebook's own name. Names that no parameters cell knows are errors. The executed notebook
reaches results/<profile>/notebooks/ only when every cell has run.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from analysis.errors import exit_status
from analysis.study.execution import run
from analysis.study.profiles import notebook_names


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
    parser = argparse.ArgumentParser(prog="python -m analysis.run", description=__doc__.splitlines()[0])
    parser.add_argument("notebook", help=f"one of {', '.join(notebook_names())}")
    parser.add_argument("--profile", default="offline")
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
