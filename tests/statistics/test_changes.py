import numpy as np
import pytest
import xarray as xr
from removals import logits as certain
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, log_loss, matthews_corrcoef
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels
from statsmodels.stats.multitest import multipletests

from analysis.encoders.measures import metrics_of
from analysis.statistics import changes
from analysis.statistics.answers import METRICS, pearson, spearman
from analysis.statistics.changes import BASELINE, Compared, change_table, compared, rises

N, HEADS = 60, 5
ORACLES = {
    "accuracy": lambda labels, logits: accuracy_score(labels, logits.argmax(-1)),
    "loss": lambda labels, logits: log_loss(labels, np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)),
    "f1": lambda labels, logits: f1_score(labels, logits.argmax(-1), zero_division=0),
    "matthews": lambda labels, logits: matthews_corrcoef(labels, logits.argmax(-1)),
}
FAST = {"resamples": 199, "permutations": 999}
AXES = ("intervention", "sequence", "class")


@pytest.fixture(scope="module")
def study() -> tuple[xr.DataArray, np.ndarray]:
    """Logits without and with interventions that add ever more noise; the first changes nothing."""
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=N)
    base = rng.normal(0, 1, (N, 2)) + 1.5 * np.eye(2)[labels]
    others = [base + scale * rng.normal(0, 1, (N, 2)) for scale in np.arange(HEADS)]
    names = [BASELINE, *(f"{head // 2}-{head}" for head in range(HEADS))]
    return xr.DataArray(np.stack([base, *others], dtype=np.float32), {"intervention": names}, AXES), labels


@pytest.mark.parametrize("metric", ORACLES)
def test_baseline_and_change_are_those_of_sklearn(study, metric: str):
    logits, labels = study
    table = change_table(logits, labels, [metric], **FAST)
    expected = [ORACLES[metric](labels, row.astype(float)) for row in logits.values]
    assert table["intervention"].tolist() == logits["intervention"].values.tolist()[1:]
    assert table["baseline"].to_numpy() == pytest.approx(expected[0])
    assert table["change"].to_numpy() == pytest.approx(np.subtract(expected[1:], expected[0]), abs=1e-9)
    unchanged = table.loc[0, ["change", "p", "low", "high"]].tolist()
    end = 1 - 0.0125 ** (1 / N) if metric == "accuracy" else 0  # the exact limit of a share of 0
    assert unchanged == pytest.approx([0, 1, -end, end], rel=1e-3)


def test_changes_of_a_regression_are_those_of_scipy():
    rng = np.random.default_rng(2)
    labels = rng.uniform(0, 5, N)
    base = labels[:, None] + rng.normal(0, 1, (N, 1))
    others = [base + scale * rng.normal(0, 1, (N, 1)) for scale in (0, 1, 4)]
    names = {"intervention": [BASELINE, "0-0", "0-1", "0-2", "constant"]}
    logits = xr.DataArray(np.stack([base, *others, np.full((N, 1), 2.5)]), names, AXES)
    table = change_table(logits, labels, metrics_of("sts-b"), **FAST).set_index(["metric", "intervention"])
    answers = logits.values.astype(float)[..., 0]
    for metric, oracle in (
        ("pearson", lambda row: stats.pearsonr(row, labels).statistic),
        ("loss", lambda row: np.mean((row - labels) ** 2)),
    ):
        rows = table.loc[metric]
        assert rows["baseline"].to_numpy() == pytest.approx(oracle(answers[0]))
        expected = [oracle(row) - oracle(answers[0]) for row in answers[1:4]]
        assert rows["change"].to_numpy()[:3] == pytest.approx(expected, abs=1e-9)
        assert rows.loc["0-0", "p"] == 1
        assert rows.loc["0-2", "p"] < 0.05
    constant = table.loc[("pearson", "constant")]
    assert constant["change"] == pytest.approx(-constant["baseline"])


@pytest.mark.parametrize("metric", [metric for metric in ORACLES if metric != "accuracy"])
def test_interval_is_that_of_scipy_for_one_intervention(study, metric: str):
    logits, labels = study
    base, other = logits.values[0].astype(float), logits.values[3].astype(float)
    score = ORACLES[metric]

    def change(rows: np.ndarray) -> float:
        return round(score(labels[rows], other[rows]) - score(labels[rows], base[rows]), 12)

    expected = stats.bootstrap((np.arange(N),), change, vectorized=False, n_resamples=99, rng=0)
    row = change_table(logits, labels, [metric], resamples=99, permutations=99).iloc[2]
    assert (row["low"], row["high"]) == pytest.approx(expected.confidence_interval, abs=1e-6)


