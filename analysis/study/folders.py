"""Where the files of a profile, or of a run with other values, lie, and how a run replaces them."""

import os
import shutil
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
        for name in ("notebooks", "figures", "tables", "provenance", "checkout"):
            setattr(self, name, self.folder / name)
        self.cache = self.home / "cache"

    def prepare(self) -> None:
        """Makes the cache if it is missing; raises InputError for the cache of another version of the study."""
        mark = self.cache / "form"
        filled = self.cache.is_dir() and any(not path.name.startswith(".") for path in self.cache.iterdir())
        if filled and not mark.exists():
            raise InputError(
                f"{self.cache} has no file {mark.name}, so it is no cache of this study: delete it yourself"
            )
        if filled and mark.read_text(encoding="utf-8").strip() != FORM:
            raise InputError(
                f"{self.cache} was made by another version of the study: delete it (make clean) and run again"
            )
        if not filled:
            write_text(mark, FORM + "\n")

    def lock(self, run: str) -> FileLock:
        """The lock of a run, which the system releases when its process ends."""
        (self.cache / "locks").mkdir(parents=True, exist_ok=True)
        return FileLock(self.cache / "locks" / f"{run}.lock")

    def publish(self, run: str) -> None:
        """Moves the files in cache/finished/<run>/ to their places, the stamp that Make reads last.

        A process that is killed meanwhile leaves the other files there, for the next call. Those in checkout/ replace
        files of the checkout.
        """
        finished = self.cache / "finished" / run
        stamps = finished / "cache" / "done"
        files = (path for path in finished.rglob("*") if path.is_file())
        for path in sorted(files, key=lambda path: (path.is_relative_to(stamps), path)):
            if path.is_relative_to(finished / "checkout"):  # perhaps on another disk
                write_text(ROOT / path.relative_to(finished / "checkout"), path.read_text(encoding="utf-8"))
                continue
            target = self.home / path.relative_to(finished)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
        shutil.rmtree(finished, ignore_errors=True)

    def publish_all(self) -> None:
        """Moves the files of all runs that ended and were killed while their files were moved."""
        for finished in (self.cache / "finished").glob("*"):
            try:
                with self.lock(finished.name).acquire(timeout=0):
                    self.publish(finished.name)
            except Timeout:  # its own process is moving them
                pass


def short(path: Path) -> str:
    """A path as a person types it: relative to the root of the checkout if it lies there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
