from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from drawing import HEADS, LAYERS, ROLES, role_table, unnamed
from matplotlib import pyplot as plt

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


@pytest.mark.parametrize("value", ["jaccard", "share_of_a"])
def test_heatmap_colours_by_the_value_and_writes_how_many_heads_have_both(members, overlap, value):
    axes = overlaps.overlap_heatmap(overlap, value=value)
    has = members.fillna(False).astype(bool)
    shares = axes.collections[0].get_array().reshape(len(ROLES), len(ROLES))
    written = iter(text.get_text() for text in axes.texts)
    for a, first in enumerate(ROLES):
        for b, second in enumerate(ROLES):
            both = (has[first] & has[second]).sum()
            whole = (has[first] | has[second]).sum() if value == "jaccard" else has[first].sum()
            if whole == 0:
                assert shares.mask[a, b]
                continue
            assert shares[a, b] == pytest.approx(both / whole)
            assert next(written) == str(both)


def test_heatmap_of_pairs_in_both_orders_is_the_same(overlap):
    both_orders = pd.concat([overlap, overlap.rename(columns=overlaps._swapped)])
    first, second = (
        overlaps.overlap_heatmap(frame).collections[0].get_array() for frame in (overlap, both_orders)
    )
    np.testing.assert_array_equal(first.filled(-1), second.filled(-1))


def test_heatmap_draws_on_the_axes_it_is_given_and_names_the_roles(overlap):
    _, axes = plt.subplots()
    assert overlaps.overlap_heatmap(overlap, axes, title="mrpc") is axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ROLES
    assert [label.get_text() for label in axes.get_yticklabels()] == ROLES
    assert axes.get_title() == "mrpc"


def test_heatmap_refuses_an_unknown_value_and_two_tasks_at_once(overlap):
    with pytest.raises(InputError, match="choose one of jaccard"):
        overlaps.overlap_heatmap(overlap, value="dice")
    with pytest.raises(InputError, match="select one task"):
        overlaps.overlap_heatmap(pd.concat([overlap, overlap]))


def test_every_overlap_figure_names_its_axes(members, overlap):
    assert unnamed(overlaps.overlap_upset(members)) == []
    assert unnamed(overlaps.overlap_heatmap(overlap)) == []
