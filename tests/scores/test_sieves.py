import numpy as np
import pytest
from architectures import byte_level_tokenizer
from oracles import Oracle, entropy, random_maps, random_pairs

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import load_tokenizer
from analysis.scores.sieves import RELATIONS, SIEVES, Sieve, by_label, relation, resolve
from analysis.texts.examples import Example

WINDOWS = [f"window_{width}" for width in range(6)]
OFFSETS = [f"offset_{step:+d}" for step in range(-5, 6)]
DELIMITERS = ["cls", "sep", "sep_first", "sep_last", "delimiter"]
BANK = [name for window in WINDOWS for name in (window, window + "_published")]
BANK += [*OFFSETS, *DELIMITERS, "punctuation", "match", "match_control", "match_own"]
BANK += ["own_sentence", "other_sentence", "block"]
COMPOSED = ["local", "local_published", "syntactic", "stops", "content"]
COMPOSED += ["cls_to_cls", "sep_to_sep", "rest_to_sep"]
TEXTS = {
    "pair": ("The cat , she said , didn't see the cat .", "Unhesitatingly it ran !"),
    "lopsided pair": ("Yes", "No , never did anyone see the quick brown fox jump ."),
    "single": ("The cat sat on the mat , and the dog barked at it .",),
    "single word": ("Hello",),
    "two words": ("Hello", "there"),
}


def examine(name: str, roberta: bool = False) -> Layout:
    """The layout of one of the texts."""
    tokenizer = byte_level_tokenizer() if roberta else load_tokenizer("tiny")
    return layouts(tokenizer, [Example(name, *TEXTS[name])])[0]


LAYOUTS = {
    f"{name}, {kind}": examine(name, kind == "roberta") for name in TEXTS for kind in ("bert", "roberta")
}


def score(entry: Sieve, matrix: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """T * sum(W * A), the rows of A times their entropy where the role says so."""
    if entry.entropy:
        maps = maps * np.array([[entropy(row) for row in attention] for attention in maps])[:, :, None]
    return len(matrix) * np.einsum("qk,hqk->h", matrix.astype(float), maps)


def matrix_of(entry: Sieve, layout: Layout, pairs: dict) -> np.ndarray:
    """A role's matrix, all zero where the role is absent."""
    result = entry.matrix(layout, pairs)
    return np.zeros((len(layout), len(layout))) if result is None else result


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("role", [*BANK, *COMPOSED])
def test_scores_equal_loops_over_the_formulas(name: str, role: str):
    layout = LAYOUTS[name]
    pairs, maps = random_pairs(len(layout)), random_maps(len(layout))
    expected = Oracle(layout.tokens, pairs).scores(role, maps)
    result = SIEVES[role].matrix(layout, pairs)
    assert (result is None) == np.isnan(expected).all()
    if result is not None:
        np.testing.assert_allclose(score(SIEVES[role], result, maps), expected, rtol=2e-6)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("role", ["nsubj", "dobj", "advmod", "case", "amod"])
@pytest.mark.parametrize("suffix", ["", "_reversed"])
def test_relations_equal_loops_over_pieces_and_pairs(name: str, role: str, suffix: str):
    layout = LAYOUTS[name]
    pairs, maps = random_pairs(len(layout)), random_maps(len(layout))
    sieves = resolve(None, set(pairs), "corrected")
    if role == "amod":
        assert role + suffix not in sieves
        assert relation(role, backward=bool(suffix)).matrix(layout, pairs) is None
        return
    result = sieves[role + suffix].matrix(layout, pairs)
    expected = Oracle(layout.tokens, pairs).scores(role + suffix, maps)
    np.testing.assert_allclose(score(sieves[role + suffix], result, maps), expected, rtol=2e-6)
    assert len(sieves[role + suffix].pooled(by_label([pairs])).ranges) == len(pairs[role])


@pytest.mark.parametrize("name", LAYOUTS)
def test_uniform_head_scores_one_and_block_the_logarithm_of_its_length(name: str):
    layout = LAYOUTS[name]
    pairs, size = random_pairs(len(layout)), len(layout)
    uniform = np.full((1, size, size), 1 / size)
    sieves = SIEVES | resolve(None, set(pairs), "corrected")
    for role, entry in sieves.items():
        matrix = matrix_of(entry, layout, pairs)
        if matrix.any() and not role.endswith("_published"):
            expected = np.log(size) if role == "block" else 1
            assert score(entry, matrix, uniform)[0] == pytest.approx(expected, rel=1e-5)


def test_published_arithmetic_changes_the_windows_only():
    names = [*SIEVES, *RELATIONS, "nsubj_reversed"]
    corrected, published = (resolve(names, set(RELATIONS), kind) for kind in ("corrected", "published"))
    layout = LAYOUTS["pair, bert"]
    pairs = random_pairs(len(layout))
    result, expected = (
        {name: matrix_of(sieves[name], layout, pairs) for name in names} for sieves in (published, corrected)
    )
    changed = {name for name in names if not np.array_equal(result[name], expected[name])}
    assert changed == {"local", *WINDOWS[1:]}
    np.testing.assert_array_equal(result["local"], expected["window_2_published"])
