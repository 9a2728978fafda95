import numpy as np
import pandas as pd
import pytest
from architectures import save
from removals import logits, wrong

from analysis.encoders.finetuning import Recipe
from analysis.encoders.models import load_encoder
from analysis.papers.kovaleva2019 import training
from analysis.papers.kovaleva2019.measures import PRETRAINED, RANDOM
from analysis.texts.glue import load_examples

TRAIN, DEV = (load_examples("toy-mrpc", split=split, n=16) for split in ("train", "dev"))


def test_untuned_heads_are_those_of_a_seed(tmp_path):
    folder = save("bert", tmp_path)
    first, again = (training.untuned_scores(folder, "mrpc", DEV, seed) for seed in (0, 0))
    assert first == again
    assert {*first} == {"accuracy", "f1"}
    assert any(training.untuned_scores(folder, "mrpc", DEV, seed) != first for seed in (1, 2, 3, 4))


def test_random_starts_have_other_weights_and_scores_are_kept(tmp_path, monkeypatch):
    digests = []

    def finetune(name, *_, **__) -> dict[str, float]:
        digests.append(load_encoder(name).digest)
        return {"accuracy": len(digests)}

    monkeypatch.setattr(training, "finetune", finetune)
    # tiny itself has the weights of seed 0
    starts = [(RANDOM, 1, 2), (RANDOM, 2, 2), (PRETRAINED, 2, 2), (PRETRAINED, 2, 3), (PRETRAINED, 2, 2)]
    scores = [
        training.tuned_scores(tmp_path, start, "tiny", "mrpc", TRAIN, DEV, Recipe(epochs, seed=seed))[
            "accuracy"
        ]
        for start, seed, epochs in starts
    ]
    assert scores == [1, 2, 3, 4, 3]
    assert len({*digests}) == 3
    assert digests[2] == load_encoder("tiny").digest


def test_table_says_how_much_each_start_was_trained():
    rows = [("mrpc", 0, "f1", 0.8, 0.9, 3668), ("qqp", 0, "f1", 0.1, 0.2, 10)]
    tuned = pd.DataFrame(rows, columns="task seed metric constant finetuned train".split())
    scores = {("mrpc", "untuned", 0): {"f1": 0.3}}
    scores["mrpc", training.start_name(RANDOM, 800, 2), 0] = {"f1": 0.8}
    table = training.initialisation_table(scores, tuned, {"mrpc": 1})
    assert table.set_index("start")["value"].to_dict() == {
        "untuned": 0.3,
        "random, 800 rows, 2 epochs": 0.8,
        "pretrained, 3,668 rows, 1 epoch": 0.9,
    }
    assert (table["constant"] == 0.8).all()
    gains = training.gains_of_finetuning(table.replace({"f1": "accuracy"}))
    assert gains.to_dict() == {"mrpc": pytest.approx(0.6)}


def test_heads_and_layers_in_the_table():
    """Head 0-0 changes nothing, 0-1 puts all ten wrong answers right, 1-0 puts twenty more wrong, 1-1 five."""
    labels = np.arange(60) % 2
    answers = wrong(labels, [10, 10, 0, 30, 15])
    heads = logits(answers, ["0-0", "0-1", "1-0", "1-1"], sure=1)
    layers = logits(answers[:3], ["layer 0", "layer 1"])
    passes = {"head": {("mrpc", 3): heads}, "layer": {("sst-2", 0): layers}}
    changes, risen = training.disabled_tables(passes, {"mrpc": labels, "sst-2": labels}, permutations=999)
    heads, layers = (changes[changes["unit"] == unit] for unit in ("head", "layer"))
    rows = heads[heads["metric"] == "accuracy"].set_index(["layer", "head"])
    assert rows["baseline"].unique() == pytest.approx([5 / 6])
    assert rows["change"].to_numpy() == pytest.approx([0, 1 / 6, -1 / 3, -1 / 12])
    assert rows["n"].eq(60).all()
    assert rows[["put_right", "put_wrong"]].to_numpy().tolist() == [[0, 0], [10, 0], [0, 20], [0, 5]]
    assert heads.loc[heads["metric"] == "loss", "put_right"].isna().all()
    assert {*heads["metric"]} == {"accuracy", "f1", "loss"}
    assert layers["layer"].tolist()[:2] == [0, 1]
    assert layers["head"].isna().all()
    row = risen.loc[0]
    assert row[["task", "seed", "raised", "beyond", "largest"]].tolist() == ["mrpc", 3, 1, 1, "0-1"]
    assert row["rise"] == pytest.approx(1 / 6)