def test_accuracy_is_tested_by_exact_mcnemar_and_the_loss_by_the_paired_t_test(study):
    logits, labels = study
    accuracy, loss = (change_table(logits, labels, [metric], **FAST) for metric in ("accuracy", "loss"))
    right = logits.values.argmax(-1) == labels
    tables = [np.histogram2d(right[0], other, bins=2)[0] for other in right[1:]]
    expected = [mcnemar_of_statsmodels(counts, exact=True).pvalue for counts in tables]
    assert accuracy["p"].to_numpy() == pytest.approx(np.minimum(expected, 1))
    assert accuracy["p_by"].to_numpy() == pytest.approx(multipletests(accuracy["p"], method="fdr_by")[1])
    losses = METRICS["loss"].columns(logits.values, labels)[..., 0]
    expected = [stats.ttest_rel(other, losses[0]).pvalue for other in losses[2:]]
    assert loss["p"].iloc[1:].to_numpy() == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["f1", "matthews"])
def test_swaps_exchange_whole_answers(study, metric: str):
    logits, labels = study
    answers = compared(logits, labels, metric)
    swaps = np.random.default_rng(4).integers(2, size=(3, 1, N, 1)) == 1  # the draws of seed 4
    base, others = logits.values[0], logits.values[1:]
    scores = [
        [[ORACLES[metric](labels, answer) for answer in draw] for draw in np.where(swaps, first, second)]
        for first, second in ((base, others), (others, base))
    ]
    expected = np.subtract(*scores)
    assert answers.swapped(3, 4) == pytest.approx(expected, abs=1e-9)
    extreme = np.abs(expected) >= np.abs(answers.change) - 1e-9
    assert answers.p(3, 4) == pytest.approx((1 + extreme.sum(axis=0)) / 4)


def test_rises_of_noise_are_within_chance_and_real_ones_are_beyond():
    rng = np.random.default_rng(5)
    n, heads = 300, 12
    labels = rng.integers(2, size=n)
    predictions = np.tile(labels, (1 + heads, 1))
    predictions[0, :60] = 1 - predictions[0, :60]
    predictions[1:, :60] = predictions[0, :60]
    noise = rng.random((heads, n)) < 0.03
    predictions[1:] = np.where(noise & (rng.random((heads, n)) < 0.5), labels, predictions[1:])
    predictions[1:] = np.where(noise & (rng.random((heads, n)) < 0.1), 1 - labels, predictions[1:])
    names = [f"0-{head}" for head in range(heads)]
    plain = rises(certain(predictions, names), labels, "accuracy", permutations=999)
    assert (plain["variants"], plain["beyond"]) == (heads, 0)
    assert plain["low"] <= 0 < plain["rise"] < plain["high"]
    # The interval of the largest rise excludes 0 where its p is lower.
    for level in (0.8 * plain["p"], 1.2 * plain["p"]):
        summary = rises(certain(predictions, names), labels, "accuracy", level, permutations=999)
        assert (summary["low"] > 0) == (plain["p"] < level)
    predictions[5, :40] = labels[:40]
    raised = rises(certain(predictions, names), labels, "accuracy", permutations=999)
    assert (raised["beyond"], raised["largest"], raised["p"]) == (1, "0-4", 1 / 1000)
    assert rises(certain(predictions, names), labels, "loss", permutations=999)["largest"] == "0-4"


@pytest.mark.parametrize("metric", ORACLES)
def test_contributions_have_the_mean_and_error_of_the_change(study, metric: str):
    answers = compared(*study, metric)
    before, after = answers.weighted(np.random.default_rng(2).multinomial(N, np.full(N, 1 / N), 2000))
    assert answers.contributions.mean(axis=0) == pytest.approx(answers.change, abs=0.02)
    error = answers.contributions.std(axis=0, ddof=1) / np.sqrt(N)
    assert error == pytest.approx((after - before).std(axis=0), rel=0.2)


