"""Role tables and other numbers of heads as the page keeps them."""

import pandas as pd
import pytest

from analysis.explorer.payload import scores_of, values_of

SHAPE = LAYERS, HEADS = 3, 4


def test_scores_stand_by_layer_and_head(tables):
    scores = scores_of(tables, SHAPE)
    entry = scores["mrpc"]["finetuned"]["nsubj"]
    for row in tables.query("task == 'mrpc' and state == 'finetuned' and role == 'nsubj'").itertuples():
        place = row.layer * HEADS + row.head
        assert entry["mean"][place] == pytest.approx(row.mean, rel=1e-3)
        assert entry["n"][place] == row.n
        assert entry["published"][place] == str(int(row.assigned))
        assert entry["corrected"][place] == str(int(row.assigned_corrected))
    assert "status" not in entry


def test_untestable_and_absent_are_not_the_same(tables):
    entry = scores_of(tables, SHAPE)["sst-2"]["pretrained"]["block"]
    assert entry["published"] == "?" * 12
    assert entry["status"][0].startswith("untestable: ")
    assert entry["mean"] == [None] * 12
    assert entry["n"] == 0
    part = tables[(tables["layer"] > 0) & (tables["role"] == "local")]
    assert scores_of(part, SHAPE)["mrpc"]["pretrained"]["local"]["published"].startswith("----")


def test_values_are_medians_over_the_rows_of_a_head():
    table = pd.DataFrame(
        {"task": ["mrpc"] * 3 + ["sst-2"], "layer": 1, "head": [2, 2, 2, 0], "value": [3, 1, 2, -1]}
    )
    values = values_of({"effect": table, "norm": table.drop(columns="task")}, SHAPE)
    assert values["effect"] == {
        "mrpc": [*[None] * 6, 2, *[None] * 5],
        "sst-2": [*[None] * 4, -1, *[None] * 7],
    }
    assert values["norm"] == {"": [*[None] * 4, -1, None, 2, *[None] * 5]}
