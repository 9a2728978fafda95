"""The one exception the study raises for wrong input."""


class InputError(ValueError):
    """Wrong input: one line that names the file, row or parameter and the remedy."""
