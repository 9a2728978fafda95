"""Arguments: the released files are read, and any other file gives one clear error line."""

import os
from pathlib import Path

import pytest

from analysis.errors import InputError
from analysis.papers.niven2019.arguments import (
    COLUMNS,
    SETUPS,
    SPLITS,
    Argument,
    as_examples,
    load_arguments,
    read_arguments,
)
from analysis.texts.examples import as_sequences

ARCT = Path(os.environ.get("DATA_DIR", "nowhere")) / "arct"
GOOD = ("a1", "it is so", "it is not so", "1", "Reason", "Claim", "Title", "Info")
needs_data = pytest.mark.skipif(not ARCT.is_dir(), reason="DATA_DIR holds no arct")


def write(path: Path, *rows: tuple[str, ...]) -> Path:
    path.write_text("\n".join("\t".join(row) for row in (COLUMNS, *rows)) + "\n", encoding="utf-8")
    return path


def changed(**cells: str) -> tuple[str, ...]:
    return tuple((dict(zip(COLUMNS, GOOD, strict=True)) | cells).values())


@needs_data
@pytest.mark.parametrize(
    ("split", "n", "ones"), [("train", 1210, 619), ("dev", 316, 156), ("test", 444, 230)]
)
def test_released_files(split: str, n: int, ones: int, recwarn: pytest.WarningsRecorder):
    arguments = load_arguments(ARCT, split)
    assert (len(arguments), sum(each.label for each in arguments)) == (n, ones)
    assert not recwarn.list


@needs_data
def test_the_swapped_file_holds_every_argument_twice_and_tells_them_apart():
    swapped, train = load_arguments(ARCT, "train-w-swap"), load_arguments(ARCT, "train")
    assert len({each.id for each in swapped}) == 2420
    assert {each.id.removesuffix("-swapped") for each in swapped} == {each.id for each in train}
    known = {(each.warrants, each.label) for each in swapped}
    assert all(((each.warrants, each.label) in known) for each in train)
    assert all(((each.warrants[::-1], 1 - each.label) in known) for each in train)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (changed(warrant1=" "), "line 3: warrant1 is empty"),
        (changed(claim=""), "line 3: claim is empty"),
        (changed(warrant1="It is so"), "line 3: the two warrants are equal"),
        (changed(correctLabelW0orW1="2"), "line 3: label '2' is not one of 0, 1"),
        (GOOD, "line 3: id 'a1' stands on an earlier line too"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, row: tuple[str, ...], message: str):
    path = write(tmp_path / "train-full.txt", GOOD, row)
    with pytest.raises(InputError, match=message):
        read_arguments(path)


def test_a_swapped_row_is_accepted_once(tmp_path: Path):
    swap = changed(warrant0=GOOD[2], warrant1=GOOD[1], correctLabelW0orW1="0")
    found = read_arguments(write(tmp_path / "f.txt", GOOD, swap))
    assert [(each.id, each.label) for each in found] == [("a1", 1), ("a1-swapped", 0)]
    with pytest.raises(InputError, match="line 4: id 'a1'"):
        read_arguments(write(tmp_path / "f.txt", GOOD, swap, swap))


def test_columns_rows_and_other_contents(tmp_path: Path):
    path = write(tmp_path / "train-full.txt", GOOD)
    with pytest.raises(InputError, match="1 rows, ARCT has 1,210"):
        load_arguments(tmp_path, "train")
    with pytest.warns(UserWarning, match="is not the released file"):
        read_arguments(path, md5="0" * 32)
    path.write_text("#id\twarrant0\na\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column warrant1, "):
        load_arguments(tmp_path, "train")
    with pytest.raises(InputError, match="no such file"):
        load_arguments(tmp_path / "none", "dev")
    with pytest.raises(InputError, match="split 'other' is unknown"):
        load_arguments(tmp_path, "other")


def test_what_each_setup_shows():
    argument = Argument("a", "We need it", "It helps.", ("help counts", "help does not count"), 0)
    texts = {setup: [one.texts for one in as_sequences(as_examples([argument], setup))] for setup in SETUPS}
    assert texts == {
        "full": [("We need it. It helps.", "help counts"), ("We need it. It helps.", "help does not count")],
        "W": [("help counts",), ("help does not count",)],
        "RW": [("It helps.", "help counts"), ("It helps.", "help does not count")],
        "CW": [("We need it", "help counts"), ("We need it", "help does not count")],
    }
    with pytest.raises(InputError, match="set-up 'X' is unknown"):
        as_examples([argument], "X")


def test_bundled_arguments_are_read_like_files():
    arguments = load_arguments("bundled", "dev", 10)
    assert len({each.id for each in arguments}) == 10
    assert all(each.negated and each.negated != each.claim for each in arguments)
    assert set(SPLITS) == {"train", "dev", "test"}
