"""Sets of heads and their random counterparts: how they are drawn, and what the tests give without an effect."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from studies import error_of

from analysis.synthesis.sets import (
    COLUMNS,
    POOLED,
    Change,
    RoleSet,
    excess_draws,
    interventions,
    named,
    pooled_p,
    random_sets,
    role_sets,
    set_changes,
    set_means,
    sets_table,
)

LAYERS, WIDTH = 3, 4


def role_rows(role: str, audited: list, controlled: list) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([range(LAYERS), range(WIDTH)], names=["layer", "head"])
    places = list(index)
    return index.to_frame(index=False).assign(
        role=role,
        assigned_audited=pd.array([place in audited for place in places], "boolean"),
        assigned_controlled=pd.array([place in controlled for place in places], "boolean"),
    )


@pytest.fixture
def found() -> list[RoleSet]:
    layer = [(1, head) for head in range(WIDTH)]
    absent = role_rows("sep", [], []).assign(assigned_audited=pd.NA, assigned_controlled=pd.NA)
    tables = [role_rows("local", [(0, 1), (2, 3), (2, 0)], [(2, 0), (2, 3)]), role_rows("block", layer, []),
              role_rows("cls", [], []), absent]  # fmt: skip
    return role_sets(pd.concat(tables, ignore_index=True), "mrpc")


def test_sets_of_roles_and_why_some_are_untestable(found: list[RoleSet]):
    status = {(each.role, each.label): each.status for each in found}
    assert status == {
        ("local", "audited"): "tested",
        ("local", "controlled"): "tested",
        ("block", "audited"): "untestable: nearly all heads of its layers",
        ("cls", "audited"): "untestable: no head has the role",
        ("sep", "audited"): "untestable: the role itself cannot be tested",
    }
    assert found[0].heads == ((0, 1), (2, 0), (2, 3))
    assert found[0].name == "0-1 2-0 2-3"


def test_random_sets_have_as_many_heads_in_every_layer_and_share_at_most_half():
    heads = [(0, 1), (2, 0), (2, 3)]
    drawn = random_sets(heads, 12, 200)
    assert len(drawn) == len(set(drawn)) == 200
    assert all([layer for layer, _ in each] == [0, 2, 2] for each in drawn)
    assert all(2 * len({*heads} & {*each}) <= 3 for each in drawn)
    assert drawn == random_sets(heads, 12, 200)
    assert drawn != random_sets(heads, 12, 200, seed=1)
    assert error_of(random_sets, heads, 1, 1) == "a set names 2 heads of one layer: a layer has 1"


def test_pooled_p_counts_combinations():
    means = [np.array([3.0, 1.0, 4.0]), np.array([2.0, 0.0])]
    sums = [a + b for a, b in product(*means)]
    centre = np.mean(sums)
    assert pooled_p(means) == np.mean([abs(total - centre) >= abs(5 - centre) for total in sums])
    assert pooled_p([np.array([9.0, *range(4)])]) == 1 / 5  # one task: no less than its sets allow
    assert pooled_p([np.array([-9.0, *range(4)])]) == 1 / 5  # and on either side


def test_pooled_p_by_drawing_is_near_the_exact_one():
    rng = np.random.default_rng(0)
    means = [rng.normal(size=20) + [1, *[0] * 19] for _ in range(3)]
    exact = pooled_p(means, combinations=8000)
    drawn = pooled_p(means, combinations=7999)
    assert 0.01 < exact < 0.5
    assert abs(drawn - exact) < 4 * np.sqrt(exact / 7999)


@pytest.mark.parametrize("tasks", [1, 2, 4])
def test_pooled_p_rejects_as_often_as_it_says(tasks: int):
    """Where the role's set is one of the random ones in every task."""
    rng = np.random.default_rng(1)
    p = [pooled_p(rng.gumbel(size=(tasks, 20)), 399, seed) for seed in range(600)]
    low, high = stats.binom.ppf([0.005, 0.995], 600, 0.1) / 600
    assert (np.array(p) <= 0.1).mean() <= high
    assert (np.array(p) <= 0.1).mean() >= low


def test_excess_draws_cover_sequences_and_sets():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20, 50))  # sets that differ by chance
    calm = Change(np.full(30, 2.0), np.zeros((19, 30)))
    assert set(excess_draws([calm], 400)) == {0.0, 2.0}  # the role's own set is one of twenty
    wild = Change(noise[0] + 0.1, noise[1:])
    of_means = np.std([each.mean() for each in noise[1:]])
    assert np.std(excess_draws([wild], 2000)) > 1.5 * of_means
    assert np.std(excess_draws([wild] * 4, 2000)) < np.std(excess_draws([wild], 2000))


