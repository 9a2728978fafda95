from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from headtables import heads_by

from analysis.statistics.head_sets import random_sets
from analysis.synthesis import sets
from analysis.synthesis.sets import KINDS, RoleSet, excess_draws, named, pooled_p

LAYERS, WIDTH = 3, 4


def role_rows(role: str, corrected: list, controlled: list) -> pd.DataFrame:
    table = heads_by(LAYERS, WIDTH).assign(role=role)
    for label, heads in (("corrected", corrected), ("controlled", controlled)):
        has_label = [place in heads for place in zip(table["layer"], table["head"], strict=True)]
        table[f"assigned_{label}"] = pd.array(has_label, "boolean")
    return table


@pytest.fixture
def found() -> list[RoleSet]:
    layer = [(1, head) for head in range(WIDTH)]
    absent = role_rows("sep", [], []).assign(assigned_corrected=pd.NA, assigned_controlled=pd.NA)
    tables = [role_rows("local", [(0, 1), (2, 3), (2, 0)], [(2, 0), (2, 3)]), role_rows("block", layer, []),
              role_rows("cls", [], []), absent]  # fmt: skip
    return sets.role_sets(pd.concat(tables, ignore_index=True), "mrpc", 19)


def test_sets_of_roles_and_why_some_are_not_applicable(found: list[RoleSet]):
    status = {(item.role, item.label): item.status for item in found}
    assert status == {
        ("local", "corrected"): "tested",
        ("local", "controlled"): "tested",
        ("block", "corrected"): "not applicable: more than two thirds of the heads of its layers",
        ("cls", "corrected"): "not applicable: no head has the role",
        ("sep", "corrected"): "not applicable: the role itself cannot be tested",
    }
    assert named(found[0].heads) == "0-1 2-0 2-3"


@pytest.mark.parametrize("sizes", [(6, 6, 5), (8, 7, 2)])
def test_a_set_that_means_nothing_is_as_often_significant_as_the_level_says(sizes):
    """Random sets that share at most half of its heads would be so in .09 and .145 of the studies."""
    rng, p = np.random.default_rng(0), []
    for study in range(400):
        effects = rng.exponential(size=(3, 12))
        own_rows = tuple((layer, int(head)) for layer, size in enumerate(sizes)
                    for head in np.sort(rng.permutation(12)[:size]))  # fmt: skip
        pool = [own_rows, *random_sets(own_rows, 12, 39, study)]
        p.append(pooled_p([np.array([sum(effects[head] for head in heads) for heads in pool])]))
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.075


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
    samples = pooled_p(means, combinations=7999)
    assert 0.01 < exact < 0.5
    assert pooled_p([np.array([9.0, *[0.0] * 19])] * 3, combinations=99) == 1 / 100
    assert abs(samples - exact) < 4 * np.sqrt(exact / 7999)


def test_excess_draws_cover_sequences_and_sets():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20, 50))  # sets that differ by chance
    calm = np.repeat([[2.0], *[[0.0]] * 19], 30, axis=1)
    assert set(excess_draws([calm], 400)) == {0.0, 2.0}  # the role's own set is one of twenty
    wild = noise + 0.1 * (np.arange(20) == 0)[:, None]
    of_means = np.std([item.mean() for item in noise[1:]])
    assert np.std(excess_draws([wild], 2000)) > 1.5 * of_means
    assert np.std(excess_draws([wild] * 4, 2000)) < np.std(excess_draws([wild], 2000))


def test_changes_of_single_sequences():
    logits = np.log([[[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.6, 0.4]]])
    names = {"intervention": ["none", "2-1"]}
    array = xr.DataArray(logits, names, ("intervention", "sequence", "class"))
    found = sets.set_changes(array, np.array([0, 1]))
    np.testing.assert_allclose(found.loc[("2-1", "loss")], np.log([0.5 / 0.9, 0.8 / 0.4]))
    np.testing.assert_allclose(found.loc[("2-1", "accuracy")], [0, 1])
    np.testing.assert_allclose(found.loc[("2-1", "auc")].mean(), 0)  # both logits move, their order stays
    np.testing.assert_allclose(found.loc["none"].drop("refitted loss"), 0)  # two sequences are too few to fit


