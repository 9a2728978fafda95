"""`make reproduce`: locks the profile, counts the runs, and prints the verdicts at the end."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from analysis.errors import InputError, exit_status
from analysis.study.folders import Folders, short
from analysis.study.profiles import command_line, load_profile
from analysis.study.progress import STARTED, TOTAL

STAMP = " && touch "  # part of the last command of every run


def reproduce(profile: str, command: Sequence[str]) -> int:
    """Runs Make with `command` for a profile and prints the verdicts; returns the exit status.

    Raises InputError while another process reproduces the profile.
    """
    load_profile(profile)  # raises for an unknown profile before a folder is made
    if _only_asks():
        return _call(command)
    with _lock(Folders(profile)):
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
        _finish(profile)
    return status


def _finish(profile: str) -> None:
    """Writes the index, and prints the verdicts of each paper and the files to open."""
    from analysis.study.index import verdicts, write_index  # loads pandas, which nothing before the end needs

    folders, index = Folders(profile), write_index(profile)
    for line in verdicts(profile):
        print(line)
    print(f"open {short(folders.notebooks / '99_summary.ipynb')}; index of all: {short(index)}")
    print(f"figures in {short(folders.figures)}/, tables in {short(folders.tables)}/")
    print(f"make report PROFILE={profile} makes web pages of the notebooks", flush=True)


def _call(command: Sequence[str], variables: Mapping[str, str] = {}) -> int:
    # Open files pass to the child: Make's own, which share out its jobs, and that of the lock (see `_lock`).
    return subprocess.run(command, env=os.environ | dict(variables), close_fds=False).returncode


def _only_asks() -> bool:
    """Whether Make runs nothing: it shows what it would do (-n), asks (-q) or touches (-t)."""
    flags = os.environ.get("MAKEFLAGS", "").split(" ")[0]
    return not flags.startswith("-") and bool({*"nqt"} & {*flags})


@contextmanager
def _lock(folders: Folders) -> Iterator[None]:
    """Locks a profile as long as this process or one of its children runs.

    The lock belongs to the open file, which the children inherit; the system releases it when the last of them ends.
    The file holds the number of this process.
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


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = command_line("analysis.study.reproduction", __doc__)
    parser.add_argument("--jobs", default="1", help="how many runs at a time, unless Make has said so itself")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="Make, and what it is to do")
    options = parser.parse_args(arguments)
    if "--jobserver" not in os.environ.get("MAKEFLAGS", ""):
        options.command.insert(1, f"--jobs={options.jobs}")
    try:
        return exit_status(lambda: sys.exit(reproduce(options.profile, options.command)))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", flush=True)
        return 130  # as a shell counts it


if __name__ == "__main__":
    sys.exit(main())
