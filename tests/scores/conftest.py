import pytest

from analysis.encoders.models import Encoder, load_encoder
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples


@pytest.fixture(scope="session")
def tiny() -> Encoder:
    """Three layers of four heads with random weights."""
    return load_encoder("tiny")


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    return load_examples("toy-mrpc", split="dev", n=6)
