import numpy as np
import pandas as pd
import pytest
import xarray as xr
from headtables import score_array
from sklearn.metrics import cohen_kappa_score

from analysis.errors import InputError
from analysis.papers.pascual2021 import roles
from analysis.scores.words import Attachment
from analysis.statistics.significance import Rule, published_table
from analysis.texts.dependencies import conllu_files, read_trees

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
    replicates = roles.labels(array.values.reshape(SEQUENCES, -1), Rule(resamples=99))
    np.testing.assert_array_equal(replicates[0], expected)
    assert 0 < expected.sum() < LAYERS * HEADS
    near = replicates[1:].mean(axis=0)
    assert ((near > 0) & (near < 1)).any()


def test_kappa_against_scikit_learn():
    rng = np.random.default_rng(0)
    first, second = rng.random((6, 40)) < 0.4, rng.random((6, 40)) < 0.5
    expected = [cohen_kappa_score(a, b) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(roles.kappa(first, second), expected)
    none, all_heads = np.zeros((1, 5), bool), np.ones((1, 5), bool)
    assert np.isnan(roles.kappa(none, none)[0])
    assert roles.kappa(none, all_heads)[0] == 0


def test_survival():
    first_layer = [5, 1, 1]
    maps = {
        "attention": scores(cls=first_layer, sep=first_layer, block=1.0),
        "effective": scores(cls=first_layer, sep=1.0, block=np.nan),
        "attribution": scores(cls=first_layer, sep=[5, 5, 1], block=1.0),
    }
    table = roles.survival_table(maps, Rule(resamples=99)).set_index(["role", "map"])
    assert table.loc[("cls", "attention"), "heads"] == HEADS
    assert table.loc[("cls", "effective"), ["kappa", "low", "high"]].tolist() == [1, 1, 1]
    assert table.loc[("sep", "effective"), ["heads", "kappa"]].tolist() == pytest.approx([0, 0])
    assert table.loc[("sep", "attribution"), ["heads", "heads_low", "heads_high"]].tolist() == [8, 8, 8]
    expected = cohen_kappa_score([1, 0, 0], [1, 1, 0])
    assert table.loc[("sep", "attribution"), "kappa"] == pytest.approx(expected)
    no_sequence = {name: array.isel(sequence=slice(0)) for name, array in maps.items()}
    assert roles.survival_table(no_sequence)["n"].eq(0).all()
    undefined = table.loc[("block", "effective")]
    assert undefined["n"] == 0
    assert undefined.drop("n").isna().all()


def test_persistence():
    on = {"cls": 5.0, "sep": 5.0, "local": 5.0, "dobj": np.nan}
    still = {"cls": 5.0, "sep": [5, 1, 5], "local": 1.0, "dobj": np.nan}
    maps = {"attention": scores(**on), "attribution": scores(**still)}
    table = roles.persistence_table(maps, Rule(resamples=99))
    counts = table.pivot(index="pattern", columns="layer", values="kept").loc[[*on]].to_numpy().tolist()
    assert counts == [[HEADS] * 3, [HEADS, 0, HEADS], [0] * 3, [0] * 3]
    assert table["attribution"].equals(table["kept"])
    assert table["attention"].tolist() == [HEADS] * 9 + [0] * 3


def test_patterns_and_masses():
    array = scores(cls=[2, 4, 6], sep=1.0)
    table = roles.pattern_table({"attention": array, "attribution": array + 1})
    row = table.set_index(["pattern", "layer", "head"]).loc[("cls", 1, 2)]
    mean = array.sel(role="cls", layer=1, head=2).mean().item()
    assert row[["attention", "attribution"]].tolist() == pytest.approx([mean, mean + 1])
    masses = roles.sink_table({"attention": array}, resamples=99).set_index(["target", "layer"])
    assert masses.loc[("[CLS]", 2.0), "mass"] == pytest.approx(0.6, abs=0.02)  # a score of 6 over 10 tokens
    assert masses.loc[("[CLS]", np.nan), "mass"].item() == pytest.approx(0.4, abs=0.02)
    assert masses.loc[("[SEP]", 0.0), "mass"] == pytest.approx(0.2, abs=0.02)  # two of them
    assert (masses["low"] < masses["mass"]).all()
    assert set(masses["changed"]) == {0}
    higher = array.copy()
    higher[:6] += 1
    changed = roles.sink_table({"attention": array, "effective": higher}, resamples=99).set_index("map")
    assert set(changed.loc["effective", "changed"]) == {0.2}


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> pd.DataFrame:
    return read_trees(conllu_files([], tmp_path_factory.mktemp("trees"), 6, "dev", 0)).words


def planted(words: pd.DataFrame, right_head: int, seed: int) -> Attachment:
    """Predictions of 2 layers x 3 heads: those of head (1, right_head) are right nine times in ten, others never."""
    predicted = np.full((len(words), 2, 2, 3), -1, np.int16)
    is_right = np.random.default_rng(seed).random(len(words)) < 0.9
    predicted[is_right, 1, 0, right_head] = words["head"].to_numpy()[is_right]
    return Attachment(words, predicted, {})


def test_the_same_head_and_the_best_head(words):
    attachments = {"attention": planted(words, 1, 0), "attribution": planted(words, 2, 1)}
    table = roles.dependency_survival(attachments, minimum=10, resamples=99).set_index("relation")
    row = table.loc["all but punct"]
    assert (row["layer"], row["head"], row["direction"]) == (1, 1, "dependent to head")
    assert row["attribution_same_head"] == 0
    assert row["attention"] == pytest.approx(0.9, abs=0.07)
    assert row["attribution"] == pytest.approx(0.9, abs=0.07)
    assert row["change"] == pytest.approx(-row["attention"])
    assert row["change_high"] < 0
    with pytest.raises(InputError, match="no relation has 100000 arcs"):
        roles.dependency_survival(attachments, minimum=100000)
