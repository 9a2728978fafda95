"""Transfer, speed and the course of fine-tuning, on tiny encoders; figures and sentences of their tables."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from drawing import unnamed
from removals import logits
from scipy import stats
from studies import error_of

from analysis.encoders.finetuning import finetune
from analysis.encoders.interventions import single_heads
from analysis.encoders.models import load_encoder
from analysis.papers.michel2019 import (
    dynamics,
    figures,
    predictions,
    pruning_figures,
    published,
    sentences,
    speed,
)
from analysis.papers.michel2019.dynamics import DYNAMICS, course, dynamics_table
from analysis.papers.michel2019.figures import by_label
from analysis.papers.michel2019.pruning import prunable_table
from analysis.papers.michel2019.speed import (
    BASE,
    SPEED,
    kept_speed_table,
    mean_interval,
    most_speedup,
    speed_table,
    timed_encoder,
)
from analysis.papers.michel2019.tables import overview
from analysis.papers.michel2019.transfer import TRANSFER, effects, transfer_table
from analysis.statistics.leads import constants
from analysis.texts.glue import load_examples

N, HEADS = 80, 30
NAMES = [f"{head // 6}-{head % 6}" for head in range(HEADS)]


def removed(strength: np.ndarray, seed: int, noise: float = 0.1):
    """Logits of right answers; each head raises their margin by its strength, with noise."""
    rng = np.random.default_rng(seed)
    found = logits(np.tile(np.arange(N) % 2, (1 + HEADS, 1)), NAMES)
    found[1:] += strength[:, None, None] * found[1:].values + noise * rng.normal(0, 1, found[1:].shape)
    return found


def test_effects_agree_as_far_as_heads_do():
    strength = np.random.default_rng(1).normal(0, 0.2, HEADS)
    labels = {"mrpc": np.arange(N) % 2, "qqp": np.arange(N) % 2}
    alike = {("mrpc", "mrpc"): removed(strength, 2), ("mrpc", "qqp"): removed(strength, 3)}
    other = alike | {("mrpc", "qqp"): removed(strength[::-1], 3)}
    tables = [transfer_table(effects(found, labels), resamples=199) for found in (alike, other)]
    assert TRANSFER == "model data_a data_b r low high spearman".split() == [*tables[0].columns]
    assert tables[0]["data_a"].tolist() == ["mrpc", "mrpc, one half"]
    assert tables[0].loc[0, "r"] > 0.95 > tables[1].loc[0, "high"]
    assert (tables[0]["low"] < tables[0]["r"]).all()
    first = effects(alike, labels)[0]
    losses = np.log1p(np.exp(-2 * (1 + strength))) - np.log1p(np.exp(-2))  # without the noise
    assert stats.pearsonr(first.a, losses).statistic > 0.9


def test_no_two_data_sets_have_no_rows_but_a_figure_and_a_sentence():
    table = transfer_table([])
    assert [*table.columns] == TRANSFER
    assert figures.effect_scatter([], table).axes[0].texts
    assert "No two" in sentences.carried_over(table, published.transfer())


def test_bound_is_the_share_of_multiplications():
    """Half of (4 + 2T/d) of (12 + 2T/d)."""
    for width in (384, 768):
        whole, attention = 12 + 256 / width, 4 + 256 / width
        assert most_speedup(width, 0.5) == pytest.approx(whole / (whole - attention / 2))
    assert most_speedup(384, 0) == 1


def test_speed_table_and_its_file(tmp_path: Path):
    table = kept_speed_table(tmp_path, ["tiny"], [1, 2], 2)
    assert [*table.columns] == SPEED == "model batch heads speedup low high bound".split()
    assert table["heads"].tolist() == [6, 6]
    assert ((table["low"] <= table["speedup"]) & (table["speedup"] <= table["high"])).all()
    assert kept_speed_table(tmp_path, ["tiny"], [1, 2], 2).equals(table)
    assert "at least 2" in error_of(speed_table, ["tiny"], [1], 1)


def test_times_belong_to_a_machine_and_a_version_of_torch(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(speed, "speed_table", lambda *_, **__: pd.DataFrame({"speedup": [1.0]}))
    changes = {(torch, "__version__"): "0", (torch, "get_num_threads"): lambda: 99,
               (speed.platform, "processor"): lambda: "another", (speed.os, "cpu_count"): lambda: 99}  # fmt: skip
    kept_speed_table(tmp_path, ["tiny"], [1], 2)
    for number, ((module, name), value) in enumerate(changes.items(), 2):
        monkeypatch.setattr(module, name, value)
        kept_speed_table(tmp_path, ["tiny"], [1], 2)
        assert len([*tmp_path.iterdir()]) == number


def test_times_without_spread_have_no_interval():
    mean, low, high = mean_interval(np.array([0.5, 0.5, 0.5]))
    assert mean == 0.5
    assert np.isnan([low, high]).all()
    values = np.array([0.1, 0.2, 0.4])
    tested = stats.ttest_1samp(values, 0).confidence_interval()
    assert mean_interval(values)[1:] == pytest.approx([tested.low, tested.high])


def test_base_has_the_size_of_bert_base(monkeypatch):
    monkeypatch.setattr(
        "analysis.papers.michel2019.speed.BertConfig", lambda: load_encoder("tiny").model.config
    )
    assert timed_encoder(BASE).name == BASE


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A course of the tiny encoder on four tenths and all of its steps, and where it was kept."""
    folder = tmp_path_factory.mktemp("course")
    train, dev = (load_examples("mrpc", "bundled", split, 24, 0) for split in ("train", "dev"))
    finetune("tiny", "mrpc", train, dev, folder / "mrpc-0", epochs=1, batch_size=4, learning_rate=1e-3)
    given = ("tiny", "mrpc", folder / "mrpc-0", "bundled", dev, train[:6], [0.4, 1.0], folder / "cache")
    return course(*given), given


