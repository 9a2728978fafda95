import numpy as np
import pytest
from oracles import random_pairs

from analysis.encoders.layout import layouts
from analysis.scores.sieves import RELATIONS, SIEVES, Sieve, resolve
from analysis.texts.examples import Example

PAIR = ("The cat , she said , didn't see the cat .", "Unhesitatingly it ran !")


@pytest.mark.parametrize(
    "texts", [PAIR, ("The cat sat on the mat , and the dog barked at it .",), ("Yes", "No")]
)
def test_uniform_head_scores_one(tiny, texts: tuple[str, ...]):
    """Its score is the sum of the weights, which block multiplies by the logarithm of the length."""
    [layout] = layouts(tiny.tokenizer, [Example("a", *texts)])
    pairs = random_pairs(len(layout))
    for role, entry in (SIEVES | resolve(None, set(pairs), "corrected")).items():
        matrix = entry.function(layout, pairs)
        if matrix is not None and not role.endswith("_published"):
            assert matrix.sum() == pytest.approx(1, abs=1e-5), role


def test_published_arithmetic_changes_the_windows_only(tiny):
    names = [*SIEVES, *RELATIONS, "nsubj_reversed"]
    [layout] = layouts(tiny.tokenizer, [Example("a", *PAIR)])
    pairs = random_pairs(len(layout))

    def matrix_of(entry: Sieve) -> np.ndarray | float:
        matrix = entry.function(layout, pairs)
        return 0.0 if matrix is None else matrix

    corrected, published = (
        {name: matrix_of(entry) for name, entry in resolve(names, set(RELATIONS), kind).items()}
        for kind in ("corrected", "published")
    )
    changed = {name for name in names if not np.array_equal(published[name], corrected[name])}
    assert changed == {"local", *(f"window_{width}" for width in range(1, 6))}
    np.testing.assert_array_equal(published["local"], corrected["window_2_published"])
