"""`make reproduce`: one at a time for a profile, the runs counted, and the verdicts at the end."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from analysis.errors import InputError, exit_status
from analysis.study.discovery import papers
from analysis.study.folders import Folders, short
from analysis.study.index import counted, write_index
from analysis.study.profiles import load_profile
from analysis.study.progress import STARTED, TOTAL
from analysis.study.results import Results

STAMP = " && touch "  # in the command that ends every run


def reproduce(profile: str, command: Sequence[str]) -> int:
    """Runs Make with `command` on a profile that nobody else is at, and says what came out; returns its status.

    Raises InputError where another reproduction of the profile is at work.
    """
    load_profile(profile)  # no folder for one that is not there
    if _only_asks():
        return _call(command)
    with _alone(Folders(profile)):
        asked = subprocess.run([*command, "-n"], stdout=subprocess.PIPE, text=True, close_fds=False)
        if asked.returncode:
            return asked.returncode
        with tempfile.TemporaryDirectory() as folder:
            total = asked.stdout.count(STAMP)
            status = _call(command, {TOTAL: str(total), STARTED: folder})
            started = len(os.listdir(folder))
    if status:
        print(f"stopped in or after run {started} of {total}; the same command goes on from here", flush=True)
    else:
        write_index(profile)
        print("\n".join(ending(profile)), flush=True)
    return status


def _call(command: Sequence[str], variables: Mapping[str, str] = {}) -> int:
    # Make shares its jobs by open files; the lock is shared in the same way (see `_alone`).
    return subprocess.run(command, env=os.environ | dict(variables), close_fds=False).returncode


def _only_asks() -> bool:
    """Whether Make is asked what it would do (-n, -q) or told to touch (-t)."""
    flags = os.environ.get("MAKEFLAGS", "").split(" ")[0]
    return not flags.startswith("-") and bool({*"nqt"} & {*flags})


@contextmanager
def _alone(folders: Folders) -> Iterator[None]:
    """Holds a profile's lock while Make and its children live, however they end: the system frees the lock.

    The lock is of the open file, which the children share, so that it outlives this process if they do. The number of
    the process stands in the file.
    """
    import fcntl

    folders.prepare()
    path = folders.cache / ".reproduce.lock"
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise InputError(
                f"profile {folders.folder.name} is being reproduced by process {file.read().strip()}: wait for it"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        os.set_inheritable(file.fileno(), True)
        yield


def ending(profile: str) -> Iterator[str]:
    """What a reader wants at the end: the verdicts of each paper, and the files to open."""
    results = Results(profile)
    for name, paper in papers().items():
        yield f"{name}: {counted(paper.summary(results))}"
    folder = results.profile
    yield f"open {short(folder.notebooks / '99_summary.ipynb')}; index of all: {short(folder.folder / 'README.md')}"
    yield f"figures in {short(folder.figures)}/, tables in {short(folder.tables)}/"
    yield f"make report PROFILE={profile} makes web pages of the notebooks"


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="offline")
    parser.add_argument("--jobs", default="1", help="how many runs at a time, unless Make has said so itself")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="Make, and what it is to do")
    options = parser.parse_args(arguments)
    if "--jobserver" not in os.environ.get("MAKEFLAGS", ""):
        options.command.insert(1, f"--jobs={options.jobs}")
    found: list[int] = []
    try:
        wrong = exit_status(lambda: found.append(reproduce(options.profile, options.command)))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", flush=True)
        return 130  # as a shell counts it
    return wrong or found[0]


if __name__ == "__main__":
    sys.exit(main())
