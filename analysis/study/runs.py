"""One execution of a notebook: its name, its parameters, and the folders of its files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis.files import ROOT
from analysis.texts.tasks import TASKS

NOTEBOOKS = ROOT / "notebooks"
STATES = ("pretrained", "finetuned")
RUNS_PER = {"task": tuple(TASKS), "state": STATES}  # a notebook with these runs once for each of their values
VARIABLE = "STUDY_RUN"  # the environment variable with the run of a kernel
SAVED = "saved.json"  # in the folder of a run: what it has saved, for its record
PARSER = "parser"  # its name stands among the weights


def notebook_names() -> list[str]:
    """All notebooks in reading order."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.py"))


class Run(NamedTuple):
    """The notebook and the parameters of a run, and the folder that it writes to."""

    notebook: str
    parameters: Mapping[str, Any]
    scratch: str | None = None  # its folder under results/scratch/, unless the results are the profile's own
    running: bool = False  # in a kernel of its own, with a folder in the cache until it ends

    @property
    def name(self) -> str:
        """The notebook, and the task and the state of the run if it has them: `01_extract-mrpc-finetuned`."""
        return "-".join(
            [self.notebook, *(self.parameters[key] for key in RUNS_PER if key in self.parameters)]
        )


def results_folder() -> Path:
    """The folder of all results: results/, or the one that the environment variable RESULTS_DIR names."""
    return Path(os.environ.get("RESULTS_DIR") or ROOT / "results").expanduser().absolute()


class Folders:
    """The folders of one profile under results/<profile>/, or of a run under results/scratch/<run>/."""

    def __init__(self, profile: str, run: Run | None = None, home: Path | None = None):
        name = f"scratch/{run.scratch}" if run and run.scratch else profile
        self.home = home or results_folder() / name
        self.cache = self.home / "cache"
        self.folder = self.cache / "running" / run.name if run and run.running else self.home
        self.notebooks, self.figures = self.folder / "notebooks", self.folder / "figures"
        self.tables, self.provenance = self.folder / "tables", self.folder / "provenance"


def short(path: Path) -> str:
    """A path as a person types it: relative to the root of the checkout if it lies there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
