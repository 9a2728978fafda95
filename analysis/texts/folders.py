"""The files in a folder of texts."""

from collections.abc import Collection
from pathlib import Path

from analysis.errors import InputError
from analysis.files import suffix


def files_of(folder: Path, suffixes: Collection[str], pattern: str = "**/*") -> list[Path]:
    """The files of a folder that end in one of the suffixes, by name; hidden files and folders are left out.

    Raises InputError for a link to a folder, which is not searched, and for one that leads nowhere.
    """
    paths = [
        path
        for path in sorted(folder.glob(pattern))
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    for path in paths:
        if path.is_symlink() and not path.is_file():
            what = "a folder" if path.exists() else "nothing"
            raise InputError(f"{path} is a link to {what}: put the files themselves there, or links to them")
    return [path for path in paths if suffix(path) in suffixes and path.is_file()]
