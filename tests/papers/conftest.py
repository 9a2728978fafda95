import pytest

from analysis.encoders.models import Encoder, load_encoder


@pytest.fixture(scope="session")
def tiny() -> Encoder:
    """The small random encoder: three layers of four heads."""
    return load_encoder("tiny")
