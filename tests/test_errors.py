import ast
import errno
import re
from pathlib import Path
from pkgutil import resolve_name

import pytest
from studies import error_of

from analysis.errors import InputError, exit_status
from analysis.files import ROOT, replacing, write_text


def test_status_and_line(capsys):
    def fail() -> None:
        raise InputError("mrpc.tsv, line 3: a text is empty; fill it in")

    assert exit_status(lambda: None) == 0
    assert exit_status(fail) == 1
    assert capsys.readouterr() == ("", "error: mrpc.tsv, line 3: a text is empty; fill it in\n")


def test_read_only_folder_ends_a_command_with_one_line(capsys):
    def fail() -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/results/table.csv")

    assert exit_status(fail) == 1
    line = "/results/table.csv cannot be written: Read-only file system: fix that and run it again"
    assert capsys.readouterr().err == f"error: {line}\n"
    with pytest.raises(FileNotFoundError):
        exit_status(lambda: Path("/absent/file").read_text())


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, capsys):
    """That of results, of working copies, of a cache."""
    (tmp_path / "results").touch()
    line = f"{tmp_path / 'results'} is a file, where a folder is needed: move it away"
    assert error_of(write_text, tmp_path / "results/offline/table.csv", "") == line
    for folder in ("results", "results/offline"):
        assert exit_status((tmp_path / folder).mkdir) == 1
        assert capsys.readouterr().err == f"error: {line}\n"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(errno.ENOSPC, "No space"), InputError, "table.csv cannot be written: No space: fix that"),
        (KeyboardInterrupt("by Ctrl-C"), KeyboardInterrupt, "by Ctrl-C"),
    ],
)
def test_what_fails_halfway_keeps_what_was_there(tmp_path: Path, error, kind: type, words: str):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail_halfway() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(kind, match=words):
        fail_halfway()
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_text() == "old"


def test_names_of_the_package_in_texts_and_pages_can_be_imported():
    texts = [(path, path.read_text(encoding="utf-8")) for path in (ROOT / "docs").glob("*.md")]
    texts += [
        (path, node.value)
        for path in (ROOT / "analysis").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    pattern = re.compile(r"\banalysis(?:\.[a-z]\w*)+")
    names = {(path.name, name) for path, text in texts for name in pattern.findall(text)}
    assert ("extraction.py", "analysis.scores.sieves.rows") in names
    for _, name in sorted(names):
        assert resolve_name(name), name
