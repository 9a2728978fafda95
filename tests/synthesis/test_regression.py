"""Role scores against changes: what the tests give if roles predict nothing, and if they do."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from studies import error_of

from analysis.synthesis.regression import (
    ALL_ROLES,
    NOT_FITTED,
    Grid,
    _held_variances,
    gridded,
    mixed_model,
    null_rates,
    permutation_test,
    products,
    regression_table,
    shares,
    standardised,
)

TASKS, SEEDS, LAYERS, HEADS = ("mrpc", "qqp", "sst-2"), (0, 1), 3, 5
ROLES = ("local", "block")


def heads(slope: float = 0.0, seed: int = 0, layers: int = LAYERS, width: int = HEADS) -> pd.DataFrame:
    """Heads whose changes differ by layer, by task, by head (alike in all runs), and by their local score."""
    rng = np.random.default_rng(seed)
    keys = ["task", "seed", "layer", "head"]
    index = pd.MultiIndex.from_product([TASKS, SEEDS, range(layers), range(width)], names=keys)
    table = index.to_frame(index=False)
    place = table["layer"] * width + table["head"]
    for role in ROLES:
        own = rng.normal(size=layers * width)
        table[role] = np.exp(own[place] + 0.1 * rng.normal(size=len(table)))
    shift = dict(zip(TASKS, rng.normal(size=len(TASKS)), strict=True))
    noise = rng.normal(size=layers * width)[place] + 0.5 * rng.normal(size=len(table))
    score = standardised(table.assign(response=0.0), "response", ["local"])["local"]
    return table.assign(response=noise + slope * score + 2 * table["layer"] + table["task"].map(shift))


def test_standardised_by_run():
    data = standardised(heads(), "response", ROLES)
    for _, run in data.groupby(["task", "seed"]):
        np.testing.assert_allclose(run["change"].std(), 1)
        np.testing.assert_allclose(run["local"].mean(), 0, atol=1e-12)
        assert stats.spearmanr(run["local"], heads().loc[run.index, "local"]).statistic == pytest.approx(1)


def test_runs_that_lack_a_head_are_left_out():
    table = heads()
    table.loc[0, "local"] = np.nan
    assert len(standardised(table, "response", ["local"])) == (len(TASKS) * len(SEEDS) - 1) * LAYERS * HEADS
    assert len(standardised(table, "response", ["block"])) == len(table)
    message = error_of(standardised, table.assign(local=np.nan), "response", ["local"])
    assert message.startswith("no run has response and the scores of local for all heads")
    assert error_of(gridded, table.iloc[1:].assign(change=0), ["block"]).startswith(
        "runs differ in their heads"
    )


def test_sums_are_those_of_dealing_heads_one_by_one():
    """The slow way: permute whole heads within layers, alike in all runs, and sum score times change."""
    grid = gridded(standardised(heads(), "response", ROLES), ROLES)
    observed, drawn = products(grid, 4, seed=3)
    np.testing.assert_allclose(observed, (grid.scores * grid.change).sum(axis=(1, 2, 3)))
    order = np.random.default_rng(3).permuted(np.broadcast_to(np.arange(HEADS), (4, LAYERS, HEADS)), axis=-1)
    for number in range(4):
        dealt = np.stack([grid.change[:, layer, order[number, layer]] for layer in range(LAYERS)], axis=1)
        np.testing.assert_allclose(drawn[number], (grid.scores * dealt).sum(axis=(1, 2, 3)))


def test_shares_are_those_of_least_squares():
    grid = gridded(standardised(heads(1.0), "response", ROLES), ROLES)
    design, change = grid.scores.reshape(len(ROLES), -1).T, grid.change.ravel()
    observed, _ = products(grid, 1)
    alone = [stats.pearsonr(column, change).statistic ** 2 for column in design.T]
    np.testing.assert_allclose(shares(grid, observed), alone)
    rest = np.linalg.lstsq(design, change, rcond=None)[1][0]
    np.testing.assert_allclose(shares(grid, observed, together=True), 1 - rest / (change**2).sum())


def test_an_effect_is_found_by_both_tests():
    table = regression_table(heads(1.5), ROLES, ROLES, permutations=499, shuffles=19)
    rows = table.set_index(["model", "term"])
    local, block = rows.loc[("alone", "local")], rows.loc[("alone", "block")]
    assert local["low"] < 1.5 / heads(1.5).groupby(["task", "seed"])["response"].std().mean() < local["high"]
    assert local["p"] < 1e-4
    assert local["p_permutation"] < 0.01 < block["p_permutation"]
    assert local["share"] > 0.5 > rows.loc[("together", ALL_ROLES), "share_shuffled"]
    assert rows.loc[("together", ALL_ROLES), "share"] >= local["share"]
    assert rows.loc[("together", "local"), "runs"] == len(TASKS) * len(SEEDS)
    assert (table["status"].isin(["fitted", "tested"])).all()


def test_one_run_a_task():
    """With one run per task, both are the same, and two effects of the same thing cannot be fitted."""
    once = heads(1.0, layers=4, width=8).query("seed == 0")
    fitted = mixed_model(standardised(once, "response", ROLES), ["local"]).iloc[0]
    assert fitted["status"] == "fitted"
    assert fitted["low"] > 0


def test_a_role_without_scores_is_untestable():
    table = regression_table(heads().assign(block=np.nan), ROLES, ROLES, permutations=99, shuffles=9)
    block = table.set_index(["model", "term"]).loc[("alone", "block")]
    assert block["status"].startswith("untestable")
    assert np.isnan(block["p_permutation"])
    assert "block" not in set(table.loc[table["model"] == "together", "term"])


def test_scores_that_are_all_the_same_are_no_fault():
    table = regression_table(heads().assign(block=1.0), ROLES, ROLES, permutations=99, shuffles=9)
    block = table.set_index(["model", "term"]).loc[("alone", "block")]
    assert block["status"] == NOT_FITTED
    assert block["p_permutation"] == 1
    assert np.isnan(block["null_mixed"])


def test_shuffled_roles_are_rejected_at_the_nominal_rate():
    """The simulation of nulls. On these made-up heads the mixed model is cautious; on real ones it may be bold."""
    data = standardised(heads(layers=4, width=8), "response", ROLES)
    found = null_rates(data, "local", shuffles=400, permutations=99)
    assert found["null_low"] <= found["null_permutation"] <= found["null_high"]
    assert found["null_mixed"] <= found["null_high"]


@pytest.mark.parametrize("runs", [1, len(TASKS) * len(SEEDS)], ids=["a score a head", "a score a run"])
def test_new_scores_are_rejected_at_the_nominal_rate_by_the_mixed_model(runs: int):
    scores = np.random.default_rng(1).normal(size=(1000, runs, 4, 8))
    data = standardised(heads(layers=4, width=8), "response", ROLES)
    p = _held_variances(data, np.broadcast_to(scores, (1000, len(TASKS) * len(SEEDS), 4, 8)))
    low, high = stats.binom.ppf([0.005, 0.995], 1000, 0.05) / 1000
    assert low <= (p < 0.05).mean() <= high


def test_new_heads_without_an_effect_are_rejected_at_the_nominal_rate():
    """The same with heads, runs and scores drawn anew each time, as studies would be: the permutation test."""
    rng, p = np.random.default_rng(0), []
    for seed in range(300):
        own = rng.normal(size=(2, 1, LAYERS, HEADS))  # of a head, in all runs
        change, score = own + 0.5 * rng.normal(size=(2, 4, LAYERS, HEADS))
        grid = Grid(change - change.mean(-1, keepdims=True), (score - score.mean(-1, keepdims=True))[None])
        p.append(permutation_test(grid, 99, seed)["p_permutation"][0])
    low, high = stats.binom.ppf([0.005, 0.995], 300, 0.05) / 300
    assert low <= (np.array(p) <= 0.05).mean() <= high


def test_without_the_effect_of_heads_shuffled_roles_are_rejected_too_often(monkeypatch):
    """Heads are a random effect because a head has the same change in all runs: runs are not independent."""
    data = standardised(heads(layers=4, width=8), "response", ROLES)
    monkeypatch.setattr("analysis.synthesis.regression.EFFECTS", {"task": "0 + C(task)", "run": "0 + C(run)"})
    found = null_rates(data, "local", shuffles=300, permutations=9)
    assert found["null_mixed"] > 2 * found["null_high"]


def test_held_variances_give_the_p_of_the_fit():
    """For a role without an effect, where the variances are those of the fit with it."""
    data = standardised(heads(layers=4, width=8), "response", ROLES)
    scores = data.sort_values(["task", "seed", "layer", "head"])["block"].to_numpy()
    held = _held_variances(data, scores.reshape(1, len(TASKS) * len(SEEDS), 4, 8))
    fitted = mixed_model(data, ["block"]).iloc[0]
    assert fitted["low"] < fitted["estimate"] < fitted["high"]
    assert held[0] == pytest.approx(fitted["p"], abs=0.03)
