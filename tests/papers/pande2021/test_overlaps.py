from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, ROLES, role_table, unnamed

from analysis.errors import InputError
from analysis.papers.pande2021 import overlaps


@pytest.fixture
def members() -> pd.DataFrame:
    """Heads x roles; nullable, with missing values, and `block` that no head has."""
    return role_table().pivot(index=["layer", "head"], columns="role", values="assigned")[ROLES]


@pytest.fixture
def overlap(members) -> pd.DataFrame:
    has = members.fillna(False).astype(bool)
    rows = []
    for a, b in combinations(ROLES, 2):
        both, either = (has[a] & has[b]).sum(), (has[a] | has[b]).sum()
        shares = [
            both / has[a].sum() if has[a].any() else np.nan,
            both / has[b].sum() if has[b].any() else np.nan,
        ]
        rows.append((a, b, has[a].sum(), has[b].sum(), both, both / either if either else np.nan, *shares))
    names = ["role_a", "role_b", "heads_a", "heads_b", "both", "jaccard", "share_of_a", "share_of_b"]
    return pd.DataFrame(rows, columns=names)


def sets(members: pd.DataFrame) -> dict[frozenset, int]:
    """Heads per exact set of roles, counted one by one."""
    counted = {}
    for _, row in members.fillna(False).iterrows():
        held = frozenset(role for role in members if row[role])
        counted[held] = counted.get(held, 0) + 1
    return counted


def drawn_sets(figure) -> dict[frozenset, int]:
    bars, totals, dots = figure.axes
    names = [label.get_text() for label in dots.get_yticklabels()]
    held = [set() for _ in bars.patches]
    for combination, row in dots.collections[1].get_offsets():
        held[round(combination)].add(names[round(row)])
    return {frozenset(roles): round(bar.get_height()) for roles, bar in zip(held, bars.patches, strict=True)}


@pytest.mark.parametrize("roles", [["local", "syntactic", "delimiter", "block"], ROLES])
def test_upset_counts_the_heads_of_every_combination(members, roles):
    figure = overlaps.overlap_upset(members[roles], most=100)
    assert drawn_sets(figure) == sets(members[roles])
    assert sum(drawn_sets(figure).values()) == LAYERS * HEADS


def test_upset_draws_the_heads_of_every_role_and_the_largest_combination_first(members):
    figure = overlaps.overlap_upset(members)
    bars, totals, _ = figure.axes
    assert [bar.get_width() for bar in totals.patches] == [members[role].sum() for role in ROLES]
    sizes = [bar.get_height() for bar in bars.patches]
    assert sizes == sorted(sizes, reverse=True)


def test_upset_says_what_it_leaves_out(members):
    figure = overlaps.overlap_upset(members, most=3)
    counted = sorted(sets(members).values(), reverse=True)
    assert len(figure.axes[0].patches) == 3
    left_out = f"not drawn: {len(counted) - 3} smaller combinations ({sum(counted[3:])} heads)"
    assert left_out in [text.get_text() for text in figure.axes[0].texts]


def test_upset_of_one_role_without_heads_can_be_drawn(members):
    assert drawn_sets(overlaps.overlap_upset(members[["block"]])) == {frozenset(): LAYERS * HEADS}


def test_heatmap_colours_by_the_share_of_the_first_role_and_writes_how_many_have_both(members, overlap):
    axes = overlaps.overlap_heatmap(overlap)
    has = members.fillna(False).astype(bool)
    shares = axes.images[0].get_array().filled(np.nan)
    written = {
        (round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in axes.texts
    }
    assert set(written) == {(a, b) for a in range(len(ROLES)) for b in range(a, len(ROLES))}
    for (a, b), text in written.items():
        both = (has[ROLES[a]] & has[ROLES[b]]).sum()
        assert text == str(both)
        whole = has[ROLES[a]].sum()
        expected = both / whole if whole else np.nan
        np.testing.assert_allclose(shares[a, b], expected)
    assert np.isnan(shares[np.tril_indices(len(ROLES), -1)]).all()


def test_heatmap_of_pairs_in_the_other_order_is_the_same(overlap):
    other_order = overlap.rename(columns=overlaps._swapped)
    first, second = (
        overlaps.overlap_heatmap(frame).images[0].get_array() for frame in (overlap, other_order)
    )
    np.testing.assert_array_equal(first.filled(-1), second.filled(-1))


def test_heatmap_names_the_roles(overlap):
    axes = overlaps.overlap_heatmap(overlap)
    assert [label.get_text() for label in axes.get_xticklabels()] == ROLES
    assert [label.get_text() for label in axes.get_yticklabels()] == ROLES


def test_heatmap_refuses_two_tasks_at_once(overlap):
    with pytest.raises(InputError, match="select one task"):
        overlaps.overlap_heatmap(pd.concat([overlap, overlap]))


def test_every_overlap_figure_names_its_axes(members, overlap):
    assert unnamed(overlaps.overlap_upset(members)) == []
    assert unnamed(overlaps.overlap_heatmap(overlap)) == []
