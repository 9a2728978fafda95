"""Arguments: the released files, and what each set-up shows of an argument."""

import os
from pathlib import Path

import pytest

from analysis.errors import InputError
from analysis.papers.niven2019.arguments import SETUPS, Argument, as_examples, load_arguments
from analysis.texts.examples import as_sequences

ARCT = Path(os.environ.get("DATA_DIR", "nowhere")) / "arct"
needs_data = pytest.mark.skipif(not ARCT.is_dir(), reason="DATA_DIR holds no arct")


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
    known = {(each.id.removesuffix("-swapped"), each.warrants, each.label) for each in swapped}
    assert len({each.id for each in swapped}) == len(known) == 2420
    assert all((each.id, each.warrants, each.label) in known for each in train)
    assert all((each.id, each.warrants[::-1], 1 - each.label) in known for each in train)


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
