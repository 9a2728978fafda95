"""Published values as the article and its consistency checks have them."""

import pytest
from studies import error_of

from analysis.papers.kovaleva2019.published import TABLES, kovaleva


def test_heads_of_bert_base():
    heads = kovaleva("heads")
    assert len(heads) == 144
    assert heads["cosine"].mean() == pytest.approx(0.779, abs=0.001)
    assert heads["link"].mean() == pytest.approx(0.037, abs=0.001)
    best = heads.nlargest(2, "link")
    assert [*zip(best["layer"], best["head"], strict=True)] == [(6, 5), (0, 1)]
    least = heads.nsmallest(1, "cosine").iloc[0]
    assert (least["layer"], least["head"]) == (10, 10)


def test_starts_gain_what_the_article_says():
    """35.9 points over the seven tasks."""
    table = kovaleva("initialisation")
    main = table[table["metric"] != "f1"].pivot(index="task", columns="start", values="value")
    assert 100 * (main["pretrained"] - main["untuned"]).mean() == pytest.approx(35.9, abs=0.05)


def test_shares_sum_to_one():
    sums = kovaleva("patterns").groupby(["task", "state"])["share"].sum()
    assert sums.to_numpy() == pytest.approx(1, abs=0.011)
    assert len(sums) == 16


def test_every_table_is_there():
    assert all(len(kovaleva(name)) for name in TABLES)
    assert "no table 'figures' here" in error_of(kovaleva, "figures")
