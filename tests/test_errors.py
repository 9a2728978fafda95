"""Wrong input ends a command with one line and a status that is not 0."""

import errno
import os
from pathlib import Path

import pytest

from analysis.errors import InputError, exit_status
from analysis.files import replacing


def test_status_and_line(capsys):
    def fail() -> None:
        raise InputError("mrpc.tsv, line 3: a text is empty; fill it in")

    assert exit_status(lambda: None) == 0
    assert exit_status(fail) == 1
    assert capsys.readouterr() == ("", "error: mrpc.tsv, line 3: a text is empty; fill it in\n")


def disk(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)


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
