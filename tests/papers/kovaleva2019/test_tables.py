"""Tables from readings that are made by hand."""

import itertools

import numpy as np
import pytest
import xarray as xr

from analysis.papers.kovaleva2019.names import FEATURES, PATTERNS
from analysis.papers.kovaleva2019.reading import LINK_MODES, LINKS, MODES
from analysis.papers.kovaleva2019.tables import (
    block_table,
    cls_table,
    feature_table,
    pattern_heads,
    pattern_table,
    verb_blocks,
    verb_table,
)

N, LAYERS, HEADS = 12, 2, 3


def reading(seed: int) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    heads = ("layer", "head")
    labels = rng.integers(len(PATTERNS), size=(N, LAYERS, HEADS)).astype(np.int8)
    labels[8:] = -1
    received = rng.random((N, len(MODES), len(FEATURES), LAYERS, HEADS))
    received[:5, 1, 0] = np.nan
    link = rng.random((N, len(LINKS), len(LINK_MODES), LAYERS, HEADS))
    link[:, 0, 1] = link[:, 0, 2] + 0.5 + 0.01 * rng.random((N, LAYERS, HEADS))
    link[:2, :, 1:] = np.nan
    variables = {
        "received": (("sequence", "mode", "feature", *heads), received),
        "cls_row": (("sequence", "feature", "head"), rng.random((N, len(FEATURES), HEADS))),
        "link": (("sequence", "link_name", "link_mode", *heads), link),
        "pattern": (("sequence", *heads), labels),
        "cosine": (("sequence", *heads), rng.random((N, LAYERS, HEADS))),
    }
    coordinates = {
        "sequence": range(N),
        "cluster": ("sequence", np.arange(N)),
        "mode": [*MODES],
        "feature": [*FEATURES],
        "link_name": [*LINKS],
        "link_mode": [*LINK_MODES],
        "layer": range(LAYERS),
        "head": range(HEADS),
    }
    return xr.Dataset(variables, coordinates)


@pytest.fixture(scope="module")
def readings() -> dict:
    runs = itertools.product(("mrpc", "qqp"), (None, 0, 1))
    return {run: reading(seed) for seed, run in enumerate(runs)}


def test_pattern_shares(readings):
    table = pattern_table(readings)
    assert (table["n"] == 8).all()
    assert table["share"].between(table["low"], table["high"]).all()
    rows = table.set_index(["task", "state", "pattern"])["share"]
    labels = [readings["mrpc", run]["pattern"].values[:8] for run in (0, 1)]
    expected = np.mean([(each == 3).mean() for each in labels])
    assert rows["mrpc", "finetuned", PATTERNS[3]] == pytest.approx(expected)
    one = pattern_heads(readings).set_index(["task", "state", "layer", "head", "pattern"])["share"]
    expected = (readings["qqp", None]["pattern"].values[:8, 1, 2] == 0).mean()
    assert one["qqp", "pretrained", 1, 2, PATTERNS[0]] == pytest.approx(expected)


def test_features_leave_out_what_is_absent(readings):
    one = feature_table(readings).set_index(["task", "state", "feature", "mode", "layer", "head"])
    row = one.loc[("mrpc", "pretrained", FEATURES[0], "aligned", 1, 2)]
    assert row["n"] == N - 5
    assert row["mean"] == pytest.approx(np.nanmean(readings["mrpc", None]["received"].values[:, 1, 0, 1, 2]))
    assert one.loc[("qqp", "finetuned", LINKS[1], "same distance", 0, 0), "n"] == N - 2
    one = cls_table(readings).set_index(["task", "state", "feature", "head"])["mean"]
    expected = readings["qqp", None]["cls_row"].values[:, 1, 2].mean()
    assert one["qqp", "pretrained", FEATURES[1], 2] == pytest.approx(expected)


def test_links_of_verbs_beside_the_same_distance(readings):
    table = verb_table(readings, permutations=999)
    first = table[(table["link"] == LINKS[0]) & (table["state"] == "pretrained")]
    assert (first["mean"] - first["control"]).to_numpy() == pytest.approx(0.505, abs=0.01)
    assert (first["low"] > 0.49).all()
    assert (first["p"] < 0.05).all()
    assert (table["n"] == N - 2).all()
    nothing = {("mrpc", None): reading(0).assign(link=readings["mrpc", None]["link"] * np.nan)}
    assert (verb_table(nothing)["n"] == 0).all()


def test_blocks_hold_the_means_that_claims_are_judged_on(readings):
    table = block_table(readings)
    assert {*table["seed"]} == {-1, 0, 1}
    place = {"task": "mrpc", "seed": 0, "block": 3, "measure": "[CLS]", "layer": 1}
    value = table.set_index([*place]).loc[tuple(place.values()), "value"]
    received = readings["mrpc", 0]["received"].sel(mode="aligned", feature="[CLS]", layer=1)
    assert value == pytest.approx(received[3::10].mean().item())
    shares = table[table["measure"].isin(PATTERNS)].groupby(["task", "seed", "block"])["value"].sum()
    np.testing.assert_allclose(shares.dropna(), 1)


def test_blocks_of_verbs_pool_the_tasks_before_fine_tuning(readings):
    table = verb_blocks(readings).set_index(["direction", "block", "layer", "head"])
    links = [
        readings[task, None]["link"].sel(link_name=LINKS[0], layer=1, head=2) for task in ("mrpc", "qqp")
    ]
    values = np.concatenate([link.sel(link_mode="aligned").values[2::10] for link in links])
    assert table.loc[(LINKS[0], 2, 1, 2), "mean"] == pytest.approx(np.nanmean(values))
