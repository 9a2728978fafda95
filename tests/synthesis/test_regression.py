import numpy as np
import pandas as pd
import pytest
from headtables import heads_by
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.synthesis import regression
from analysis.synthesis.regression import ALL_ROLES, CONSTANT, RAW, gridded, regression_table, standardised

TASKS, SEEDS, LAYERS, HEADS = ("mrpc", "qqp", "sst-2"), (0, 1), 3, 5
ROLES = ("local", "block")


def heads(slope: float = 0.0, seed: int = 0, layers: int = LAYERS, width: int = HEADS) -> pd.DataFrame:
    """Heads whose changes differ by layer, by task, by head (alike in all runs), and by their local score."""
    rng = np.random.default_rng(seed)
    table = heads_by(layers, width, task=TASKS, seed=SEEDS)
    place = table["layer"] * width + table["head"]
    for role in ROLES:
        own_rows = rng.normal(size=layers * width)
        table[role] = np.exp(own_rows[place] + 0.1 * rng.normal(size=len(table)))
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


def test_sums_are_those_of_dealing_heads_one_by_one():
    """The slow way: permute whole heads within layers, alike in all runs, and sum score times change."""
    grid = gridded(standardised(heads(), "response", ROLES), ROLES)
    observed, samples = regression.products(grid, 4, seed=3)
    np.testing.assert_allclose(observed, (grid.scores * grid.change).sum(axis=(1, 2, 3)))
    rng = np.random.default_rng(3)
    order = np.stack([rng.permuted(np.tile(np.arange(HEADS), (4, 1)), axis=1) for _ in range(LAYERS)], axis=1)
    for number in range(4):
        permuted = np.stack([grid.change[:, layer, order[number, layer]] for layer in range(LAYERS)], axis=1)
        np.testing.assert_allclose(samples[number], (grid.scores * permuted).sum(axis=(1, 2, 3)))


def test_excluded_heads_stay_where_they_are():
    included = np.array([[True, False, True, True], [True, True, False, True]])
    order = regression.permute_within_layers(included, 200, np.random.default_rng(0))
    assert (order[:, ~included] == np.broadcast_to(np.arange(4), included.shape)[~included]).all()
    assert (np.sort(order, axis=-1) == np.arange(4)).all()
    assert len(np.unique(order, axis=0)) == 6 * 6


def test_shares_are_those_of_least_squares():
    grid = gridded(standardised(heads(1.0), "response", ROLES), ROLES)
    design, change = grid.scores.reshape(len(ROLES), -1).T, grid.change.ravel()
    observed, _ = regression.products(grid, 1)
    places = [[place] for place in range(len(ROLES))]
    alone = [regression.shares(grid._replace(scores=grid.scores[one]), observed[one]) for one in places]
    np.testing.assert_allclose(alone, [stats.pearsonr(column, change).statistic ** 2 for column in design.T])
    rest = np.linalg.lstsq(design, change, rcond=None)[1][0]
    np.testing.assert_allclose(regression.shares(grid, observed), 1 - rest / (change**2).sum())


def rows_of(table: pd.DataFrame, variant: str = RAW) -> pd.DataFrame:
    return table[table["variant"] == variant].set_index(["model", "term"])


@pytest.mark.parametrize("without", [(), ((0, 1), (1, 0))])
def test_slopes_are_those_of_least_squares_with_a_level_for_every_layer_and_run(without):
    data = standardised(heads(1.0), "response", ROLES)
    grid = gridded(data, ROLES, without=without)
    assert {*zip(*np.nonzero(~grid.included), strict=True)} == {*without}
    remaining = data.set_index(["layer", "head"]).drop([*without]).reset_index()
    levels = pd.get_dummies(remaining[["task", "seed", "layer"]].astype(str).agg("-".join, axis=1))
    design = np.column_stack([remaining[[*ROLES]], levels]).astype(float)
    expected = np.linalg.lstsq(design, remaining["change"], rcond=None)[0]
    np.testing.assert_allclose(regression.slopes(grid), expected[: len(ROLES)])


def test_an_effect_is_found_with_its_sign_and_an_interval():
    rows = rows_of(regression_table(heads(1.5), ROLES, ROLES, permutations=499, resamples=99))
    local, block = rows.loc[("alone", "local")], rows.loc[("alone", "block")]
    assert 0 < local["low"] < local["estimate"] < local["high"]
    assert local["p_permutation"] < 0.01 < block["p_permutation"]
    assert local["share"] > 0.5 > rows.loc[("together", ALL_ROLES), "share_shuffled"]
    assert rows.loc[("together", ALL_ROLES), "share"] >= local["share"]
    assert rows.loc[("together", ALL_ROLES), "r2_left_out"] > 0.3
    tested = rows["p_permutation"].dropna()
    assert [*tested.index] == [("alone", "local"), ("alone", "block"), ("together", ALL_ROLES)]
    np.testing.assert_allclose(rows.loc[tested.index, "p_holm"], multipletests(tested, method="holm")[1])
    against = rows_of(regression_table(heads(-1.5), ROLES, ROLES, permutations=99, resamples=99))
    assert against.loc[("alone", "local"), "high"] < 0


def test_ranks_do_not_hang_on_one_costly_head():
    table = heads(1.5)
    table.loc[(table["layer"] == 0) & (table["head"] == 0), "response"] += 1000
    result = regression_table(table, ROLES, ROLES, [(0, 0)], permutations=99, resamples=9)
    tables = [rows_of(result, variant) for variant in (RAW, regression.RANKS, regression.WITHOUT)]
    raw, ranks, without = (table.loc[("alone", "local"), "share"] for table in tables)
    assert raw < 0.3 < ranks
    assert raw < without


def test_a_task_left_out_tells_what_the_slopes_are_worth_elsewhere():
    noise = gridded(standardised(heads(0.0, layers=6, width=8), "response", ROLES), ROLES)
    assert regression.left_out_r2(noise) < 0.2
    one_task = heads(1.0).query("task == 'mrpc'")
    assert np.isnan(regression.left_out_r2(gridded(standardised(one_task, "response", ROLES), ROLES)))


def test_scores_that_are_all_the_same_are_not_applicable():
    table = heads().assign(block=1.0)
    rows = rows_of(regression_table(table, ROLES, ["local"], permutations=99, resamples=9))
    assert rows.loc[("alone", "block"), "status"] == CONSTANT
    assert regression_table(table.assign(response=2.0), ROLES, ROLES, (), 99, 9)["status"].eq(CONSTANT).all()


def test_shuffled_roles_are_rejected_at_the_nominal_rate():
    data = standardised(heads(layers=4, width=8), "response", ROLES)
    grid, rng = gridded(data, ["local"]), np.random.default_rng(0)
    p = []
    for number in range(300):
        order = rng.permuted(np.broadcast_to(np.arange(8), (4, 8)), axis=-1)
        permuted = grid._replace(scores=grid.scores[:, :, np.arange(4)[:, None], order])
        p.append(regression.permutation_test(permuted, 99, number)["p_permutation"])
    counts = 100 * np.array(p)  # of 99 permutations and the sample itself
    assert counts.min() >= 1
    np.testing.assert_allclose(counts, counts.round())
    low, high = stats.binom.ppf([0.005, 0.995], 300, 0.05) / 300
    assert low <= np.mean(np.array(p) <= 0.05) <= high