def test_changes_of_single_sequences():
    logits = np.log([[[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.6, 0.4]]])
    array = xr.DataArray(
        logits,
        {"intervention": ["none", "2-1"], "sequence": ["a", "b"]},
        ("intervention", "sequence", "class"),
    )
    found = set_changes(array, np.array([0, 1]))
    np.testing.assert_allclose(found.loc[("2-1", "loss")], np.log([0.5 / 0.9, 0.8 / 0.4]))
    np.testing.assert_allclose(found.loc[("2-1", "accuracy")], [0, -1])
    np.testing.assert_allclose(found.loc["none"], 0)


def changes(found: list[RoleSet], tasks: list[str], harm: float) -> dict[str, pd.DataFrame]:
    """Losses and accuracies of every set that is switched off; the audited local heads do harm."""
    rng, tables = np.random.default_rng(0), {}
    names = [*interventions(found, WIDTH, 19)]
    for task in tasks:
        loss = rng.normal(0, 0.05, (len(names), 1)) + rng.normal(0, 0.01, (len(names), 40))
        loss[names.index("0-1 2-0 2-3")] += harm
        index = pd.MultiIndex.from_product([names, ["loss"]], names=["set", "metric"])
        parts = [pd.DataFrame(loss, index), pd.DataFrame(-loss / 2, index.set_levels(["accuracy"], level=1))]
        tables[task] = pd.concat(parts)
    return tables


def test_table_of_sets(found: list[RoleSet]):
    both = found + [each._replace(task="qqp") for each in found]
    measured = changes(found, ["mrpc", "qqp"], harm=1.0)
    table = sets_table(both, measured, ["mrpc", "qqp"], WIDTH, 19, combinations=399, draws=199)
    assert list(table) == COLUMNS
    rows = table.set_index(["task", "role", "label", "metric"]).sort_index()
    own = rows.loc[("mrpc", "local", "audited", "loss")]
    losses = measured["mrpc"].xs("loss", level="metric")
    random = [losses.loc[named(heads)].mean() for heads in random_sets(found[0].heads, WIDTH, 19)]
    assert own["change"] == pytest.approx(losses.loc["0-1 2-0 2-3"].mean())
    assert own["excess"] == pytest.approx(own["change"] - np.mean(random))
    centre = np.mean([own["change"], *random])
    extreme = [abs(value - centre) >= abs(own["change"] - centre) for value in random]
    assert own["p"] == pytest.approx((1 + sum(extreme)) / (1 + len(random)))
    assert own["status"] == "tested"
    assert np.isnan(own["p_holm"])
    pooled = rows.loc[(POOLED, "local", "audited")]
    assert pooled.loc["loss", "tasks"] == 2
    assert (pooled["p"] <= 0.01).all()
    assert pooled.loc["loss", "low"] > 0 > pooled.loc["accuracy", "high"]
    block = rows.loc[(POOLED, "block", "audited", "loss")]
    assert block["status"] == "untestable in every task"
    assert np.isnan(block[["change", "p", "p_holm"]].astype(float)).all()
    assert (
        rows.loc[("mrpc", "block", "audited", "loss"), "status"]
        == "untestable: nearly all heads of its layers"
    )


def test_a_task_that_was_not_learnt_is_not_pooled(found: list[RoleSet]):
    both = found + [each._replace(task="rte") for each in found]
    measured = changes(found, ["mrpc", "rte"], harm=1.0)
    table = sets_table(both, measured, ["mrpc"], WIDTH, 19, combinations=399, draws=199)
    rows = table.set_index(["task", "role", "label", "metric"]).sort_index()
    assert rows.loc[(POOLED, "local", "audited", "loss"), "tasks"] == 1
    assert rows.loc[("rte", "local", "audited", "loss"), "status"] == "tested"
    alone = sets_table(both, measured, [], WIDTH, 19, combinations=399, draws=199)
    assert alone.loc[alone["task"] == POOLED, "status"].eq("untestable in every task").all()


def test_means_of_the_sets_are_those_that_the_table_compares(found: list[RoleSet]):
    measured = changes(found, ["mrpc"], harm=1.0)
    means = set_means(found, measured, WIDTH, 19).query(
        "role == 'local' and metric == 'loss' and label == 'audited'"
    )
    table = sets_table(found, measured, ["mrpc"], WIDTH, 19, combinations=399, draws=199)
    row = table.query("task == 'mrpc' and role == 'local' and metric == 'loss' and label == 'audited'").iloc[
        0
    ]
    assert means.loc[means["own"], "change"].tolist() == pytest.approx([row["change"]])
    assert means.loc[~means["own"], "change"].mean() == pytest.approx(row["random"])
