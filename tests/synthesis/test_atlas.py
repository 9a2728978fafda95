"""The atlas joins the tables that exist, and gives a reason for every missing value."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.statistics.roles import ROLES
from analysis.synthesis.atlas import (
    KEYS,
    MEASURES,
    OF_ROLE,
    SURFACE,
    atlas_table,
    map_roles,
    role_scores,
    run_roles,
)

TASKS, SEEDS, LAYERS, HEADS = ("mrpc", "sst-2"), (0, 1), 2, 3
SIZE = len(TASKS) * len(SEEDS) * LAYERS * HEADS


@pytest.fixture
def heads() -> pd.DataFrame:
    index = pd.MultiIndex.from_product([TASKS, SEEDS, range(LAYERS), range(HEADS)], names=KEYS)
    return index.to_frame(index=False)


def of_heads(heads: pd.DataFrame, *keys: str) -> pd.DataFrame:
    return heads[[*keys, "layer", "head"]].drop_duplicates().reset_index(drop=True)


def test_without_any_table_every_column_says_why(heads: pd.DataFrame):
    table = atlas_table(heads, {}, {})
    measures = [name for name in table if name not in KEYS and not name.endswith("_status")]
    assert len(measures) == 3 * len(ROLES) * len(OF_ROLE) + len(MEASURES)
    assert table[measures].isna().all().all()
    assert table.filter(like="_status").agg(lambda column: column.str.startswith("no table ").all()).all()


def test_values_stand_in_the_rows_of_their_heads(heads: pd.DataFrame):
    ablation = pd.concat([heads.assign(metric=metric, change=sign * np.arange(SIZE))
                          for metric, sign in (("loss", 1.0), ("accuracy", -1.0))])  # fmt: skip
    ablation = ablation[ablation["task"] == "mrpc"].sample(frac=1, random_state=0)
    surface = of_heads(heads).assign(next=np.arange(LAYERS * HEADS) / 10)
    surface[[*SURFACE[1:]]] = 0
    effects = ablation.assign(effect=ablation["change"] / 2, metric=ablation["metric"].replace("loss", "auc"))
    tables = {"michel_ablation": ablation, "michel_effects": effects, "clark_surface": surface}
    table = atlas_table(heads, {}, tables)
    own = table["task"] == "mrpc"
    np.testing.assert_allclose(table.loc[own, "ablation_loss"].astype(float), np.arange(SIZE)[own])
    np.testing.assert_allclose(table.loc[own, "ablation_accuracy"].astype(float), -np.arange(SIZE)[own])
    np.testing.assert_allclose(table.loc[own, "ablation_auc"].astype(float), np.arange(SIZE)[own] / 2)
    assert table.loc[own, "ablation_loss_status"].eq("measured").all()
    assert table.loc[~own, "ablation_loss_status"].eq("not in this run").all()
    np.testing.assert_allclose(table["surface_next"], (heads["layer"] * HEADS + heads["head"]) / 10)


def test_special_readers(heads: pd.DataFrame):
    best = pd.DataFrame({"relation": ["all", "det", "obj"], "layer": [0, 0, 0], "head": [1, 1, 1],
                         "accuracy": [0.99, 0.5, 0.7]})  # fmt: skip
    disable = pd.concat([heads.assign(unit="head", metric=metric, change=change)
                         for metric, change in (("f1", 2.0), ("accuracy", 1.0))])  # fmt: skip
    layer = disable.assign(unit="layer", head=np.nan, change=9.0)
    rows = heads.assign(granularity="example", importance=np.tile(np.arange(6.0)[::-1], 4))
    importance = pd.concat([rows.assign(normalised=True), rows.assign(normalised=False, importance=7.0)])
    tables = {"clark_best_heads": best, "kovaleva_disable": pd.concat([disable, layer]),
              "michel_importance": importance}  # fmt: skip
    table = atlas_table(heads, {}, tables)
    one = (heads["layer"] == 0) & (heads["head"] == 1)
    assert table.loc[one, "best_relation"].eq("obj").all()
    assert table.loc[one, "best_relation_accuracy"].eq(0.7).all()
    assert table.loc[~one, "best_relation_status"].eq("not of this head").all()
    assert table["disable"].eq(1.0).all()
    assert table["importance"].eq(7.0).all()
    assert table.loc[:5, "pruning_rank"].tolist() == [6, 5, 4, 3, 2, 1]


def roles(heads: pd.DataFrame, *keys: str) -> pd.DataFrame:
    table = of_heads(heads, *keys)
    parts = [table.assign(role=role, mean=number + table["head"], control_share=0.5, status="tested")
             for number, role in enumerate(ROLES)]  # fmt: skip
    found = pd.concat(parts, ignore_index=True)
    return found.assign(
        assigned=found["mean"] > 3, assigned_corrected=found["mean"] > 4, assigned_controlled=False
    ).astype({"assigned": "boolean"})


def test_roles_on_maps(heads: pd.DataFrame):
    attribution = roles(heads, "task").query("task == 'sst-2'")
    lost = attribution["role"] == "sep"
    attribution.loc[lost, ["mean", "assigned"]] = pd.NA
    attribution.loc[lost, "status"] = "untestable: no sequence has the role"
    every = {
        "attention": roles(heads, "task", "seed"),
        "attribution": map_roles({"sst-2": attribution, "mrpc": None}),
    }
    table = atlas_table(heads, every, {})
    place = [*ROLES].index("dobj")
    np.testing.assert_allclose(table["attention_dobj_mean"].astype(float), place + heads["head"])
    assert (table["attention_dobj_corrected"] == (place + heads["head"] > 4)).all()
    there = (heads["task"] == "sst-2") & (heads["seed"] == 0)
    assert table.loc[there, "attribution_local_status"].eq("measured").all()
    assert table.loc[there, "attribution_sep_status"].eq("untestable: no sequence has the role").all()
    assert table.loc[~there, "attribution_local_mean"].isna().all()
    assert table.loc[~there, "attribution_local_status"].eq("not in this run").all()
    scores = role_scores(table, ["dobj"], "importance")
    np.testing.assert_allclose(scores["dobj"], place + heads["head"])
    assert scores["response"].isna().all()


def test_roles_of_runs_from_scores(heads: pd.DataFrame):
    rng, shape = np.random.default_rng(0), (4, 2, LAYERS, HEADS)
    places = {"role": ["local", "sep"], "layer": range(LAYERS), "head": range(HEADS)}
    scores = xr.DataArray(rng.random(shape), {"sequence": [*"abcd"]} | places)
    scores.loc[{"role": "local", "layer": 0, "head": 0}] = 1e-5  # no denominator
    labels = roles(heads.query("task == 'mrpc' and seed == 0"), "task", "seed")
    labels = labels.drop(columns=["mean", "control_share", "status"])
    pretrained = labels.assign(seed=np.nan)
    labels["assigned_corrected"] = (
        labels["assigned_corrected"].astype("boolean").mask(labels["role"] == "sep")
    )
    run = ("mrpc", 0)
    found = run_roles({run: scores}, {run: scores / 2}, pd.concat([labels, pretrained]))
    assert len(found) == 2 * LAYERS * HEADS
    missing = found.query("role == 'local' and layer == 0 and head == 0").index
    assert found.loc[missing, "control_share"].isna().all()
    np.testing.assert_allclose(found["control_share"].drop(missing), 0.5)
    means = scores.mean("sequence").sel(role="sep").values.ravel()
    np.testing.assert_allclose(found.query("role == 'sep'").sort_values(["layer", "head"])["mean"], means)
    assert found.query("role == 'sep'")["status"].str.startswith("untestable").all()
    assert found.query("role == 'local'")["status"].eq("measured").all()
