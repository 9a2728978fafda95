import numpy as np
import pytest
from architectures import byte_level_tokenizer
from oracles import random_pairs

from analysis.encoders.layout import layouts
from analysis.encoders.models import load_tokenizer
from analysis.scores.sieves import RELATIONS, SIEVES, Sieve, resolve
from analysis.texts.examples import Example

TEXTS = {
    "pair": ("The cat , she said , didn't see the cat .", "Unhesitatingly it ran !"),
    "lopsided pair": ("Yes", "No , never did anyone see the quick brown fox jump ."),
    "single": ("The cat sat on the mat , and the dog barked at it .",),
    "single word": ("Hello",),
    "two words": ("Hello", "there"),
}
TOKENIZERS = {"bert": load_tokenizer("tiny"), "roberta": byte_level_tokenizer()}
LAYOUTS = {
    f"{name}, {kind}": layouts(tokenizer, [Example(name, *texts)])[0]
    for name, texts in TEXTS.items()
    for kind, tokenizer in TOKENIZERS.items()
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_uniform_head_scores_one(name: str):
    """Its score is the sum of the weights, which block multiplies by the logarithm of the length."""
    layout = LAYOUTS[name]
    pairs = random_pairs(len(layout))
    for role, entry in (SIEVES | resolve(None, set(pairs), "corrected")).items():
        matrix = entry.matrix(layout, pairs)
        if matrix is not None and not role.endswith("_published"):
            assert matrix.sum() == pytest.approx(1, abs=1e-5), role


def test_published_arithmetic_changes_the_windows_only():
    names = [*SIEVES, *RELATIONS, "nsubj_reversed"]
    layout = LAYOUTS["pair, bert"]
    pairs = random_pairs(len(layout))

    def matrix_of(entry: Sieve) -> np.ndarray | float:
        matrix = entry.matrix(layout, pairs)
        return 0.0 if matrix is None else matrix

    corrected, published = (
        {name: matrix_of(entry) for name, entry in resolve(names, set(RELATIONS), kind).items()}
        for kind in ("corrected", "published")
    )
    changed = {name for name in names if not np.array_equal(published[name], corrected[name])}
    assert changed == {"local", *(f"window_{width}" for width in range(1, 6))}
    np.testing.assert_array_equal(published["local"], corrected["window_2_published"])
