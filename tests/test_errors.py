"""Wrong input ends a command with one line and a status that is not 0."""

import errno
import os
from pathlib import Path

import pytest

from analysis.errors import InputError, exit_status, unwritable
from analysis.files import replacing, write_text


def test_status_and_line(capsys):
    def fail() -> None:
        raise InputError("mrpc.tsv, line 3: a text is empty; fill it in")

    assert exit_status(lambda: None) == 0
    assert exit_status(fail) == 1
    assert capsys.readouterr() == ("", "error: mrpc.tsv, line 3: a text is empty; fill it in\n")


def test_other_errors_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        exit_status(lambda: 1 / 0)


def disk(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)


HDF5 = "write failed: file write failed: errno = 28, error message = 'No space left on device', buf = 0"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (disk(errno.ENOSPC), "No space left on device"),
        (disk(errno.EROFS, "/a"), "Read-only file system"),
        (disk(errno.EACCES, "/a"), "Permission denied"),
        (OSError(HDF5), "No space left on device"),
        (disk(errno.ENOENT, "/a"), ""),
        (OSError("no number"), ""),
    ],
)
def test_why_a_disk_takes_no_file(error: OSError, reason: str):
    assert unwritable(error) == reason


def test_read_only_folder_ends_a_command_with_one_line(capsys):
    def fail() -> None:
        raise disk(errno.EROFS, "/results/table.csv")

    assert exit_status(fail) == 1
    assert capsys.readouterr().err == "error: /results/table.csv cannot be written: Read-only file system\n"
    with pytest.raises(FileNotFoundError):
        exit_status(lambda: Path("/absent/file").read_text())


def full(path: Path, name: str | None = None, number: int = errno.ENOSPC) -> None:
    """Writes some bytes of a file, then its disk is full."""
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise disk(number, name)


def test_full_disk_keeps_what_was_there(tmp_path: Path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(InputError) as caught:
        full(path)
    assert (
        str(caught.value) == f"{path} cannot be written: No space left on device: mend that and run it again"
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_text() == "old"


def test_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "tables" / "table.csv"

    def refuse(folder: Path, **_: object) -> None:
        raise disk(errno.EROFS, str(folder))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match="table.csv cannot be written: Read-only file system: mend that"):
        write_text(path, "text")


def test_file_that_is_read_meanwhile_is_not_blamed_on_the_disk(tmp_path: Path):
    with pytest.raises(PermissionError):
        full(tmp_path / "table.csv", "/somewhere/else/input.csv", errno.EACCES)
