"""Our quantities next to the published ones: small tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.clark2019 import published
from analysis.papers.clark2019 import quantities as clark_summary
from analysis.papers.clark2019.antecedents import AMONG, HALVES
from analysis.papers.clark2019.coreference import SYSTEMS
from analysis.papers.clark2019.probing import NO_ENCODER, ORIGINAL
from analysis.papers.clark2019.quantities import COLUMNS, summary_table
from analysis.papers.clark2019.surface import SHARES


def surface(layers: int = 3) -> pd.DataFrame:
    """Two heads a layer; the first one of layer 0 has 0.6 on the previous token, all have exactly 0.5 on the next."""
    heads = pd.MultiIndex.from_product([range(layers), range(2)], names=["layer", "head"]).to_frame(
        index=False
    )
    table = heads.reindex(columns=["layer", "head", *SHARES], fill_value=0.1)
    table = table.assign(entropy=3.0 - heads["layer"], entropy_cls=1.0)
    table["previous"], table["next"] = [0.6] + [0.1] * (2 * layers - 1), 0.5
    table["sep"] = np.where(heads["layer"] == 1, 0.2 + 0.2 * heads["head"], 0)
    return table


@pytest.fixture
def dependencies() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "relation": ["all", "obj", "case"],
            "accuracy": [0.4, 0.75, 0.9],
            "offset_accuracy": [0.3, 0.36, 0.1],
        }
    )


@pytest.fixture
def coreference() -> pd.DataFrame:
    best = [f"best head among {words}" for words in ("all words", "heads of preceding mentions")]
    kinds = {"all": 0.5, "pronoun": 0.6, "proper": 0.7, "nominal": 0.8}
    return pd.DataFrame({"system": [*SYSTEMS, *best]}).assign(**kinds, n=80)


@pytest.fixture
def probes() -> pd.DataFrame:
    rows = [
        ("right-branching", NO_ENCODER, None, 0.3),
        ("attention", "tiny", 0, 0.4),
        ("attention", "tiny", 1, 0.6),
        ("attention + words" + ORIGINAL, "tiny", 0, 0.7),
        ("attention", "tiny, random layers", 0, 0.2),
        ("attention + words", "tiny, random layers", 0, 0.25),
        ("distances + words", NO_ENCODER, 0, 0.55),
    ]
    return pd.DataFrame(rows, columns=["probe", "encoder", "seed", "uas_no_punct"]).assign(uas=0.0)


@pytest.fixture
def table(dependencies, coreference, probes) -> pd.DataFrame:
    return summary_table(surface(), dependencies, coreference, probes)


def values(table: pd.DataFrame, part: str) -> dict[str, tuple[float, float]]:
    """Published value and ours of each quantity of a part."""
    found = table[table["part"] == part]
    assert found["quantity"].is_unique
    return {
        row.quantity: (row.bert_base_published, pytest.approx(row.this_encoder, nan_ok=True))
        for row in found.itertuples()
    }


def test_columns(table):
    assert table.columns.tolist() == COLUMNS
    assert table[["part", "quantity", "unit"]].notna().all(axis=None)
    assert not table.duplicated(["part", "quantity"]).any()


def test_more_than_half(table):
    found = values(table, "heads on neighbours")
    assert found["heads with more than half of their attention on the previous token"] == (4, 1)
    assert found["heads with more than half of their attention on the next token"] == (5, 0)
    assert found["the same, of all heads (previous token)"][1] == 100 / 6


def test_extremes_of_layer_means_and_their_depth(table):
    found = values(table, "layers")
    means = published.surface_layers().set_index("layer")
    assert found["largest layer mean of attention to [SEP]"] == (100 * means["sep"].max(), 30)
    assert found["depth of that layer ([SEP])"] == (100 * means["sep"].idxmax() / 11, 50)
    assert found["smallest layer mean of entropy"] == (means["entropy"].min(), 1)
    assert found["depth of that layer (entropy)"] == (100 * means["entropy"].idxmin() / 11, 100)


def test_an_encoder_of_one_layer_has_no_depth(dependencies, coreference, probes):
    found = values(summary_table(surface(1), dependencies, coreference, probes), "layers")
    assert found["depth of that layer ([SEP])"][1] == np.nan


def test_relations_of_table_1_and_where_its_sources_disagree(table):
    found = values(table, "dependencies")
    assert found["obj (Stanford: dobj), best head"] == (86.8, 75)
    assert found["obj (Stanford: dobj), best offset"] == (40, 36)
    assert found["all, best head"] == (34.5, 40)
    assert found["all, best head, by the authors' notebook"] == (34.7, 40)
    assert found["aux:pass (Stanford: auxpass), best head"] == (82.5, np.nan)
    assert {name.split(" (")[0].split(",")[0] for name in found if "notebook" in name} == {"all", "aux:pass"}
    assert not any(name.startswith("case") for name in found)


def test_systems_with_a_counterpart(table):
    found = values(table, "coreference")
    assert found["nearest, either side: all"] == (27, 50)
    assert found["rule-based: proper"] == (77, 70)
    for words in ("all words", "heads of preceding mentions"):
        assert found[f"best head among {words}: nominal"] == (58, 80)
    assert not any(name.startswith(("nearest:", "head match, else")) for name in found)


def test_probes_are_means_over_seeds(table):
    assert values(table, "probes") == {
        "right-branching": (26, 30),
        "attention": (61, 50),
        "attention + words" + ORIGINAL: (77, 70),
        "attention, random layers": (pytest.approx(np.nan, nan_ok=True), 20),
        "attention + words, random layers": (30, 25),
        "distances + words": (58, 55),
    }


def test_names_are_those_of_the_modules_that_make_the_tables():
    """They are not imported, since they need torch."""
    assert (clark_summary.ORIGINAL, clark_summary.NO_ENCODER) == (ORIGINAL, NO_ENCODER)
    assert clark_summary.BOTH_HALVES == HALVES
    assert set(clark_summary.SYSTEMS) <= set(SYSTEMS)
    assert clark_summary.TARGETS.keys() <= SHARES.keys()
    assert all(f"best head among {words}".startswith(clark_summary.BEST_HEAD) for words in AMONG.values())
    assert clark_summary.THEIR_HEAD in published.clark("coreference")["system"].tolist()


def test_systems_stand_beside_their_counterparts(coreference):
    found = clark_summary.systems_beside_published(coreference).set_index("system")
    assert (found["all"] == 50).all()
    assert found.loc["rule-based", ["BERT-base all", "BERT-base nominal"]].tolist() == [69, 60]
    assert found.loc["nearest, either side", "BERT-base all"] == 27
    assert np.isnan(found.loc["nearest", "BERT-base all"])
    assert (found.filter(like="best head", axis=0)["BERT-base all"] == 65).all()


def test_probes_stand_beside_their_counterparts(probes):
    found = clark_summary.probes_beside_published(probes).set_index(["probe", "encoder"])
    assert found.loc[("attention", "tiny"), ["seeds", "this_encoder", "bert_base_published"]].tolist() == [
        2,
        50,
        61,
    ]
    assert found.loc[("attention + words", "tiny, random layers"), "bert_base_published"] == 30
    assert found.loc[("attention + words" + ORIGINAL, "tiny"), "bert_base_published"] == 77
    assert np.isnan(found.loc[("attention", "tiny, random layers"), "bert_base_published"])


def test_linguistic_heads_are_ahead_of_position_or_find_antecedents():
    dependencies = pd.DataFrame(
        {"relation": ["obj", "det", "case", "mark"], "layer": [1, 1, 0, 2], "head": [2, 2, 0, 1],
         "accuracy": [0.8, 0.9, 0.3, 0.9],
         "offset_accuracy": [0.4, 0.5, 0.6, 0.4], "p_adjusted": [0.01, 0.02, 0.01, 0.3]}
    )  # fmt: skip
    coreference = pd.DataFrame(
        {
            "scored_on": ["both halves in turn", "both halves in turn", "all documents"],
            "layer": [None, 1.0, 2.0],
            "head": [None, 2.0, 2.0],
        }
    )
    found = clark_summary.linguistic_heads(dependencies, coreference)
    assert found.to_dict("records") == [{"layer": 1, "head": 2, "finds": "obj, det, coreference"}]
    wider = clark_summary.linguistic_heads(dependencies, coreference, alpha=0.5)
    assert wider["finds"].tolist() == ["obj, det, coreference", "mark"]
