"""Every sieve against loops over the formulas of the paper, on random maps, and the uniform head."""

import numpy as np
import pytest
from architectures import byte_level_tokenizer
from oracles import Oracle, entropy, random_maps, random_pairs

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import load_tokenizer
from analysis.scores.sieves import (
    RELATIONS,
    SIEVES,
    Sieve,
    by_label,
    offset,
    relation,
    resolve,
    sieve,
    window,
    window_published,
)
from analysis.texts.examples import Example

WINDOWS = [f"window_{width}" for width in range(6)]
OFFSETS = [f"offset_{step:+d}" for step in range(-5, 6)]
DELIMITERS = ["cls", "sep", "sep_first", "sep_last", "delimiter"]
BANK = [name for window in WINDOWS for name in (window, window + "_published")]
BANK += [*OFFSETS, *DELIMITERS, "punctuation", "match", "match_control", "match_own"]
BANK += ["own_sentence", "other_sentence", "block"]
COMPOSED = [
    "local",
    "local_published",
    "syntactic",
    "stops",
    "content",
    "cls_to_cls",
    "sep_to_sep",
    "rest_to_sep",
]
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
    found = entry.matrix(layout, pairs)
    return np.zeros((len(layout), len(layout))) if found is None else found


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("role", [*BANK, *COMPOSED])
def test_scores_equal_loops_over_the_formulas(name: str, role: str):
    layout = LAYOUTS[name]
    pairs, maps = random_pairs(len(layout)), random_maps(len(layout))
    expected = Oracle(layout.tokens, pairs).scores(role, maps)
    found = SIEVES[role].matrix(layout, pairs)
    assert (found is None) == np.isnan(expected).all()
    if found is not None:
        assert found.dtype == np.float32
        assert found.shape == (len(layout), len(layout))
        np.testing.assert_allclose(score(SIEVES[role], found, maps), expected, rtol=2e-6)


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
    found = sieves[role + suffix].matrix(layout, pairs)
    np.testing.assert_allclose(
        score(sieves[role + suffix], found, maps),
        Oracle(layout.tokens, pairs).scores(role + suffix, maps),
        rtol=2e-6,
    )
    assert len(sieves[role + suffix].pooled(by_label([pairs])).ranges) == len(pairs[role])


