import itertools

import numpy as np
import pytest
import xarray as xr

from analysis.papers.kovaleva2019 import tables
from analysis.papers.kovaleva2019.measures import FEATURES, PATTERNS
from analysis.papers.kovaleva2019.reading import LINK_MODES, LINKS

N, LAYERS, HEADS = 12, 2, 3


def reading(seed: int) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    heads = ("layer", "head")
    labels = rng.integers(len(PATTERNS), size=(N, LAYERS, HEADS)).astype(np.int8)
    received = rng.random((N, len(FEATURES), LAYERS, HEADS))
    received[:5, 0] = np.nan
    link = rng.random((N, len(LINKS), len(LINK_MODES), LAYERS, HEADS))
    link[:2] = np.nan
    variables = {
        "received": (("sequence", "feature", *heads), received),
        "cls_row": (("sequence", "feature", "head"), rng.random((N, len(FEATURES), HEADS))),
        "link": (("sequence", "link_name", "link_mode", *heads), link),
        "pattern": (("sequence", *heads), labels),
        "cosine": (("sequence", *heads), rng.random((N, LAYERS, HEADS))),
    }
    names = {"feature": [*FEATURES], "link_name": [*LINKS], "link_mode": [*LINK_MODES]}
    axes = {"sequence": range(N), "layer": range(LAYERS), "head": range(HEADS)}
    return xr.Dataset(variables, names | axes | {"cluster": ("sequence", np.arange(N))})


@pytest.fixture(scope="module")
def readings() -> dict:
    runs = itertools.product(("mrpc", "qqp"), (None, 0, 1))
    return {run: reading(seed) for seed, run in enumerate(runs)}


def test_pattern_shares(readings):
    table = tables.pattern_table(readings)
    assert (table["n"] == N).all()
    assert table["share"].between(table["low"], table["high"]).all()
    rows = table.set_index(["task", "state", "pattern"])["share"]
    labels = [readings["mrpc", run]["pattern"].values for run in (0, 1)]
    expected = np.mean([(run == 3).mean() for run in labels])
    assert rows["mrpc", "finetuned", PATTERNS[3]] == pytest.approx(expected)
    shares = tables.pattern_heads(readings).set_index(["task", "state", "layer", "head", "pattern"])["share"]
    expected = (readings["qqp", None]["pattern"].values[:, 1, 2] == 0).mean()
    assert shares["qqp", "pretrained", 1, 2, PATTERNS[0]] == pytest.approx(expected)


def test_sequences_without_a_feature_are_left_out(readings):
    table = tables.feature_table(readings).set_index(["task", "state", "feature", "mode", "layer", "head"])
    row = table.loc[("mrpc", "pretrained", FEATURES[0], "aligned", 1, 2)]
    assert row["n"] == N - 5
    assert row["mean"] == pytest.approx(np.nanmean(readings["mrpc", None]["received"].values[:, 0, 1, 2]))
    assert table.loc[("qqp", "finetuned", LINKS[1], "same distance", 0, 0), "n"] == N - 2
    means = tables.cls_table(readings).set_index(["task", "state", "feature", "head"])["mean"]
    expected = readings["qqp", None]["cls_row"].values[:, 1, 2].mean()
    assert means["qqp", "pretrained", FEATURES[1], 2] == pytest.approx(expected)


def test_block_means(readings):
    table = tables.block_table(readings)
    assert {*table["seed"]} == {-1, 0, 1}
    place = {"task": "mrpc", "seed": 0, "block": 3, "measure": "[CLS]", "layer": 1}
    value = table.set_index([*place]).loc[tuple(place.values()), "value"]
    received = readings["mrpc", 0]["received"].sel(feature="[CLS]", layer=1)
    assert value == pytest.approx(received[3::10].mean().item())
    shares = table[table["measure"].isin(PATTERNS)].groupby(["task", "seed", "block"])["value"].sum()
    np.testing.assert_allclose(shares.dropna(), 1)


def test_verb_blocks_pool_tasks_before_fine_tuning(readings):
    table = tables.verb_blocks(readings).set_index(["direction", "block", "layer", "head"])
    place = {"link_name": LINKS[0], "link_mode": "aligned", "layer": 1, "head": 2}
    values = [readings[task, None]["link"].sel(place).values[2::10] for task in ("mrpc", "qqp")]
    assert table.loc[(LINKS[0], 2, 1, 2), "mean"] == pytest.approx(np.nanmean(values))
