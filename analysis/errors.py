"""The one exception the study raises for wrong input, and how commands end with it."""

import errno
import sys
from collections.abc import Callable, Collection
from pathlib import Path

# The errors of a disk that is full or read-only, or belongs to another user; and of a file where a folder should be.
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}
UNWRITABLE |= {errno.ENOTDIR, errno.EEXIST}


class InputError(ValueError):
    """Wrong input, as one line that names the file, row or parameter and the remedy."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in the place of a traceback."""
        return [f"error: {self}"]


def check_choice(what: str, value: object, choices: Collection[str]) -> None:
    """Raises InputError that says `what` is wrong with a value that is none of the choices."""
    if value not in [*choices]:
        raise InputError(f"{what}: choose from {', '.join(choices)}")


def cannot_be_written(path: str | Path, error: OSError) -> str:
    """Why a path cannot be written, and the remedy: the system's reason, or the file in the place of a folder."""
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        for place in (Path(path), *Path(path).parents):
            if place.is_file():
                return f"{place} is a file, where a folder is needed: move it away"
    return f"{path} cannot be written: {error.strerror}: fix that and run it again"


def exit_status(command: Callable[[], object]) -> int:
    """Runs a command; returns 0, or 1 after an InputError or a failed write, which it prints as one line."""
    try:
        command()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        print(f"error: {cannot_be_written(error.filename or 'a file', error)}", file=sys.stderr)
        return 1
    return 0
