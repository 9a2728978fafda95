"""The one exception the study raises for wrong input, and how commands end with it."""

import sys
from collections.abc import Callable


class InputError(ValueError):
    """Wrong input: one line that names the file, row or parameter and the remedy."""


def exit_status(command: Callable[[], object]) -> int:
    """Runs a command; 0, or 1 after an InputError, which is printed as one line."""
    try:
        command()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
