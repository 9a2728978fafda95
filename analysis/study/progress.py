"""What a run shows: a line at its start and at its end, a live bar on a terminal, and a log file with the rest."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size

from analysis.study.runs import Run

TOTAL, STARTED = (
    "STUDY_TOTAL",
    "STUDY_STARTED",
)  # what `reproduction` tells: how many runs, and where they count
CLEAR = "\r\033[K"  # the line that shows the bar


class Progress:
    """The log of one run, which also takes what its notebook prints; on a terminal its bar is shown live."""

    def __init__(self, run: Run, log: Path):
        self.title = " ".join([run.notebook, *(value for _, value in run.settings)])
        self.label = _number() + self.title
        self.live = sys.stderr.isatty()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        self.file = log.open("a", encoding="utf-8")  # the kernel appends to it too

    def say(self, text: str) -> None:
        """Prints one whole line in the place of the bar."""
        sys.stdout.write(f"{CLEAR if self.live else ''}{text}\n")  # at once, or lines of two runs would mix
        sys.stdout.flush()

    def write(self, text: str) -> None:
        """Takes what the notebook prints."""
        self.file.write(text)
        bar = text.replace("\r", "\n").strip().split("\n")[-1]
        if self.live and "%|" in bar:
            width = get_terminal_size().columns - 1
            sys.stderr.write(CLEAR + f"{self.title}: {bar}"[:width])
            sys.stderr.flush()

    def flush(self) -> None:
        """Puts what was taken into the file."""
        self.file.flush()

    def fileno(self) -> int:
        """The open file, for a process that writes to it by itself."""
        return self.file.fileno()


@contextmanager
def shown(run: Run, log: Path) -> Iterator[Progress]:
    """Says that a run starts, and how many seconds it took, unless it fails."""
    progress, start = Progress(run, log), time.monotonic()
    progress.say(f"{progress.label} started")
    try:
        yield progress
        progress.say(f"{progress.label}  {time.monotonic() - start:.0f} s")
    finally:
        if progress.live:
            sys.stderr.write(CLEAR)
        progress.file.close()


def _number() -> str:
    """The place of this run among those that Make starts, `[12/28] `; nothing for a run by itself."""
    if TOTAL not in os.environ:
        return ""
    total, folder = int(os.environ[TOTAL]), Path(os.environ[STARTED])
    for number in range(1, total + 1):
        try:
            (folder / str(number)).touch(exist_ok=False)  # the one that makes the file has the number
        except FileExistsError:
            continue
        return f"[{number:{len(str(total))}}/{total}] "
    return ""
