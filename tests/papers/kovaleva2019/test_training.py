"""Starts of training: untuned, random and pre-trained; what was trained is not trained again."""

import pandas as pd
from architectures import save

from analysis.encoders.models import load_encoder
from analysis.papers.kovaleva2019 import training as module
from analysis.papers.kovaleva2019.names import PRETRAINED, RANDOM
from analysis.papers.kovaleva2019.training import (
    initialisation_table,
    start_name,
    tuned_scores,
    untuned_scores,
)
from analysis.texts.glue import load_examples

TRAIN, DEV = (load_examples("toy-mrpc", split=split, n=16) for split in ("train", "dev"))


def test_untuned_heads_are_those_of_a_seed(tmp_path):
    folder = save("bert", tmp_path)
    first, again = (untuned_scores(folder, "mrpc", DEV, seed) for seed in (0, 0))
    assert first == again
    assert {*first} == {"accuracy", "f1"}
    assert any(untuned_scores(folder, "mrpc", DEV, seed) != first for seed in (1, 2, 3, 4))


def test_random_starts_have_other_weights_and_scores_are_kept(tmp_path, monkeypatch):
    seen = []

    def finetune(name, *_, **__) -> dict[str, float]:
        seen.append(load_encoder(name).digest)
        return {"accuracy": len(seen)}

    monkeypatch.setattr(module, "finetune", finetune)
    # tiny itself has the weights of seed 0
    starts = [(RANDOM, 1, 2), (RANDOM, 2, 2), (PRETRAINED, 2, 2), (PRETRAINED, 2, 3), (PRETRAINED, 2, 2)]
    found = [
        tuned_scores(tmp_path, start, "tiny", "mrpc", TRAIN, DEV, seed, epochs=epochs)["accuracy"]
        for start, seed, epochs in starts
    ]
    assert found == [1, 2, 3, 4, 3]
    assert len({*seen}) == 3
    assert seen[2] == load_encoder("tiny").digest


def test_table_says_how_much_each_start_was_trained():
    tuned = pd.DataFrame(
        [("mrpc", 0, "f1", 0.8, 0.9, 3668), ("qqp", 0, "f1", 0.1, 0.2, 10)],
        columns=["task", "seed", "metric", "constant", "finetuned", "train"],
    )
    scores = {("mrpc", "untuned", 0): {"f1": 0.3}, ("mrpc", start_name(RANDOM, 800, 2), 0): {"f1": 0.8}}
    table = initialisation_table(scores, tuned, 1)
    found = table.set_index("start")["value"].to_dict()
    assert found == {
        "untuned": 0.3,
        "random, 800 rows, 2 epochs": 0.8,
        "pretrained, 3,668 rows, 1 epoch": 0.9,
    }
    assert (table["constant"] == 0.8).all()
