"""The output of a run: a line at its start and its end, a live bar on a terminal, and a log file."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size

from analysis.study.runs import Run

# Environment variables that `reproduction` sets: the number of runs, and the folder in which they count themselves.
TOTAL, STARTED = "STUDY_TOTAL", "STUDY_STARTED"
CLEAR = "\r\033[K"  # clears the line of the bar


class Progress:
    """The log of one run, which takes what its notebook prints; a terminal shows the bar live."""

    def __init__(self, run: Run, log: Path):
        self.title = " ".join([run.notebook, *(value for _, value in run.settings)])
        self.label = _number() + self.title
        self.live = sys.stderr.isatty()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        self.file = log.open("a", encoding="utf-8")  # the kernel appends to it too

    def say(self, text: str) -> None:
        """Prints one line in the place of the bar, in one piece, so that lines of two runs do not mix."""
        print(f"{CLEAR if self.live else ''}{text}\n", end="", flush=True)

    def write(self, text: str) -> None:
        """Takes what the notebook prints."""
        self.file.write(text)
        bar = text.replace("\r", "\n").strip().split("\n")[-1]
        if self.live and "%|" in bar:
            width = get_terminal_size().columns - 1
            print(CLEAR + f"{self.title}: {bar}"[:width], end="", file=sys.stderr, flush=True)

    def flush(self) -> None:
        """Flushes the log file."""
        self.file.flush()

    def fileno(self) -> int:
        """The number of the open file, for a process that writes to it itself."""
        return self.file.fileno()


@contextmanager
def shown(run: Run, log: Path) -> Iterator[Progress]:
    """Prints that a run starts, and how many seconds it took if it does not fail."""
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
    """The number of this run among those that Make starts, such as `[12/28] `; empty for a single run."""
    if TOTAL not in os.environ:
        return ""
    total, folder = int(os.environ[TOTAL]), Path(os.environ[STARTED])
    for number in range(1, total + 1):
        try:
            (folder / str(number)).touch(exist_ok=False)  # the run that makes this file has this number
        except FileExistsError:
            continue
        return f"[{number:{len(str(total))}}/{total}] "
    return ""
