"""What a run shows on a terminal and elsewhere, and its log."""

import io
import os
from pathlib import Path

import pytest

from analysis.study.progress import STARTED, TOTAL, shown
from analysis.study.runs import Run

RUN = Run("03_test", (("task", "mrpc"),))
BAR = "\rbootstrap:  45%|████▌     | 9/20 [00:01<00:01,  9.1role/s]"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_lines_and_log_without_a_terminal(tmp_path: Path, capsys):
    log = tmp_path / "logs/03_test-mrpc.log"
    with shown(RUN, log) as progress:
        progress.write(BAR)
        progress.write("done\n")
        os.write(progress.fileno(), b"from a kernel\n")
    out, err = capsys.readouterr()
    assert out == "03_test mrpc started\n03_test mrpc  0 s\n"
    assert err == ""
    found = log.read_bytes().decode()
    assert f"{BAR}done\n" in found
    assert "from a kernel\n" in found


def test_live_bar_on_a_terminal(tmp_path: Path, monkeypatch, capsys):
    """One line, cut to the width, that each bar and each whole line replaces."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    with shown(RUN, tmp_path / "log") as progress:
        progress.write("words that are no bar\n")
        assert terminal.getvalue() == ""
        progress.write(BAR)
        bar = terminal.getvalue()
    assert bar.startswith("\r\033[K03_test mrpc: bootstrap:  45%|")
    assert len(bar.removeprefix("\r\033[K")) == 39
    assert "\n" not in terminal.getvalue()
    assert capsys.readouterr().out == "\r\033[K03_test mrpc started\n\r\033[K03_test mrpc  0 s\n"


def test_run_that_fails_has_no_end(tmp_path: Path, capsys):
    with pytest.raises(KeyError), shown(RUN, tmp_path / "log"):
        raise KeyError
    assert capsys.readouterr().out == "03_test mrpc started\n"


def test_runs_of_make_are_numbered(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "started").mkdir()
    monkeypatch.setenv(TOTAL, "12")
    monkeypatch.setenv(STARTED, str(tmp_path / "started"))
    for _ in range(2):
        with shown(RUN, tmp_path / "log"):
            pass
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[ 1/12] 03_test mrpc started"
    assert lines[2:] == ["[ 2/12] 03_test mrpc started", "[ 2/12] 03_test mrpc  0 s"]


def test_log_is_of_the_last_run(tmp_path: Path):
    for text in ("first", "second"):
        with shown(RUN, tmp_path / "log") as progress:
            progress.write(text)
    assert (tmp_path / "log").read_text() == "second"
