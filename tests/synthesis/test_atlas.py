import numpy as np
import pandas as pd
import pytest
from headtables import HEADS, LAYERS, TASKS, heads_by, score_array

from analysis.statistics.roles import LABELS
from analysis.synthesis.agreement import SURFACE, atlas_table, role_scores, run_roles

SEEDS = (0, 1)
SIZE = len(TASKS) * len(SEEDS) * LAYERS * HEADS


@pytest.fixture
def heads() -> pd.DataFrame:
    return heads_by(task=TASKS, seed=SEEDS)


@pytest.fixture
def roles(heads: pd.DataFrame) -> pd.DataFrame:
    parts = [heads.assign(role=role, mean=heads["head"] + shift) for role, shift in (("dobj", 0), ("sep", 1))]
    table = pd.concat(parts, ignore_index=True)
    return table.assign(**dict.fromkeys(LABELS, table["mean"] > 2))


def test_values_stand_in_the_rows_of_their_heads(heads: pd.DataFrame, roles: pd.DataFrame):
    ablation = pd.concat([heads.assign(metric=metric, change=sign * np.arange(SIZE))
                          for metric, sign in (("loss", 1.0), ("accuracy", -1.0))])  # fmt: skip
    ablation = ablation[ablation["task"] == "mrpc"].sample(frac=1, random_state=0)
    surface = heads[["layer", "head"]].drop_duplicates().reset_index(drop=True)
    surface[[*SURFACE]] = 0.0
    cosine = heads[["task", "layer", "head"]].drop_duplicates().assign(mean=0.5)
    layer = heads.assign(unit="layer", metric="accuracy", head=np.nan, change=9.0)
    disable = pd.concat([layer, heads.assign(unit="head", metric="accuracy", change=1.0)])
    tables = {
        "michel_ablation": ablation,
        "clark_surface": surface.assign(next=np.arange(LAYERS * HEADS) / 10),
        "kovaleva_cosine": cosine,
        "kovaleva_disable": disable,
    }
    table = atlas_table(roles, tables)
    np.testing.assert_allclose(table["sep_mean"].astype(float), 1 + heads["head"])
    assert (table["dobj_assigned_corrected"] == (heads["head"] > 2)).all()
    assert table["importance"].isna().all()  # without a table
    own_rows = table["task"] == "mrpc"
    np.testing.assert_allclose(table.loc[own_rows, "ablation_loss"], np.arange(SIZE)[own_rows])
    np.testing.assert_allclose(table.loc[own_rows, "ablation_accuracy"], -np.arange(SIZE)[own_rows])
    assert table.loc[~own_rows, "ablation_loss"].isna().all()
    np.testing.assert_allclose(table["surface_next"], (heads["layer"] * HEADS + heads["head"]) / 10)
    assert table["disable"].eq(1.0).all()
    assert table["cosine"].notna().equals(table["seed"] == 0)  # of one run per task, the first
    scores = role_scores(table, ["dobj"], "disable")
    np.testing.assert_allclose(scores["dobj"], heads["head"])
    assert scores["response"].eq(1.0).all()


def test_roles_of_runs_are_means_of_scores(heads: pd.DataFrame, roles: pd.DataFrame):
    scores = score_array(np.random.default_rng(0).random((4, 2, LAYERS, HEADS)), ["dobj", "sep"])
    labels = roles.query("task == 'mrpc' and seed == 0").drop(columns="mean")
    table = run_roles({("mrpc", 0): scores}, pd.concat([labels, labels.assign(seed=np.nan)]))
    assert len(table) == 2 * LAYERS * HEADS
    means = scores.mean("sequence").sel(role="sep").values.ravel()
    np.testing.assert_allclose(table.query("role == 'sep'").sort_values(["layer", "head"])["mean"], means)
