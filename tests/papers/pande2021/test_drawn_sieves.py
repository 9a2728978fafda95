"""The sieves that F1 draws follow the parameters of the notebook."""

import numpy as np
import pytest

from analysis.encoders.models import load_encoder
from analysis.papers.pande2021.drawn_sieves import role_sieves
from analysis.scores.extraction import read_sieves
from analysis.statistics.roles import PUBLISHED_ROLES, RELATIONS
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def example():
    """A sequence of two texts with all four relations."""
    examples = load_examples("toy-mrpc", split="dev", n=50, seed=0)
    return max(examples, key=lambda e: len({r.label for r in e.relations} & {*RELATIONS}))


def sieves(encoder, example, *choices, **named) -> dict[str, np.ndarray]:
    return role_sieves(encoder, example, parse([example]), *choices, **named)


def test_defaults_are_the_registered_roles(encoder, example):
    expected = read_sieves(encoder, example, parse([example]), PUBLISHED_ROLES)
    found = sieves(encoder, example)
    assert [*found] == [*expected]
    for role, matrix in expected.items():
        np.testing.assert_allclose(found[role], matrix, atol=1e-6, err_msg=role)


@pytest.mark.parametrize("window", [0, 1, 4])
def test_window(encoder, example, window: int):
    local = sieves(encoder, example, window)["local"]
    distance = np.abs(np.subtract.outer(np.arange(len(local)), np.arange(len(local))))
    np.testing.assert_array_equal(local > 0, distance <= window)


def test_direction(encoder, example):
    forward, backward, both = (
        sieves(encoder, example, direction=each)
        for each in ("dependent_to_head", "head_to_dependent", "both")
    )
    labels = {*RELATIONS, "syntactic"} & {*forward}
    assert labels
    for label in labels:
        np.testing.assert_allclose(backward[label], forward[label].T, atol=1e-7)
        np.testing.assert_allclose(both[label], (forward[label] + forward[label].T) / 2, atol=1e-7)


def test_relations(encoder, example):
    """The pooled role holds the pairs of the relations that are named, each pair once."""
    parses = parse([example])
    labels = [label for label in RELATIONS if any(r.label == label for r in parses[example.id])][:2]
    found = sieves(encoder, example, relations=labels)
    assert {*labels} < {*found}
    counts = [sum(r.label == label for r in parses[example.id]) for label in labels]
    expected = sum(c * found[label] for c, label in zip(counts, labels, strict=True)) / sum(counts)
    np.testing.assert_allclose(found["syntactic"], expected, atol=1e-7)
    assert not np.allclose(found["syntactic"], sieves(encoder, example)["syntactic"])
