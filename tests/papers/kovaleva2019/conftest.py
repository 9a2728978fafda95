"""What the tests of this paper share."""

import pytest

from analysis.encoders.models import Encoder, load_encoder


@pytest.fixture(scope="session")
def tiny() -> Encoder:
    """The small random encoder."""
    return load_encoder("tiny")
