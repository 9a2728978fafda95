import numpy as np
import pytest
import xarray as xr
from headtables import score_array
from sklearn.metrics import cohen_kappa_score

from analysis.papers.pascual2021.roles import (
    kappa,
    labels,
    pattern_table,
    persistence_table,
    sink_table,
    survival_table,
)
from analysis.statistics.significance import Rule, published_table

LAYERS, HEADS, SEQUENCES = 3, 4, 30


def scores(**means: float | list) -> xr.DataArray:
    """Scores with these means by role: of all heads, of each layer, or of each layer and head; NaN is absent."""
    rng, parts = np.random.default_rng(0), []
    for mean in means.values():
        values = np.array(mean, float)
        values = values[:, None] if values.ndim == 1 else values
        parts.append(values + 0.2 * rng.standard_normal((SEQUENCES, LAYERS, HEADS)))
    counts = {"tokens": np.full(SEQUENCES, 10), "separators": np.full(SEQUENCES, 2)}
    return score_array(np.stack(parts, axis=1), [*means], **counts)


def test_labels_are_those_of_the_published_rule():
    array = scores(cls=np.linspace(2.8, 3.2, LAYERS * HEADS).reshape(LAYERS, HEADS).tolist())
    expected = published_table(array)["assigned"].to_numpy(bool)
    replicates = labels(array.values.reshape(SEQUENCES, -1), Rule(resamples=99))
    np.testing.assert_array_equal(replicates[0], expected)
    assert 0 < expected.sum() < LAYERS * HEADS
    near = replicates[1:].mean(axis=0)
    assert ((near > 0) & (near < 1)).any()


def test_kappa_against_scikit_learn():
    rng = np.random.default_rng(0)
    first, second = rng.random((6, 40)) < 0.4, rng.random((6, 40)) < 0.5
    expected = [cohen_kappa_score(a, b) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(kappa(first, second), expected)
    none, all_heads = np.zeros((1, 5), bool), np.ones((1, 5), bool)
    assert np.isnan(kappa(none, none)[0])
    assert kappa(none, all_heads)[0] == 0


def test_survival():
    first_layer = [5, 1, 1]
    maps = {
        "attention": scores(cls=first_layer, sep=first_layer, block=1.0),
        "effective": scores(cls=first_layer, sep=1.0, block=np.nan),
        "attribution": scores(cls=first_layer, sep=[5, 5, 1], block=1.0),
    }
    table = survival_table(maps, Rule(resamples=99)).set_index(["role", "map"])
    assert table.loc[("cls", "attention"), "heads"] == HEADS
    assert table.loc[("cls", "effective"), ["kappa", "low", "high"]].tolist() == [1, 1, 1]
    assert table.loc[("sep", "effective"), ["heads", "kappa"]].tolist() == pytest.approx([0, 0])
    assert table.loc[("sep", "attribution"), ["heads", "heads_low", "heads_high"]].tolist() == [8, 8, 8]
    expected = cohen_kappa_score([1, 0, 0], [1, 1, 0])
    assert table.loc[("sep", "attribution"), "kappa"] == pytest.approx(expected)
    undefined = table.loc[("block", "effective")]
    assert undefined["n"] == 0
    assert undefined.drop("n").isna().all()


def test_persistence():
    on = {"cls": 5.0, "sep": 5.0, "local": 5.0, "dobj": np.nan}
    still = {"cls": 5.0, "sep": [5, 1, 5], "local": 1.0, "dobj": np.nan}
    table = persistence_table({"attention": scores(**on), "attribution": scores(**still)}, Rule(resamples=99))
    counts = table.pivot(index="pattern", columns="layer", values="kept").loc[[*on]].to_numpy().tolist()
    assert counts == [[HEADS] * 3, [HEADS, 0, HEADS], [0] * 3, [0] * 3]
    assert table["attribution"].equals(table["kept"])
    assert table["attention"].tolist() == [HEADS] * 9 + [0] * 3


def test_patterns_and_masses():
    array = scores(cls=[2, 4, 6], sep=1.0)
    table = pattern_table({"attention": array, "attribution": array + 1})
    row = table.set_index(["pattern", "layer", "head"]).loc[("cls", 1, 2)]
    mean = array.sel(role="cls", layer=1, head=2).mean().item()
    assert row[["attention", "attribution"]].tolist() == pytest.approx([mean, mean + 1])
    masses = sink_table({"attention": array}, resamples=99).set_index(["target", "layer"])
    assert masses.loc[("[CLS]", 2.0), "mass"] == pytest.approx(0.6, abs=0.02)  # a score of 6 over 10 tokens
    assert masses.loc[("[CLS]", np.nan), "mass"].item() == pytest.approx(0.4, abs=0.02)
    assert masses.loc[("[SEP]", 0.0), "mass"] == pytest.approx(0.2, abs=0.02)  # two of them
    assert (masses["low"] < masses["mass"]).all()
    assert set(masses["changed"]) == {0}
    higher = array.copy()
    higher[:6] += 1
    changed = sink_table({"attention": array, "effective": higher}, resamples=99).set_index("map")["changed"]
    assert set(changed["effective"]) == {0.2}
