"""The one exception the study raises for wrong input, and how commands end with it."""

import errno
import re
import sys
from collections.abc import Callable

# The errors of a disk that is full or read-only, or belongs to another user.
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}


class InputError(ValueError):
    """Wrong input, as one line that names the file, row or parameter and the remedy."""


def unwritable(error: OSError) -> str:
    """The reason why a file cannot be written; empty for errors of another kind.

    HDF5 gives the number of the error only in its text.
    """
    match = re.search(r"errno = (\d+), error message = '([^']*)'", str(error))
    number, reason = (int(match[1]), match[2]) if match else (error.errno, error.strerror)
    return (reason or "") if number in UNWRITABLE else ""


def exit_status(command: Callable[[], object]) -> int:
    """Runs a command; returns 0, or 1 after an InputError or a failed write, which it prints as one line."""
    try:
        command()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if not unwritable(error):
            raise
        print(f"error: {error.filename or 'a file'} cannot be written: {unwritable(error)}", file=sys.stderr)
        return 1
    return 0
