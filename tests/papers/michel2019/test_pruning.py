from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from classifiers import EXAMPLES, classifier
from removals import logits, wrong

from analysis.cache import digest
from analysis.encoders.classifiers import load_classifier
from analysis.encoders.finetuning import Recipe, finetune
from analysis.encoders.interventions import predict
from analysis.encoders.pruning import importance
from analysis.papers.michel2019 import pruning
from analysis.texts.glue import load_examples

N = 40
LABELS = np.arange(N) % 2
FAST = {"resamples": 99, "permutations": 199}


def test_counts_are_those_of_the_authors_code():
    assert pruning.step_counts(4) == [1, 2, 3, 4]
    assert pruning.step_counts(144) == [14, 28, 43, 57, 72, 86, 100, 115, 129, 144]


def test_score_order_removes_what_hurts_least_and_breaks_ties_by_the_loss():
    answers = logits(wrong(LABELS, [4, 6, 1, 6, 4]), ["0-0", "0-1", "1-0", "1-1"])
    answers[dict(intervention=3)] = 3 * answers[3].values  # head 1-0: wrong more surely, a higher loss
    assert pruning.by_score(answers, LABELS, "sst-2") == [(0, 1), (1, 1), (0, 0), (1, 0)]


def test_reestimated_importance_is_that_of_the_remaining_heads(tmp_path: Path):
    encoder = classifier("bert")
    gate, expected = np.ones((encoder.layers, encoder.heads), np.float32), []
    for count in pruning.step_counts(gate.size):
        values = importance(encoder, EXAMPLES, gate=gate, progress=False).sel(granularity="example").values
        values = values / np.sqrt((values**2).sum(axis=1, keepdims=True)).clip(1e-30)
        ranked = sorted(np.argwhere(gate > 0).tolist(), key=lambda head: values[tuple(head)])
        for head in ranked[: count - len(expected)]:
            expected.append(tuple(head))
            gate[tuple(head)] = 0
    assert pruning.by_reestimated_importance(encoder, EXAMPLES, tmp_path) == expected


def test_orders_hold_every_head_once_and_end_in_the_same_answers():
    encoder = classifier("bert")
    heads = [*np.ndindex(encoder.layers, encoder.heads)]
    orders = pruning.at_random(encoder, 2) | {"importance": heads}
    assert [*orders] == ["random 0", "random 1", "importance"]
    assert all(sorted(order) == heads for order in orders.values())
    assert orders["random 0"] != orders["random 1"]
    answers = predict(encoder, EXAMPLES, pruning.pruned_steps(encoder, orders), progress=False)
    ends = answers.sel(intervention=[f"{name} {len(heads)}" for name in orders]).values
    assert (ends == ends[0]).all()
    assert np.ptp(ends[0], axis=0).max() < 1e-5  # all heads ablated: a constant answer


def steps(*counts: int) -> xr.DataArray:
    """Pruning in four steps; the numbers count wrong answers, first those of the whole classifier."""
    return logits(wrong(LABELS, [*counts]), [f"importance {count}" for count in (3, 6, 9, 12)])


def test_curves_start_with_the_whole_classifier_and_are_shares_of_its_lead():
    labels = {"sst-2": LABELS}
    runs = {("sst-2", 0): steps(4, 8, 12, 20, 24), ("sst-2", 1): steps(20, 20, 20, 20, 20)}
    curves = pruning.prune_curves(runs, labels, **FAST)
    rows = curves[(curves["seed"] == 0) & (curves["metric"] == "accuracy")]
    assert rows["heads"].tolist() == [0, 3, 6, 9, 12]
    assert rows["value"].to_numpy() * N == pytest.approx([36, 32, 28, 20, 16])
    assert rows.iloc[0][["low", "high", "p"]].tolist() == pytest.approx([0.9, 0.9, 1])
    shares = pruning.shares_of_lead(curves, labels, [("sst-2", 0)])
    assert shares["seed"].eq(0).all()  # the other run has no lead
    assert shares["kept"].tolist() == pytest.approx([1, 0.75, 0.5, 0, -0.25])
    assert shares["share"].tolist() == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert (shares["kept_low"] <= shares["kept"] + 1e-9).all()


