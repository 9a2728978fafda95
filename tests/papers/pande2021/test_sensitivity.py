"""Planted heads whose labels change, or do not, with each choice; fixed seeds."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.papers.pande2021.sensitivity import (
    TAUS,
    agreement,
    dependence,
    label_stability,
    parser_accuracy,
    parser_noise,
    tau_layers,
    tau_sweep,
    variants,
)
from analysis.statistics.roles import DIRECTIONS, RELATIONS, ROLES
from analysis.statistics.significance import adjust, published_table
from analysis.texts.examples import Relation

MEANS = np.array([[2.0, 6.0, 0.5], [3.5, 1.0, 3.1]])  # layers x heads
DEFAULTS = {"window": 2, "direction": "dependent_to_head", "arithmetic": "corrected", "weighted_block": True}


@pytest.fixture
def scores() -> xr.DataArray:
    """120 sequences of two roles; half lack the second, whose scores scatter more; clusters of three."""
    noise = np.random.default_rng(3).normal(size=(120, 2, 2, 3))
    noise -= noise.mean(axis=0)
    values = MEANS + noise * np.array([0.4, 2.0])[:, None, None]
    values[::2, 1] = np.nan
    return labelled(values, ["local", "nsubj"])


def labelled(values: np.ndarray, roles: list[str], arithmetic: str = "corrected") -> xr.DataArray:
    n = len(values)
    coordinates = {
        "sequence": [f"s{row}" for row in range(n)],
        "role": roles,
        "layer": range(values.shape[2]),
        "head": range(values.shape[3]),
        "cluster": ("sequence", np.arange(n) // 3),
        "units": (("sequence", "role"), np.isfinite(values[:, :, 0, 0]).astype(int)),
    }
    dimensions = ("sequence", "role", "layer", "head")
    return xr.DataArray(values.astype(np.float32), coordinates, dimensions, attrs={"arithmetic": arithmetic})


def test_a_head_with_mean_two_loses_its_label_between_one_and_three_quarters_and_two_and_a_quarter(scores):
    layers = tau_layers(scores).set_index(["role", "layer", "tau"])["heads"]
    local = layers["local", 0]
    assert (local[1.75], local[2.25]) == (2, 1)  # means 2, 6, 0.5
    assert (layers["local", 1][3.0], layers["local", 1][3.25]) == (2, 1)  # means 3.5, 1, 3.1


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_sweep_counts_the_labels_of_the_published_rule_at_each_threshold(scores, arithmetic):
    scores = scores.assign_attrs(arithmetic=arithmetic).isel(sequence=slice(8))
    found = tau_sweep(scores, tau=2.5).set_index(["role", "tau"])
    layers = tau_layers(scores).groupby(["role", "tau"])["heads"].sum()
    for tau in TAUS:
        table = published_table(scores, tau).set_index("role")
        for role in ("local", "nsubj"):
            rows = table.loc[role]
            heads = rows["assigned"].sum()
            assert found.loc[(role, tau), "heads"] == layers[role, tau] == heads
            layer = rows.loc[rows["assigned"], "layer"].mean()
            assert found.loc[(role, tau), "mean_layer"] == pytest.approx(layer, nan_ok=True)


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_sweep_corrects_the_p_of_the_sample_standard_deviation(scores, arithmetic):
    few = scores.assign_attrs(arithmetic=arithmetic).isel(sequence=slice(8))
    found = tau_sweep(few).set_index(["role", "tau"])["heads_by"]
    table = published_table(few.assign_attrs(arithmetic="corrected"), 1.5)
    labels = table.groupby("role")["p"].transform(adjust, "fdr_by") < 0.05
    assert found.xs(1.5, level="tau").to_dict() == labels.groupby(table["role"]).sum().to_dict()


def test_the_full_sample_is_stable_and_sizes_beyond_it_are_left_out(scores):
    found = label_stability(scores, [20, 120, 500], draws=5)
    assert found[["role", "size", "sequences"]].to_numpy().tolist() == [
        ["local", 20, 120], ["local", 120, 120], ["nsubj", 20, 60]
    ]  # fmt: skip
    assert found["agreement"][0] < found["agreement"][1] == 1  # the head of mean 3.1
    assert found["heads"][1] == found["heads_full"][1]


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_stability_equals_the_published_rule_on_each_sample(scores, arithmetic):
    scores = scores.assign_attrs(arithmetic=arithmetic)[:, [1]].dropna("sequence")
    draws, size = 4, 7
    rank = np.random.default_rng(5).random((draws, 60)).argsort(axis=1).argsort(axis=1)
    full = published_table(scores)["assigned"]
    samples = [published_table(scores[chosen < size])["assigned"] for chosen in rank]
    [found] = label_stability(scores, [size], draws, seed=5).to_dict("records")
    assert found["agreement"] == pytest.approx(np.mean([(each == full).mean() for each in samples]))
    assert found["heads"] == pytest.approx(np.mean([each.sum() for each in samples]))
    assert found["heads_sd"] == pytest.approx(np.std([each.sum() for each in samples], ddof=1))
    jaccard = [(each & full).sum() / (each | full).sum() for each in samples]
    assert found["jaccard"] == pytest.approx(np.mean(jaccard))


def test_variants_change_what_they_name():
    """Elementary sieves of 30 sequences; single texts, hence no block."""
    windows = [f"window_{width}{kind}" for width in range(6) for kind in ("", "_published")]
    directions = [pattern.format(label) for label in RELATIONS for pattern in DIRECTIONS["both"]]
    names = [*windows, *directions, "delimiter", "cls", "sep", "match", "block", "own_sentence"]
    values = np.random.default_rng(0).gamma(3, 1, (30, len(names), 2, 3))
    values[:, names.index("window_1")] += 10
    values[:, -2:] = np.nan
    found = variants(labelled(values, names), **DEFAULTS)
    assert found["role"].groupby(found["variant"]).agg(set).to_dict() == {
        "window": {"local"},
        "direction": {"syntactic", *RELATIONS},
        "arithmetic": {*ROLES} - {"block"},
    }
    windows = found[found["variant"] == "window"].set_index("value")
    assert windows.index.to_list() == ["1", "2", "3", "4", "5"]
    assert windows.loc["1", "heads"] == 6
    assert windows.loc["1", "gained"] == 6 - windows.loc["2", "heads"]


def test_agreement_by_hand():
    first = pd.DataFrame(
        {"layer": 0, "head": range(4), "role": "local", "assigned": [True, True, False, None]}
    )
    second = first.assign(assigned=[True, False, True, False])
    found = agreement(*(table.astype({"assigned": "boolean"}) for table in (first, second))).squeeze()
    columns = ["heads_first", "heads_second", "gained", "lost", "agreement", "jaccard"]
    assert found[columns].tolist() == pytest.approx([2, 2, 1, 1, 0.5, 1 / 3])


def test_copies_of_a_sequence_widen_the_interval_of_clusters(scores):
    thrice = scores.isel(sequence=np.repeat(np.arange(40) * 3 + 1, 3))
    thrice = thrice.assign_coords(cluster=("sequence", np.repeat(np.arange(40), 3)))
    found = dependence(thrice, minimum=20, resamples=199).set_index("role")
    assert found.loc["local", ["sequences", "clusters", "cluster_size"]].to_list() == [120, 40, 3]
    assert found.loc["local", "width_ratio"] == pytest.approx(np.sqrt(3), rel=0.15)
    assert (found["audited_cluster"] <= found["audited_sequence"]).all()


def test_predicted_parses_that_are_gold_change_nothing():
    roles = ["syntactic", *RELATIONS]
    gold = labelled(np.random.default_rng(1).gamma(3, 1, (30, len(roles), 2, 3)), roles)
    found = parser_noise(gold, gold.copy(), tau=2.5)
    assert found["role"].tolist() == roles
    assert (found[["n_gold", "n_predicted"]] == 30).all(axis=None)
    assert (found["agreement"] == 1).all()
    np.testing.assert_allclose(found["correlation"], 1)


def test_precision_and_recall_count_labels_and_spans():
    def relation(label, dependent, head):
        return Relation(label, 0, (dependent, dependent + 1), (head, head + 1))

    gold = {"a": [relation("nsubj", 0, 2), relation("amod", 4, 6)], "b": [relation("nsubj", 0, 2)]}
    predicted = {
        "a": [relation("nsubj", 0, 2), relation("nsubj", 4, 6), relation("amod", 4, 8)],
        "b": [relation("dobj", 0, 2)],
    }
    found = parser_accuracy(gold, predicted).set_index("role")
    assert found.loc["nsubj"].to_list() == [2, 2, 1, 0.5, 0.5]
    assert found.loc["amod"].to_list() == [1, 1, 0, 0, 0]
    assert np.isnan(found.loc["dobj", "recall"])
    assert np.isnan(found.loc["advmod", ["precision", "recall"]].astype(float)).all()