def test_changes_of_the_size_of_rounding_are_no_changes():
    """Two heads that do nothing: logits differ in their last bits, in one of them always the same way."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(40, 2))
    noise = rng.normal(size=(2, 40, 2)) * 1e-8 + np.array([0, 3e-8])[:, None, None] * np.array([1, -1])
    names = {"intervention": [BASELINE, "0-0", "0-1"]}
    logits = xr.DataArray(np.concatenate([base[None], base + noise]), names, AXES)
    labels = rng.integers(2, size=40)
    assert (change_table(logits, labels, ["loss"], resamples=99)["p"] == 1).all()
    summary = rises(logits, labels, "loss", permutations=99)
    assert (summary["raised"], summary["beyond"]) == (0, 0)


def test_a_constant_has_no_correlation_whatever_its_value():
    """Sums in floating point would leave a spread to three times .1."""
    rng = np.random.default_rng(0)
    varied, constant = rng.random(7), np.full(7, 0.1)
    assert np.isnan([pearson(varied, constant), pearson(constant, varied), spearman(constant, varied)]).all()
    assert pearson(varied, varied**2) == pytest.approx(stats.pearsonr(varied, varied**2).statistic)
    metric = METRICS["pearson"]
    means = metric.columns(np.stack([constant, varied**2])[..., None], varied).mean(axis=1)
    assert metric.value(means).tolist() == [0, pytest.approx(pearson(varied, varied**2))]


GAIN, LOST, SIZE = 0.03, 0.08, 150


def test_power_is_that_of_simulated_tests():
    rng = np.random.default_rng(0)
    gains, lost, _ = rng.multinomial(SIZE, [GAIN, LOST, 1 - GAIN - LOST], 4000).T
    result = ((changes.mcnemar(gains, lost) < 0.05) & (lost > gains)).mean()
    assert changes.mcnemar_power(GAIN, LOST, SIZE) == pytest.approx(result, abs=0.025)


def test_least_loss_has_the_power():
    """Five of five discordant answers have p = 1/16, six of six 1/32: 80 % of samples must hold six losses."""
    least = changes.least_accuracy(4, SIZE, power=0.7)
    assert changes.mcnemar_power(4 / SIZE, 4 / SIZE + least, SIZE) == pytest.approx(0.7, abs=1e-3)
    assert stats.binom.sf(5, 400, changes.least_accuracy(0, 400)) == pytest.approx(0.8, abs=1e-3)


def test_least_loss_of_a_metric_is_that_of_the_answers_which_accuracy_needs():
    """F1 after turning wrong so many right answers, a share of each class, differs by about the least change."""
    n = 2000
    labels = (np.arange(n) % 3 == 0).astype(int)
    answers = np.where(np.arange(n) % 10 == 0, 1 - labels, labels)
    logits = np.eye(2)[answers][None]
    cells = METRICS["f1"].columns(logits, labels)
    (least,) = changes.least_changes(Compared("f1", ["0-0"], cells[0], cells))
    wrong = int(round(changes.least_accuracy(0, n) * n))
    right = np.flatnonzero(answers == labels)
    turned = right[np.linspace(0, len(right) - 1, wrong).astype(int)]
    after = answers.copy()
    after[turned] = 1 - after[turned]
    assert least == pytest.approx(f1_score(labels, answers) - f1_score(labels, after), rel=0.15)


def test_least_change_of_the_loss_is_found_by_the_t_test():
    rng = np.random.default_rng(1)
    n = 80
    base, other = np.cumsum(rng.normal(0, 1, (2, n, 1)), axis=0)
    answers = Compared("loss", ["0-0"], base, other[None])
    (least,) = changes.least_changes(answers)
    sd = answers.difference[..., 0].std(ddof=1)
    samples = rng.normal(least, sd, (4000, n))
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("alpha", [0.8, 0.9, 1 - 1e-6])
def test_nothing_need_change_where_chance_alone_is_found_as_often(alpha: float):
    assert changes.least_effect(16, alpha, 0.8) == 0
    assert 0 < changes.least_accuracy(2, 16, alpha) < changes.least_accuracy(2, 16, 0.05)


def test_change_interval_by_hand():
    """Table of 3 gains and 8 losses among 100; the cells with .5 added sum to 102. Of 400 answers, 4 losses are few."""
    low, high = changes.change_interval(np.array([3, 0]), np.array([8, 0]), 100)
    change, error = -5 / 102, np.sqrt(12 / 102 - (5 / 102) ** 2) / np.sqrt(102)
    assert (low[0], high[0]) == pytest.approx((change - 1.96 * error, change + 1.96 * error), rel=1e-4)
    end = 1 - 0.0125 ** (1 / 100)
    assert (low[1], high[1]) == pytest.approx((-end, end))
    assert changes.change_interval(np.array([0]), np.array([4]), 400)[0] == pytest.approx(-0.028, abs=1e-4)


@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize(("gain", "lost"), [(0, 0.01), (0, 0.04), (0.002, 0.01), (0.01, 0.03), (0.02, 0.02)])
def test_changes_are_covered_where_few_answers_change(n, gain, lost):
    """The Wald interval alone covers .907 of samples in which 1 % of 400 answers turn wrong and none right."""
    right, wrong = (counts.ravel() for counts in np.indices((50, 50)))
    low, high = changes.change_interval(right, wrong, n)
    chance = stats.binom.pmf(right, n, gain) * stats.binom.pmf(wrong, n - right, lost / (1 - gain))
    assert chance @ ((low <= gain - lost) & (gain - lost <= high)) >= 0.94


@pytest.mark.parametrize("discordant", [0.02, 0.04, 0.1])
@pytest.mark.parametrize("n", [100, 400])
def test_a_loss_as_large_as_the_margin_is_seldom_accepted(n, discordant):
    """The lower end of a BCa interval accepts .13 of the samples of 100 in which only losses occur."""
    margin, rng = 0.02, np.random.default_rng(0)
    cells = rng.multinomial(n, [(discordant - margin) / 2, (discordant + margin) / 2, 1 - discordant], 4000)
    counts, times = np.unique(cells[:, :2], axis=0, return_counts=True)
    accepted = [changes.not_worse(gains, lost, n, margin).holds is True for gains, lost in counts.tolist()]
    assert accepted @ times / 4000 <= 0.05


def test_a_margin_that_no_sample_of_this_size_shows_is_inconclusive():
    result = changes.not_worse(0, 0, 100, 0.02)
    assert (result.holds, result.reason) == (None, "100 answers: a margin of 0.02 needs 217")
    assert changes.not_worse(0, 0, 217, 0.02).holds is True
    assert changes.not_worse(0, 60, 217, 0.02).holds is False
    assert changes.not_worse(3, 8, 217, 0.02).holds is None
