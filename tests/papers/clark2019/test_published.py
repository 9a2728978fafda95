"""The tables that Clark 2019 published, and ours beside them."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.clark2019 import published
from analysis.papers.clark2019.coreference import AMONG, HALVES, SYSTEMS
from analysis.papers.clark2019.surface import COLUMNS


def test_specialists():
    """A layer for each head; text and figure agree for the previous token alone."""
    table = published.specialists().set_index("statistic")
    assert table.index.tolist() == ["previous", "next"]
    for prefix in ("", "figure_"):
        assert (table[f"{prefix}layers"].str.split().str.len() == table[f"{prefix}heads"]).all()
    assert (table["heads"] == table["figure_heads"]).tolist() == [True, False]
    assert table["of"].eq(144).all()


def test_layer_means():
    """What the article says in words: [SEP] in the middle layers, then punctuation; a broad last row of [CLS]."""
    table = published.surface_layers().set_index("layer")
    assert table.index.tolist() == [*range(12)]
    assert table.loc[5:8, "sep"].gt(0.5).all()
    assert table.loc[4:8, "sep_sep"].gt(0.85).all()
    assert table.loc[10:, "punct"].gt(0.5).all()
    assert table.loc[11, "entropy_cls"] == pytest.approx(3.89, abs=0.02)


def test_names_are_those_of_the_modules_that_make_the_tables():
    """They are not imported, since they need torch."""
    assert published.BOTH_HALVES == HALVES
    assert set(published.SYSTEMS) <= set(SYSTEMS)
    assert published.MARKED.keys() <= set(COLUMNS)
    assert all(f"best head among {words}".startswith(published.BEST_HEAD) for words in AMONG.values())
    assert published.THEIR_HEAD in published.clark("coreference")["system"].tolist()


def test_layers_stand_beside_the_published_twelve():
    table = pd.DataFrame({"layer": [0, 0, 1], "head": [0, 1, 0], **dict.fromkeys(COLUMNS, 0.1)})
    found = published.layers_beside_published(table.assign(sep=[0.2, 0.4, 0.8]))
    assert len(found) == 12 * 7
    sep = found[found["statistic"] == "sep"].set_index("layer")
    assert sep["bert_base_published"].iloc[5:10].gt(0.48).all()
    assert sep["this_encoder"].dropna().tolist() == pytest.approx([0.3, 0.8])


def test_systems_stand_beside_their_counterparts():
    best = [f"best head among {words}" for words in ("all words", "heads of preceding mentions")]
    ours = pd.DataFrame(
        {"system": [*SYSTEMS, *best], "all": 0.5, "pronoun": 0.6, "proper": 0.7, "nominal": 0.8}
    )
    found = published.systems_beside_published(ours).set_index("system")
    assert (found["all"] == 50).all()
    assert found.loc["rule-based", ["BERT-base all", "BERT-base nominal"]].tolist() == [69, 60]
    assert found.loc["nearest, either side", "BERT-base all"] == 27
    assert np.isnan(found.loc["nearest", "BERT-base all"])
    assert (found.filter(like="best head", axis=0)["BERT-base all"] == 65).all()


def test_probes_stand_beside_their_counterparts():
    rows = [
        ("attention", "tiny", 0, 0.4),
        ("attention", "tiny", 1, 0.6),
        ("attention + words" + published.ORIGINAL, "tiny", 0, 0.7),
        ("attention", "tiny, random layers", 0, 0.2),
        ("attention + words", "tiny, random layers", 0, 0.25),
    ]
    ours = pd.DataFrame(rows, columns=["probe", "encoder", "seed", "uas_no_punct"])
    found = published.probes_beside_published(ours).set_index(["probe", "encoder"])
    columns = ["seeds", "this_encoder", "bert_base_published"]
    assert found.loc[("attention", "tiny"), columns].tolist() == [2, 50, 61]
    assert found.loc[("attention + words", "tiny, random layers"), "bert_base_published"] == 30
    assert found.loc[("attention + words" + published.ORIGINAL, "tiny"), "bert_base_published"] == 77
    assert np.isnan(found.loc[("attention", "tiny, random layers"), "bert_base_published"])


def test_linguistic_heads_are_ahead_of_position_or_find_antecedents():
    dependencies = pd.DataFrame(
        {"relation": ["obj", "det", "case", "mark"], "layer": [1, 1, 0, 2], "head": [2, 2, 0, 1],
         "accuracy": [0.8, 0.9, 0.3, 0.9],
         "offset_accuracy": [0.4, 0.5, 0.6, 0.4], "p_adjusted": [0.01, 0.02, 0.01, 0.3]}
    )  # fmt: skip
    coreference = pd.DataFrame(
        {"scored_on": [HALVES, HALVES, "all documents"], "layer": [None, 1.0, 2.0], "head": [None, 2.0, 2.0]}
    )
    found = published.linguistic_heads(dependencies, coreference)
    assert found.to_dict("records") == [{"layer": 1, "head": 2, "finds": "obj, det, coreference"}]
    wider = published.linguistic_heads(dependencies, coreference, alpha=0.5)
    assert wider["finds"].tolist() == ["obj, det, coreference", "mark"]
