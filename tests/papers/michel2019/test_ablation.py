import numpy as np
import pytest
from removals import logits, wrong
from scipy import stats

from analysis.papers.michel2019 import ablation

N, LAYERS, HEADS = 40, 2, 3
LABELS = np.arange(N) % 2
NAMES = [f"{layer}-{head}" for layer in range(LAYERS) for head in range(HEADS)]
ONLY = [f"only {name}" for name in NAMES]
FAST = {"resamples": 99, "permutations": 199}


@pytest.fixture(scope="module")
def single():
    """With 4 wrong answers: heads that lose 0, 1, 2 (layer 0), gain 3, lose 20 and 0 (layer 1)."""
    return logits(wrong(LABELS, [4, 4, 5, 6, 1, 24, 4]), NAMES)


def test_overview_counts_losses_and_gains(single):
    table = ablation.all_changes({("sst-2", 0): single}, {"sst-2": LABELS}, **FAST)
    counts = ablation.overview(table).set_index("metric")
    assert table[["task", "seed"]].drop_duplicates().to_numpy().tolist() == [["sst-2", 0]]
    assert [*ablation.all_changes({}, {})] == ["task", "seed"]
    assert counts.loc["accuracy", ["heads", "lost", "gained", "lost_by"]].tolist() == [6, 1, 0, 1]
    assert counts.loc["loss", "lost"] == 1  # a rise of the loss is a loss
    assert counts.loc["accuracy", ["lowest", "highest"]].tolist() == pytest.approx([-0.5, 0.075])


def test_effects_on_the_auc(single):
    table = ablation.effects_by_metric({("sst-2", 0): single}, {"sst-2": LABELS}).query("metric == 'auc'")
    assert table["effect"].to_numpy() * N == pytest.approx([0, 1, 2, -3, 20, 0])


def test_best_head_of_a_layer_has_the_best_score(single):
    assert ablation.best_heads(single, LABELS, "sst-2") == ["0-0", "1-0"]


def test_all_but_one_has_every_head_the_best_and_the_one_chosen_on_train():
    runs = {("sst-2", 0): logits(wrong(LABELS, [4, 4, 5, 6, 1, 24, 4]), ONLY)}
    chosen = {("sst-2", 0): ["only 0-2", "only 1-1"]}
    table = ablation.all_but_one_table(runs, {"sst-2": LABELS}, chosen, **FAST)
    rows = table[table["metric"] == "accuracy"].set_index("chosen_on")
    assert rows.index.value_counts().to_dict() == {ablation.EVERY: 6, "dev": 2, "train": 2}
    assert rows.loc["dev", "head"].tolist() == [0, 0]
    assert rows.loc["train", "change"].to_numpy() * N == pytest.approx([-2, -20])
    assert rows.loc["train", "p_by"].iloc[1] == pytest.approx(rows.loc["train", "p"].iloc[1] * 2 * 1.5)


def test_harmless_losses_are_at_most_a_fifth_of_the_lead(single):
    """The lead is 16 of 40 answers, so that a loss of 3 is harmless; a run that is not trained does not count."""
    runs = {("sst-2", 0): single, ("sst-2", 1): single}
    table = ablation.harmless_shares(runs, {}, {"sst-2": LABELS}, [("sst-2", 0)])
    assert table.loc[0, ["unit", "task", "runs"]].tolist() == ["head", "sst-2", 1]
    assert table.loc[0, "value"] == pytest.approx(5 / 6)
    assert table.loc[0, "shown"] < 0.5  # 40 answers show little
    assert ablation.harmless_shares(runs, {}, {"sst-2": LABELS}, [])["value"].isna().all()
    few = {("sst-2", 0): single.isel(sequence=slice(0, 20))}
    table = ablation.harmless_shares(few, {}, {"sst-2": LABELS[:20]}, [*few])
    assert np.isnan(table.loc[0, "value"])  # a fifth of the lead is 1.6 answers
    assert table.loc[0, "reason"] == "a fifth of the lead is less than 3 answers"


def test_harmless_is_shown_where_the_whole_interval_is_above_the_margin():
    """The lead is 160 of 400 answers, the margin 32: losses of 0 and 20 are shown to be harmless, 25 and 40 are not."""
    labels = np.arange(400) % 2
    ablations = ablation.harmless(logits(wrong(labels, [40, 40, 60, 65, 80]), NAMES[:4]), labels, "sst-2")
    assert ablations.estimated[0].tolist() == [True, True, True, False]
    assert ablations.shown.tolist() == [True, True, False, False]


def test_transfer_takes_a_split_or_the_dev_set_of_a_task():
    examples = ablation.transfer_examples(["toy-mrpc", "toy-qqp train"], ["toy-mrpc", "toy-qqp"], None, 5, 0)
    assert [len(sample) for sample in examples.values()] == [5, 5]
    assert ablation.transfer_examples(["toy-mrpc", "toy-qqp"], ["toy-mrpc"], None, 5, 0) == {}


def shifted(strength: np.ndarray, seed: int) -> object:
    """Logits of right answers to 80 sequences; each of 30 heads raises their margin by its strength, with noise."""
    rng, names = np.random.default_rng(seed), [f"{head // 6}-{head % 6}" for head in range(len(strength))]
    answers = logits(np.tile(np.arange(80) % 2, (1 + len(strength), 1)), names)
    answers[1:] += strength[:, None, None] * answers[1:].values + 0.1 * rng.normal(0, 1, answers[1:].shape)
    return answers


def test_effects_agree_as_far_as_heads_do():
    strength = np.random.default_rng(1).normal(0, 0.2, 30)
    labels = {"mrpc": np.arange(80) % 2, "qqp": np.arange(80) % 2}
    same = {"mrpc": shifted(strength, 2), "qqp": shifted(strength, 3)}
    reverse = same | {"qqp": shifted(strength[::-1], 3)}
    assert {*ablation.effects(same, labels)["metric"]} == {"accuracy", "auc", "loss"}
    by_loss = [ablation.effects(answers, labels).query("metric == 'loss'") for answers in (same, reverse)]
    tables = [ablation.transfer_table(table, resamples=199) for table in by_loss]
    assert tables[0]["data_a"].tolist() == ["mrpc"] * 2 + ["mrpc, one half"] * 2
    assert tables[0].loc[0, "value"] > 0.95 > tables[1].loc[0, "high"]
    assert (tables[0]["low"] < tables[0]["value"]).all()
    assert tables[0]["value"].dtype == float  # so that it is saved with six digits
    heads = by_loss[0].query("data_b == 'qqp'")
    without_noise = np.log1p(np.exp(-2 * (1 + strength))) - np.log1p(np.exp(-2))
    assert stats.pearsonr(heads["a"], without_noise).statistic > 0.9
    expected = [test(heads["a"], heads["b"]).statistic for test in (stats.pearsonr, stats.spearmanr)]
    assert tables[0].loc[:1, "value"].tolist() == pytest.approx(expected)
    largest = heads.set_index(["layer", "head"])[["a", "b"]].abs().idxmax()
    assert tables[0].loc[0, "largest"].split(" and ")[0] == "{}-{}".format(*largest["a"])
