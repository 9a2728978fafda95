import numpy as np
import pytest

from analysis.papers.pande2021.drawing import role_sieves
from analysis.scores.extraction import read_sieves
from analysis.statistics.roles import DIRECTIONS, RELATIONS, ROLES
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse


@pytest.fixture(scope="module")
def example():
    """A sequence of two texts with all four relations."""
    examples = load_examples("toy-mrpc", split="dev", n=50, seed=0)
    return max(examples, key=lambda e: len({r.label for r in e.relations} & {*RELATIONS}))


def test_defaults_are_the_registered_roles(tiny, example):
    expected = read_sieves(tiny, example, parse([example]), [*ROLES])
    sieves = role_sieves(tiny, example, parse([example]))
    assert [*sieves] == [*expected]
    for role, matrix in expected.items():
        np.testing.assert_allclose(sieves[role], matrix, atol=1e-6, err_msg=role)
    wide = read_sieves(tiny, example, parse([example]), ["window_4"])["window_4"]
    np.testing.assert_array_equal(role_sieves(tiny, example, parse([example]), 4)["local"], wide)


def test_direction_and_relations(tiny, example):
    """The pooled role holds the pairs of the relations that are named, each pair once."""
    parses = parse([example])
    present = [pair.label for pair in parses[example.id]]
    labels = [label for label in RELATIONS if label in present][:2]
    forward, backward, both = (
        role_sieves(tiny, example, parses, relations=labels, direction=direction) for direction in DIRECTIONS
    )
    for label in (*labels, "syntactic"):
        np.testing.assert_allclose(backward[label], forward[label].T, atol=1e-7)
        np.testing.assert_allclose(both[label], (forward[label] + forward[label].T) / 2, atol=1e-7)
    counts = [present.count(label) for label in labels]
    expected = sum(c * forward[label] for c, label in zip(counts, labels, strict=True)) / sum(counts)
    np.testing.assert_allclose(forward["syntactic"], expected, atol=1e-7)
    assert not np.allclose(forward["syntactic"], role_sieves(tiny, example, parses)["syntactic"])
