import pytest

from analysis.texts.examples import Example
from analysis.texts.glue import load_examples


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    return load_examples("toy-mrpc", split="dev", n=6)
