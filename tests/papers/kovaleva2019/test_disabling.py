"""The tables of what disabled heads and layers change."""

import numpy as np
import pytest
import xarray as xr

from analysis.papers.kovaleva2019.training import disabled_tables


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
    labels = dict.fromkeys(("mrpc", "sst-2"), logits.attrs["labels"])
    layers = logits.isel(intervention=[0, 1, 2]).assign_coords(intervention=["none", "layer 0", "layer 1"])
    passes = {"head": {("mrpc", 3): logits}, "layer": {("sst-2", 0): layers}}
    changes, risen = disabled_tables(passes, labels, permutations=999)
    heads, layers = (changes[changes["unit"] == unit] for unit in ("head", "layer"))
    rows = heads[heads["metric"] == "accuracy"].set_index(["layer", "head"])
    assert rows["baseline"].unique() == pytest.approx([5 / 6])
    assert rows["change"].to_numpy() == pytest.approx([0, 1 / 6, -1 / 3, -1 / 12])
    assert rows[["n", "put_right", "put_wrong"]].to_numpy().tolist() == [
        [60, 0, 0],
        [60, 10, 0],
        [60, 0, 20],
        [60, 0, 5],
    ]
    assert heads.loc[heads["metric"] == "loss", "put_right"].isna().all()
    assert {*heads["metric"]} == {"accuracy", "f1", "loss"}
    assert layers["layer"].tolist()[:2] == [0, 1]
    assert layers["head"].isna().all()
    row = risen.loc[0]  # beside chance
    assert row[["task", "seed", "raised", "beyond", "largest"]].tolist() == ["mrpc", 3, 1, 1, "0-1"]
    assert row["rise"] == pytest.approx(1 / 6)
