"""The probing experiment on a handful of bundled sentences."""

import numpy as np
import pandas as pd
import pytest

from analysis.encoders.models import load_encoder
from analysis.papers.clark2019.probes import COLUMNS, ORIGINAL, RIGHT_BRANCHING, over_seeds, probe_table
from analysis.texts.dependencies import right_branching, uas
from analysis.texts.treebank import conllu_files, read_trees


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("trees")
    return {split: read_trees(conllu_files([], folder, 2, split, 0)).words for split in ("train", "dev")}


def test_table(words):
    encoder = load_encoder("tiny")
    options = {"seeds": [3, 4], "alignments": ["fixed", "original"], "progress": False}
    found = probe_table([encoder], words["train"], words["dev"], **options)
    assert found.table.columns.tolist() == COLUMNS
    with_words = [
        name + alignment
        for name in ("attention + words", "distances + words")
        for alignment in ("", ORIGINAL)
    ]
    counts = found.table["probe"].value_counts().to_dict()
    assert counts == {RIGHT_BRANCHING: 1, "attention": 2} | dict.fromkeys(with_words, 2)
    branching = found.table[found.table["probe"] == RIGHT_BRANCHING].iloc[0]
    assert branching["uas_no_punct"] == uas(right_branching(words["dev"]), words["dev"])
    assert found.table["uas"].between(0, 1).all()
    assert found.left_out["scored"]["too long"] == 0
    again = probe_table([encoder], words["train"], words["dev"], **options)
    assert again.table.to_csv() == found.table.to_csv()
    assert again.weights == found.weights
    other = probe_table([encoder], words["train"], words["dev"], **options | {"seeds": [3, 5]})
    assert other.weights != found.weights


def test_interval_over_seeds():
    table = pd.DataFrame(
        {"probe": ["a", "a", "a", "b"], "encoder": "e", "seed": [0, 1, 2, None], "uas": 0.0,
         "uas_no_punct": [0.5, 0.6, 0.7, 0.3]}
    )  # fmt: skip
    found = over_seeds(table).set_index("probe")
    assert found.loc["a", "mean"] == pytest.approx(0.6)
    assert found.loc["a", "high"] - 0.6 == pytest.approx(
        4.302653 * 0.1 / np.sqrt(3)
    )  # t of 2 degrees, tables
    assert found.loc["b", ["low", "high"]].isna().all()