def test_prunable_share_ends_at_the_first_loss_of_a_fifth_of_the_lead():
    """The lead is .4 of 40 answers: a loss of 3 is harmless, one of 4 is not, and a later gain does not undo it."""
    names = [f"{order} {count}" for order in ("importance", "random 0") for count in (1, 2, 3, 4)]
    answers = logits(wrong(LABELS, [4, 4, 7, 20, 4, 8, 4, 4, 20]), names)
    runs = {("sst-2", 0): answers, ("sst-2", 1): answers}
    table = pruning.prunable_table(runs, {"sst-2": LABELS}, [("sst-2", 0)])
    table = table.set_index(["seed", "order"])
    assert table.loc[(0, "importance"), "share"] == 0.5
    assert table.loc[(0, "random 0"), "share"] == 0
    assert table.loc[(0, "importance"), "shown"] == 0  # 40 answers show nothing
    assert table.loc[(0, "importance"), "low"] < 0.5 < table.loc[(0, "importance"), "high"]
    assert table.loc[1, ["share", "low"]].isna().all(axis=None)  # a run without a lead
    assert table["bert_base_published"].eq(0.6).all()


def test_importance_agrees_with_effects_as_ranks_do():
    heads = pd.DataFrame({"task": "mrpc", "seed": 0, "layer": 0, "head": range(4)})
    importances = heads.assign(granularity="example", normalised=False, importance=[1.0, 2.0, 3.0, 9.0])
    others = importances.assign(normalised=True, importance=0.0)
    importances = pd.concat([importances, others])
    importances = pd.concat([importances, importances.assign(task="qqp")])
    effects = heads.assign(metric="auc", effect=[0.1, 0.3, 0.2, 0.4])
    effects = pd.concat([effects, effects.assign(task="qqp", effect=[4, 3, 2, 1])])
    table = pruning.importance_agreement(importances, effects).set_index("task")
    assert table["value"].to_dict() == pytest.approx({"mrpc": 0.8, "qqp": -1, pruning.ALL_TASKS: -0.1})
    assert table.loc[pruning.ALL_TASKS, ["low", "high"]].tolist() == [-1, 1]  # two tasks, cut


def test_later_gain_compares_the_end_with_the_first_lead():
    """The first of three classifiers has no lead; pruning leaves the second half of its lead, the last all of it."""
    stages = [steps(20, 20, 20, 20, 20), steps(8, 14, 14, 14, 20), steps(4, 4, 4, 4, 20)]
    course = xr.concat(stages, pd.Index([0.1, 0.5, 1.0], name="fraction"))
    none = course.sel(fraction=[0.1, 1.0])
    gains = pruning.later_gain({"sst-2": course, "qqp": none}, dict.fromkeys(("sst-2", "qqp"), LABELS))
    assert gains["sst-2"][0] == pytest.approx(1 - 0.5)
    assert np.isnan(gains["qqp"]).all()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A course after the first step (at least one, for a share of less) and all of them, and its arguments."""
    folder = tmp_path_factory.mktemp("course")
    train, dev = (load_examples("toy-mrpc", split=split, n=24, seed=0) for split in ("train", "dev"))
    finetune("tiny", "toy-mrpc", train, dev, folder / "mrpc-0", Recipe(1, 4, 1e-3))
    arguments = ("tiny", "toy-mrpc", folder / "mrpc-0", None, dev, train[:6], [0.01, 1.0], folder / "cache")
    return pruning.course(*arguments), arguments


def test_course_is_that_of_the_checkpoint(run):
    answers, (_, task, checkpoint, _, dev, *_, folder) = run
    assert answers.dims == ("fraction", "intervention", "sequence", "class")
    last = predict(load_classifier(checkpoint, task), dev, []).sel(intervention="none")
    whole = answers.sel(intervention="none")
    assert np.abs(whole.sel(fraction=1.0) - last).max() < 1e-5
    assert np.abs(whole.sel(fraction=0.01) - last).max() > 1e-3
    assert not [path for path in folder.iterdir() if path.is_dir()]  # the classifiers are gone


def test_course_is_cached_by_all_that_it_depends_on(run, monkeypatch):
    _, (*before, dev_sample, train_sample, fractions, folder) = run
    monkeypatch.setattr(pruning, "cached", lambda folder, name, parts, make: {"logits": digest(parts)})

    def key(texts=dev_sample, **options):
        return pruning.course(*before, texts, train_sample, fractions, folder, **options)

    other = [replace(dev_sample[0], text_a="Other words."), *dev_sample[1:]]
    keys = [key(), key(other), key(precision="bfloat16"), key(device="cuda")]
    for library in (pruning.torch, pruning.transformers):
        monkeypatch.setattr(library, "__version__", "0")
        keys.append(key())
    assert len({*keys}) == 6
