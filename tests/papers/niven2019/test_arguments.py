import pytest

from analysis.papers.niven2019.arguments import SETUPS, Argument, as_examples, load_arguments
from analysis.texts.examples import as_sequences


@pytest.mark.parametrize(
    ("split", "n", "ones"), [("train", 1210, 619), ("dev", 316, 156), ("test", 444, 230)]
)
def test_released_files(arct_folder, split: str, n: int, ones: int, recwarn: pytest.WarningsRecorder):
    arguments = load_arguments(arct_folder, split)
    assert (len(arguments), sum(argument.label for argument in arguments)) == (n, ones)
    assert not recwarn.list


def test_what_each_setup_shows():
    argument = Argument("a", "We need it", "It helps.", ("help counts", "help does not count"), 0)
    examples = {setup: as_sequences(as_examples([argument], setup)) for setup in SETUPS}
    texts = {setup: [example.texts for example in examples[setup]] for setup in SETUPS}
    assert texts == {
        "full": [("We need it. It helps.", "help counts"), ("We need it. It helps.", "help does not count")],
        "W": [("help counts",), ("help does not count",)],
        "RW": [("It helps.", "help counts"), ("It helps.", "help does not count")],
        "CW": [("We need it", "help counts"), ("We need it", "help does not count")],
    }