def changes(found: list[RoleSet], tasks: list[str], harm: float) -> dict[str, pd.DataFrame]:
    """Losses and accuracies of every set that is switched off; the corrected local heads do harm."""
    rng, tables = np.random.default_rng(0), {}
    names = [*sets.interventions(found)]
    for task in tasks:
        loss = rng.normal(0, 0.05, (len(names), 1)) + rng.normal(0, 0.01, (len(names), 40))
        loss[names.index("0-1 2-0 2-3")] += harm
        index = pd.MultiIndex.from_product([names, ["loss"]], names=["set", "metric"])
        effects = {"loss": loss, "accuracy": loss / 2, "auc": loss / 4, "refitted loss": -loss}
        parts = [pd.DataFrame(values, index.set_levels([name], level=1)) for name, values in effects.items()]
        tables[task] = pd.concat(parts)
    return tables


def sets_rows(found: list[RoleSet], measured: dict[str, pd.DataFrame], learned: list[str]) -> pd.DataFrame:
    table = sets.sets_table(found, measured, {KINDS[0]: learned, KINDS[1]: []}, combinations=399, draws=199)
    return table.set_index(["task", "role", "label", "metric"]).sort_index()


def test_table_of_sets(found: list[RoleSet]):
    both = found + [item._replace(task="qqp") for item in found]
    measured = changes(found, ["mrpc", "qqp"], harm=1.0)
    rows = sets_rows(both, measured, ["mrpc", "qqp"])
    assert rows["random"].dtype == float  # missing, and no empty text, where no set is tested
    own_rows = rows.loc[("mrpc", "local", "corrected", "loss")]
    losses = measured["mrpc"].xs("loss", level="metric")
    random = [losses.loc[named(heads)].mean() for heads in random_sets(found[0].heads, WIDTH, 19)]
    assert own_rows["change"] == pytest.approx(losses.loc["0-1 2-0 2-3"].mean())
    assert own_rows["excess"] == pytest.approx(own_rows["change"] - np.mean(random))
    assert own_rows["p"] == pytest.approx(pooled_p([np.array([own_rows["change"], *random])]))
    assert np.isnan(own_rows["p_holm"])
    means = sets.set_means(found, measured)
    means = means.query("role == 'local' and label == 'corrected' and metric == 'loss'")
    assert means["own"].tolist() == [True, *[False] * len(random)]
    assert means["change"].tolist() == pytest.approx([own_rows["change"], *random])
    pooled = rows.loc[(KINDS[0], "local", "corrected")]
    assert pooled.loc["loss", "tasks"] == 2
    assert (pooled["p"] <= 0.01).all()
    assert pooled.loc["loss", "low"] > 0 > pooled.loc["refitted loss", "high"]
    block = rows.loc[(KINDS[0], "block", "corrected", "loss")]
    assert block["status"] == "not applicable in every task"
    assert np.isnan(block[["change", "p", "p_holm"]].astype(float)).all()
    by_kind = sets.sets_table(both, measured, dict(zip(KINDS, (["mrpc"], ["qqp"]), strict=True)), 399, 199)
    alone = by_kind[by_kind["task"].isin(KINDS) & (by_kind["role"] == "local")]
    assert alone["p_holm"].tolist() == alone["p"].tolist()  # each kind is a family, here of one role
    one_learnt, none_learnt = (sets_rows(both, measured, learned).loc[KINDS[0]] for learned in (["mrpc"], []))
    assert one_learnt.loc[("local", "corrected", "loss"), "tasks"] == 1
    assert rows.loc[KINDS[1], "status"].eq("not applicable in every task").all()
    assert none_learnt["status"].eq("not applicable in every task").all()
