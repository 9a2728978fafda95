"""Where the files of a profile, or of a run with other values, lie."""

import os
from pathlib import Path

from analysis.errors import InputError
from analysis.files import ROOT, write_text

STATES = ("pretrained", "finetuned")
FORM = "2"  # of the files in the cache; it changes when files of an earlier form can no longer be read


class Folders:
    """The folders of one profile under results/<profile>/, or of a run under results/scratch/<scratch>/.

    The environment variable RESULTS_DIR names another place for results/.
    """

    def __init__(self, profile: str, scratch: str | None = None):
        results = Path(os.environ.get("RESULTS_DIR", ROOT / "results"))
        self.folder = results / "scratch" / scratch if scratch else results / profile
        for name in ("notebooks", "figures", "tables", "provenance", "cache"):
            setattr(self, name, self.folder / name)

    def prepare(self) -> None:
        """Makes the cache if it is missing; raises InputError for the cache of another version of the study."""
        mark = self.cache / "form"
        there = self.cache.is_dir() and any(not path.name.startswith(".") for path in self.cache.iterdir())
        if there and (not mark.exists() or mark.read_text(encoding="utf-8").strip() != FORM):
            raise InputError(
                f"{self.cache} was made by another version of the study: delete it (make clean) and run again"
            )
        if not there:
            write_text(mark, FORM + "\n")


def short(path: Path) -> str:
    """A path as a person types it: relative to the root of the checkout if it lies there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
