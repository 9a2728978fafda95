"""One execution of a notebook: its name, its parameters, and the folders of its files."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis.errors import InputError
from analysis.files import ROOT, write_text
from analysis.texts.tasks import TASKS

STATES = ("pretrained", "finetuned")
RUNS_PER = {"task": tuple(TASKS), "state": STATES}  # a notebook with these runs once for each of their values
MACHINE_ROOM = ("00_finetune", "01_extract", "08_attribution")  # executed copies that git ignores
VARIABLE = "STUDY_RUN"  # the environment variable with the run of a kernel
FORM = "2"  # of the files in the cache: another number when files of an earlier form can no longer be read
# The files of a run move to their places in this order, after all others; Make reads the stamp in cache/.
LAST = ("tables", "figures", "notebooks", "provenance", "cache")


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
    return Path(os.environ.get("RESULTS_DIR") or ROOT / "results").absolute()


class Folders:
    """The folders of one profile under results/<profile>/, or of a run under results/scratch/<run>/."""

    def __init__(self, profile: str, run: Run | None = None):
        self.home = results_folder() / (f"scratch/{run.scratch}" if run and run.scratch else profile)
        self.cache = self.home / "cache"
        self.folder = self.cache / "running" / run.name if run and run.running else self.home
        self.notebooks, self.figures = self.folder / "notebooks", self.folder / "figures"
        self.tables, self.provenance = self.folder / "tables", self.folder / "provenance"

    def prepare(self) -> None:
        """Marks a new cache, so that `make clean` may delete it; raises InputError for one of another version."""
        mark = self.cache / "form"
        if not mark.exists() and not any(self.cache.glob("[!.]*")):
            write_text(mark, FORM + "\n")
        if not mark.exists() or mark.read_text(encoding="utf-8").strip() != FORM:
            raise InputError(
                f"{self.cache} was not made by this version of the study: delete it, and run again"
            )

    def publish(self) -> None:
        """Moves the files of a run that has ended well to their places, or those that a killed process left."""
        files = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()]
        if any(path.parts[:2] == ("cache", "done") for path in files):
            for path in sorted(files, key=lambda path: path.parts[0] in LAST and LAST.index(path.parts[0])):
                (self.home / path).parent.mkdir(parents=True, exist_ok=True)
                os.replace(self.folder / path, self.home / path)
            shutil.rmtree(self.folder, ignore_errors=True)


def short(path: Path) -> str:
    """A path as a person types it: relative to the root of the checkout if it lies there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
