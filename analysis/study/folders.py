"""Where the files of a profile, or of a run with other values, lie, and how a run replaces them."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from analysis.errors import InputError
from analysis.files import ROOT, write_text

STATES = ("pretrained", "finetuned")
FORM = "2"  # of the files in the cache; it changes when files of an earlier form can no longer be read


class Folders:
    """The folders of one profile under results/<profile>/, or of a run under results/scratch/<scratch>/.

    A run writes to the folder `stage` in the cache; its files replace those in `home` when it has ended.
    The environment variable RESULTS_DIR names another place for results/.
    """

    def __init__(self, profile: str, scratch: str | None = None, stage: str | Path | None = None):
        results = Path(os.environ.get("RESULTS_DIR", ROOT / "results"))
        self.home = results / "scratch" / scratch if scratch else results / profile
        self.folder = Path(stage) if stage else self.home
        for name in ("notebooks", "figures", "tables", "provenance"):
            setattr(self, name, self.folder / name)
        self.cache = self.home / "cache"

    def prepare(self) -> None:
        """Marks a new cache, so that `make clean` may delete it; raises InputError for one of another version."""
        mark = self.cache / "form"
        if not mark.exists() and not any(self.cache.glob("[!.]*")):
            write_text(mark, FORM + "\n")
        if not mark.exists() or mark.read_text(encoding="utf-8").strip() != FORM:
            raise InputError(
                f"{self.cache} was not made by this version of the study: delete it, and run again"
            )

    def lock(self, run: str) -> FileLock:
        """The lock of a run, which the system releases when its process ends."""
        (self.cache / "locks").mkdir(parents=True, exist_ok=True)
        return FileLock(self.cache / "locks" / f"{run}.lock")

    def publish(self, run: str) -> None:
        """Moves the files in cache/finished/<run>/ to their places, the stamp that Make reads last.

        A process that is killed meanwhile leaves the other files there, for the next call.
        """
        finished = self.cache / "finished" / run
        stamps = finished / "cache" / "done"
        files = (path for path in finished.rglob("*") if path.is_file())
        for path in sorted(files, key=lambda path: (path.is_relative_to(stamps), path)):
            target = self.home / path.relative_to(finished)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
        shutil.rmtree(finished, ignore_errors=True)

    def publish_all(self) -> None:
        """Moves the files of all runs that ended and were killed while their files were moved."""
        for finished in (self.cache / "finished").glob("*"):
            with (
                suppress(Timeout),
                self.lock(finished.name).acquire(timeout=0),
            ):  # else its own process moves them
                self.publish(finished.name)


def short(path: Path) -> str:
    """A path as a person types it: relative to the root of the checkout if it lies there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
