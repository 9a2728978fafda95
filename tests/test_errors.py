"""Wrong input ends a command with one line and a status that is not 0."""

import pytest

from analysis.errors import InputError, exit_status


def test_status_and_line(capsys):
    def fail() -> None:
        raise InputError("mrpc.tsv, line 3: a text is empty; fill it in")

    assert exit_status(lambda: None) == 0
    assert exit_status(fail) == 1
    assert capsys.readouterr() == ("", "error: mrpc.tsv, line 3: a text is empty; fill it in\n")


def test_other_errors_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        exit_status(lambda: 1 / 0)
