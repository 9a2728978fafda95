"""The tables of what disabled heads and layers change."""

import numpy as np
import pytest
import xarray as xr

from analysis.papers.kovaleva2019.training import disable_table, mean_change, rise_table
from analysis.statistics.answers import METRICS


@pytest.fixture
def logits() -> xr.DataArray:
    """Answers of 60 sequences: head 0-0 changes nothing, 0-1 puts ten right, 1-0 puts twenty wrong, 1-1 five."""
    labels = np.arange(60) % 2
    right = np.ones((5, 60), bool)
    right[[0, 1, 3, 4], :10] = False
    right[3, 10:30] = right[4, 10:15] = False
    answers = np.where(right, labels, 1 - labels)
    names = {"intervention": ["none", "0-0", "0-1", "1-0", "1-1"]}
    axes = ("intervention", "sequence", "class")
    return xr.DataArray(np.eye(2)[answers], names, axes, attrs={"labels": labels})


def test_heads_and_layers_in_the_table(logits):
    table = disable_table("mrpc", 3, "head", logits, logits.attrs["labels"], permutations=999)
    rows = table[table["metric"] == "accuracy"].set_index(["layer", "head"])
    assert rows["baseline"].unique() == pytest.approx([5 / 6])
    assert rows["change"].to_numpy() == pytest.approx([0, 1 / 6, -1 / 3, -1 / 12])
    assert {*table["metric"]} == {"accuracy", "f1", "loss"}
    named = logits.isel(intervention=[0, 1, 2]).assign_coords(intervention=["none", "layer 0", "layer 1"])
    table = disable_table("sst-2", 0, "layer", named, logits.attrs["labels"])
    assert table["layer"].tolist()[:2] == [0, 1]
    assert table["head"].isna().all()


def test_rises_beside_chance(logits):
    [row] = rise_table("mrpc", 0, "head", logits, logits.attrs["labels"], permutations=999).to_dict("records")
    assert (row["raised"], row["beyond"], row["largest"]) == (1, 1, "0-1")
    assert row["rise"] == pytest.approx(1 / 6)
    assert row["mean_change"] == pytest.approx((0 + 1 / 6 - 1 / 3 - 1 / 12) / 4)
    assert row["mean_low"] < row["mean_change"] < row["mean_high"]


def test_mean_change_is_that_of_the_metric(logits):
    labels, value = logits.attrs["labels"], METRICS["f1"]
    scored = value.value(value.columns(logits.values, labels).mean(axis=1))
    mean, low, high = mean_change(logits, labels, "f1")
    assert mean == pytest.approx((scored[1:] - scored[0]).mean())
    assert low <= mean <= high
    same = logits.isel(intervention=[0, 1])
    assert mean_change(same, labels, "accuracy") == (0, 0, 0)
