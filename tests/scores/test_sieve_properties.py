"""Sieves of any sequence: no negative weight, rows of one weight that sum to 1, and nothing where a role is absent."""

import numpy as np
import torch
from architectures import tokenizer_of
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import random_pairs

from analysis.encoders.layout import Layout, layouts
from analysis.scores.extraction import Scored, check_sieve, stack
from analysis.scores.sieves import SIEVES, across, resolve, same_pieces
from analysis.texts.examples import Example

FAST = settings(max_examples=60, deadline=None, derandomize=True, database=None)
WORDS = st.sampled_from(["a", "A", "cat", "Cats", "unbelievably", ",", ".", "?", "😀", "🎉", "[SEP]", "7"])
TEXTS = st.lists(WORDS, min_size=1, max_size=14).map(" ".join)
ENTRIES = {
    name: entry for name, entry in SIEVES.items() if entry.function.__module__ == "analysis.scores.sieves"
}
LABELS = {"nsubj", "dobj", "advmod", "case"}


SEQUENCES = st.tuples(TEXTS, st.none() | TEXTS, st.integers(8, 40))


def lay(first: str, second: str | None, most: int) -> Layout:
    """The layout of one or two texts, truncated to a number of tokens."""
    return layouts(tokenizer_of("bert"), [Example("a", first, second)], most)[0]


@FAST
@given(sequence=SEQUENCES)
def test_rows_that_count_have_one_weight_and_sum_to_one(sequence: tuple):
    layout = lay(*sequence)
    pairs = random_pairs(len(layout))
    for role, entry in (ENTRIES | resolve(None, LABELS, "corrected")).items():
        matrix = entry.matrix(layout, pairs)
        if matrix is None:
            continue
        check_sieve(role, matrix, len(layout))
        assert (matrix >= 0).all(), role
        if role.endswith("_published"):
            continue
        np.testing.assert_allclose(matrix.sum(), 1, rtol=1e-5, err_msg=role)
        if not entry.pooled:  # relations are means over word pairs
            sums = matrix.sum(axis=1)
            np.testing.assert_allclose(sums[sums > 0], 1 / np.count_nonzero(sums), rtol=1e-5, err_msg=role)
            for row in matrix[sums > 0]:
                np.testing.assert_allclose(row[row > 0], row.max(), rtol=1e-5, err_msg=role)


@FAST
@given(sequence=SEQUENCES)
def test_matches_are_mutual_and_apart_from_their_control(sequence: tuple):
    layout = lay(*sequence)
    same, other = same_pieces(layout), across(layout)
    assert (same == same.T).all()
    assert (other == other.T).all()
    for mask in (same, other):
        assert not mask[layout.text < 0].any()
    assert not same[layout.unknown | layout.punctuation].any()
    match, control, own_rows = (
        SIEVES[role].matrix(layout, {}) for role in ("match", "match_control", "match_own")
    )
    assert (match is not None) == (same & other).any()
    if own_rows is not None:
        assert ((own_rows > 0) == (own_rows > 0).T).all()
        assert not np.diag(own_rows).any()
    if match is None:
        assert control is None
        return
    assert ((match > 0) == (match > 0).T).all()
    if control is not None:
        assert not ((match > 0) & (control > 0)).any()
        assert {*np.flatnonzero(control.any(axis=1))} <= {*np.flatnonzero(match.any(axis=1))}


@FAST
@given(sequences=st.lists(SEQUENCES, min_size=1, max_size=4))
def test_roles_without_units_are_the_absent_ones_and_others_are_weighted_by_their_matrix(
    sequences: list[tuple],
):
    """Random maps of a padded batch, against the whole matrix of each sequence."""
    batch = [lay(*sequence) for sequence in sequences]
    sieves = {role: entry for role, entry in ENTRIES.items() if not entry.entropy} | resolve(
        [*LABELS], LABELS, "corrected"
    )
    scored = [Scored(layout, random_pairs(len(layout))) for layout in batch]
    contraction, units = stack(scored, sieves)
    longest = max(map(len, batch))
    maps = torch.from_numpy(np.random.default_rng(0).random((len(batch), 2, longest, longest), np.float32))
    for i, layout in enumerate(batch):
        maps[i, :, :, len(layout) :] = 0
    result = contraction(maps, None).numpy()
    for i, one in enumerate(scored):
        for j, (role, entry) in enumerate(sieves.items()):
            matrix = entry.matrix(one.layout, one.pairs)
            assert (matrix is None) == (units[i, j] == 0), role
            if matrix is not None:
                size = len(one.layout)
                expected = np.einsum("qk,hqk->h", matrix, maps[i, :, :size, :size].numpy())
                np.testing.assert_allclose(result[i, j], expected, rtol=1e-4, err_msg=role)