@pytest.mark.parametrize("name", LAYOUTS)
def test_uniform_head_scores_one_and_block_the_logarithm_of_its_length(name: str):
    layout = LAYOUTS[name]
    pairs, size = random_pairs(len(layout)), len(layout)
    uniform = np.full((1, size, size), 1 / size)
    sieves = SIEVES | resolve(None, set(pairs), "corrected")
    for role, entry in sieves.items():
        matrix = matrix_of(entry, layout, pairs)
        if not matrix.any():
            continue
        expected = np.log(size) if role == "block" else 1
        if role.endswith("_published"):
            assert matrix.sum() <= 1 + 1e-6
            assert score(entry, matrix, uniform)[0] <= 1 + 1e-6
            continue
        assert matrix.sum() == pytest.approx(1, abs=1e-6)
        assert (matrix >= 0).all()
        assert score(entry, matrix, uniform)[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("width", range(1, 6))
def test_published_window_falls_short_by_its_last_rows_only(width: int):
    size = 12
    true, published = window(size, width).matrix(), window_published(size, width).matrix()
    bands = [min(t + width, size - 1) - max(t - width, 0) + 1 for t in range(size)]
    counted = [min(t + width, size) + 1 - max(t - width, 0) for t in range(size)]
    np.testing.assert_allclose(true.sum(1), 1 / size, rtol=1e-6)
    np.testing.assert_allclose(published.sum(1) * size, np.array(bands) / counted, rtol=1e-6)
    assert (published.sum(1) < true.sum(1) - 1e-6).tolist() == [False] * (size - width) + [True] * width


def test_first_and_last_rows_of_the_local_sieve_by_hand():
    matrix = SIEVES["local"].matrix(LAYOUTS["pair, bert"], {})
    size = len(LAYOUTS["pair, bert"])
    for row, marked in [(0, [0, 1, 2]), (1, [0, 1, 2, 3]), (size - 1, [size - 3, size - 2, size - 1])]:
        assert np.flatnonzero(matrix[row]).tolist() == marked
        np.testing.assert_allclose(matrix[row][marked], 1 / len(marked) / size, rtol=1e-6)


@pytest.mark.parametrize(("step", "used"), [(-2, [2, 3, 4]), (2, [0, 1, 2]), (0, [0, 1, 2, 3, 4])])
def test_offsets_leave_out_the_tokens_without_such_a_neighbour(step: int, used: list[int]):
    matrix = offset(5, step).matrix()
    assert np.flatnonzero(matrix.any(1)).tolist() == used
    assert all(matrix[t, t + step] == pytest.approx(1 / len(used)) for t in used)


@pytest.mark.parametrize("width", [6, 8, 40])
def test_a_window_is_as_wide_as_it_says(width: int):
    size = 20
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    for form in (window(size, width), window_published(size, width)):
        np.testing.assert_array_equal(form.matrix() > 0, distance <= width)
    np.testing.assert_allclose(window(size, width).matrix().sum(1), 1 / size, rtol=1e-6)


@pytest.mark.parametrize("step", [-19, -7, 6, 7, 19])
def test_an_offset_is_as_far_as_it_says(step: int):
    matrix = offset(20, step).matrix()
    np.testing.assert_allclose(matrix, np.eye(20, k=step) / (20 - abs(step)), rtol=1e-6)


def test_block_by_hand():
    layout = LAYOUTS["two words, bert"]
    assert layout.tokens == ("[CLS]", "hello", "[SEP]", "there", "[SEP]")
    own = np.array([[0, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0]]) / 5
    np.testing.assert_allclose(SIEVES["block"].matrix(layout, {}), own, rtol=1e-6)
    np.testing.assert_allclose(
        SIEVES["other_sentence"].matrix(layout, {})[:, [3, 1]], own[:, [1, 3]], rtol=1e-6
    )
    assert SIEVES["block"].entropy
    assert not SIEVES["own_sentence"].entropy


@pytest.mark.parametrize("role", ["block", "own_sentence", "other_sentence", "sep_last"])
def test_roles_of_pairs_are_absent_from_single_texts(role: str):
    assert SIEVES[role].matrix(LAYOUTS["single, bert"], {}) is None
    assert SIEVES[role].matrix(LAYOUTS["single word, roberta"], {}) is None
    assert SIEVES[role].matrix(LAYOUTS["pair, bert"], {}) is not None


def test_delimiter_is_the_mean_of_its_columns():
    for name, count in [("pair, bert", 3), ("single, bert", 2), ("pair, roberta", 4)]:
        layout = LAYOUTS[name]
        cls, sep = (SIEVES[role].matrix(layout, {}) for role in ("cls", "sep"))
        expected = (cls + (count - 1) * sep) / count
        np.testing.assert_allclose(SIEVES["delimiter"].matrix(layout, {}), expected, rtol=1e-6)


def test_syntactic_is_the_mean_of_relations_weighted_by_their_pairs():
    layout = LAYOUTS["pair, bert"]
    pairs = random_pairs(len(layout))
    parts = [len(pairs[r]) * relation(r).matrix(layout, pairs) for r in RELATIONS if r in pairs]
    total = sum(len(pairs.get(r, ())) for r in RELATIONS)
    matrix = SIEVES["syntactic"].matrix(layout, pairs)
    np.testing.assert_allclose(matrix, sum(parts) / total, rtol=1e-5)
    assert len(SIEVES["syntactic"].pooled(by_label([pairs])).ranges) == total == 6


def test_published_arithmetic_changes_the_windows_only():
    names = [*SIEVES, *RELATIONS, "nsubj_reversed"]
    corrected, published = (resolve(names, set(RELATIONS), kind) for kind in ("corrected", "published"))
    assert list(corrected) == list(published) == names
    layout = LAYOUTS["pair, bert"]
    pairs = random_pairs(len(layout))
    changed = {
        name
        for name in names
        if not np.array_equal(
            matrix_of(corrected[name], layout, pairs), matrix_of(published[name], layout, pairs)
        )
    }
    assert changed == {"local", *WINDOWS[1:]}
    np.testing.assert_array_equal(
        matrix_of(published["local"], layout, pairs), matrix_of(SIEVES["window_2_published"], layout, pairs)
    )


def test_decorator_registers_and_returns_the_function(monkeypatch):
    monkeypatch.delitem(SIEVES, "even", raising=False)

    @sieve("even", bank=True)
    def even(layout, pairs):
        return np.eye(len(layout), dtype=np.float32) / len(layout)

    try:
        assert SIEVES["even"] == Sieve(even, entropy=False, bank=True)
        assert resolve(["even"], set(), "published")["even"].function is even
        assert "even" in resolve(None, set(), "corrected")
    finally:
        del SIEVES["even"]
