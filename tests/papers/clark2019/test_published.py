"""The tables that Clark 2019 published."""

import pytest

from analysis.papers.clark2019 import published


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