def test_course_is_that_of_the_checkpoint(run):
    """The classifier after all steps answers as the checkpoint does, which the same recipe made."""
    found, (_, task, checkpoint, _, dev, *_, folder) = run
    assert found.dims == ("fraction", "intervention", "sequence", "class")
    last = predictions.logits_under(single_heads, checkpoint, task, dev, folder).sel(intervention="none")
    ends = found.sel(intervention="none")
    assert np.abs(ends.sel(fraction=1.0) - last).max() < 1e-5
    assert np.abs(ends.sel(fraction=0.4) - last).max() > 1e-3
    assert not [path for path in folder.iterdir() if path.is_dir()]  # the classifiers are gone


def test_course_is_kept(run, monkeypatch):
    found, given = run
    monkeypatch.setattr("analysis.papers.michel2019.dynamics.finetune", None)  # a second run would fail
    assert course(*given).equals(found)


def test_course_needs_a_checkpoint_with_a_recipe(run, tmp_path: Path):
    _, given = run
    message = error_of(course, *given[:2], tmp_path, *given[3:])
    assert "does not tell how it was fine-tuned" in message
    assert message.endswith("or skip the course with course_tasks=[]")


def test_course_is_kept_by_all_that_it_depends_on(run, monkeypatch):
    _, (*before, scored, measured, fractions, folder) = run
    monkeypatch.setattr(dynamics, "kept", lambda path, make: path.name)

    def place(texts=scored, **options):
        return course(*before, texts, measured, fractions, folder, **options)

    other = [replace(scored[0], text_a="Other words."), *scored[1:]]
    found = [place(), place(other), place(precision="bfloat16"), place(device="cuda")]
    for module in (torch, transformers):
        monkeypatch.setattr(module, "__version__", "0")
        found.append(place())
    assert len({*found}) == 6


def test_course_loads_weights_as_it_is_told(run, tmp_path: Path):
    _, given = run
    assert course(*given[:-2], [1.0], tmp_path, precision="bfloat16").attrs["precision"] == "bfloat16"


def test_without_courses_there_is_a_figure_and_a_sentence():
    table = dynamics_table({}, {}, resamples=99)
    assert [*table.columns] == DYNAMICS
    assert pruning_figures.course_curves(table, {}).axes[0].texts
    assert sentences.kept_on_the_way(table, {}) == "No task was fine-tuned again."


def test_dynamics_table_and_figure(run):
    found, (*_, dev, _, _, _) = run
    labels = {"mrpc": np.array([example.label for example in dev])}
    table = dynamics_table({"mrpc": found}, labels, resamples=99, permutations=99)
    assert [*table.columns] == DYNAMICS == "task fraction heads metric value low high".split()
    assert table["heads"].unique().tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12]
    assert (table["low"] <= table["value"] + 1e-9).all()
    figure = pruning_figures.course_curves(table, constants(labels))
    assert unnamed(figure) == []
    assert by_label(figure.axes)[1] == ["40%", "100%"]
    assert "mrpc at 40%" in sentences.kept_on_the_way(table, constants(labels))
    assert constants({"a": np.array([0, 1, 1, 1])}) == {"a": 0.75}


def test_runs_left_out_are_named():
    assert "cola, seed 1." in sentences.left_out([("cola", 0), ("cola", 1)], [("cola", 0)])
    assert sentences.left_out([("cola", 0)], [("cola", 0)]).startswith("All")


def changes(**columns: object) -> pd.DataFrame:
    """Changes of two tasks, a row per head and metric."""
    rng = np.random.default_rng(0)
    keys = [("mrpc", "accuracy"), ("mrpc", "loss"), ("cola", "matthews"), ("cola", "loss")]
    rows = [(*key, 0, layer, head) for key in keys for layer in range(3) for head in range(4)]
    table = pd.DataFrame(rows, columns=["task", "metric", "seed", "layer", "head"])
    change = rng.normal(0, 0.02, len(table))
    return table.assign(change=change, low=change - 0.02, high=change + 0.02, p=rng.random(len(table)), p_by=1.0,
                        baseline=0.8, least=0.02, **columns)  # fmt: skip


def test_figures_of_removed_heads_name_their_axes_and_tasks():
    table = changes()
    left = pd.concat(
        [changes(chosen_on="every head"), *(changes(chosen_on=name)[::4] for name in ("dev", "train"))]
    )
    drawn = [figures.head_maps(table, 0.01), figures.head_histograms(table), figures.one_head_layers(left)]
    for figure in drawn:
        assert unnamed(figure) == []
        assert {axes.get_title().split()[0].strip(":") for axes in figure.axes[:2]} == {"mrpc", "cola"}
    assert by_label(drawn[2].axes)[1] == [
        "every head",
        "best on these sequences",
        "chosen on training examples",
    ]
    assert "p < .01;" in drawn[0].axes[-1].get_ylabel()
    bins = drawn[1].axes[0].patches[-1].get_data().edges
    assert (bins[12] + bins[13]) / 2 == pytest.approx(0)


def test_curves_draw_orders_and_count_what_goes():
    rows = [("mrpc", 0, order, heads, "accuracy") for order in (*pruning_figures.ORDER_LOOKS, "random 0", "random 1")
            for heads in (0, 6, 12)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["task", "seed", "order", "heads", "metric"])
    table["change"] = np.tile([0, -0.01, -0.3], 5)
    table = table.assign(value=0.8 + table["change"], p=np.tile([1, 0.6, 0.001], 5), least=0.03)
    table = table.assign(low=table["value"] - 0.02, high=table["value"] + 0.02)
    figure = pruning_figures.pruning_curves(table, {"mrpc": 0.68})
    assert unnamed(figure) == []
    assert by_label(figure.axes)[1] == ["random orders", *pruning_figures.ORDER_LOOKS]
    given = ([("mrpc", 0)], published.prunable())
    shares = prunable_table(table, {"mrpc": (np.arange(400) % 3 == 0).astype(int)}, *given)
    assert shares["share"].eq(0.5).all()
    assert "mrpc 50%" in sentences.prunable_heads(shares)
    assert "nothing to lose" in sentences.prunable_heads(shares.assign(share=np.nan))
    lost = table.assign(task="qqp", value=0.1, change=-0.9)  # a run without a lead does not count
    both, theirs = pd.concat([table, lost]), published.pruning()
    assert "99% of the score is left" in sentences.beside_published_curves(both, given[0], theirs)
    assert "nothing to lose" in sentences.beside_published_curves(table, [], theirs)


def test_other_figures_and_sentences():
    table = changes()
    importances = table[["task", "seed", "layer", "head"]].drop_duplicates()
    importances = importances.assign(granularity="example", normalised=True, importance=0.5)
    assert unnamed(pruning_figures.importance_scatter(importances, table)) == []
    times = pd.DataFrame([("tiny", 16, 6, 1.2, 1.1, 1.3, 1.25)], columns=SPEED)
    figure = pruning_figures.speedups(times, published.speed())
    assert unnamed(figure) == []
    assert "tiny at 16: 1.20 [1.10, 1.30]" in sentences.gained_speed(times)


def test_sentences_name_the_level_that_was_used():
    table = changes()
    assert "(p < .01, all runs): mrpc 1 of 12" in sentences.single_heads(overview(table.assign(p=0.03).assign(
        p=lambda rows: np.where(rows.index % 12 == 0, 0.001, rows["p"]), change=-0.1), 0.01), 0.01)  # fmt: skip
    tested = pd.DataFrame({"beyond": [0], "variants": 12, "p_raised": 0.03, "p": 0.2, "largest": "0-1", "rise": 0.01,
                           "low": -0.01, "high": 0.02, "task": "mrpc"})  # fmt: skip
    assert "in 0 of 1 runs" in sentences.raised_scores(tested, 0.01)
