"""Clark's claims on small tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.clark2019 import findings
from analysis.papers.clark2019.claims import CLAIMS, TABLES, evidence_of
from analysis.papers.clark2019.findings import Tables
from analysis.statistics.verdicts import claim_table

BY_ID = {claim.id: claim for claim in CLAIMS}
LAYERS, HEADS = 6, 4


def surface(**columns: list[float]) -> pd.DataFrame:
    """A table of heads; a column is given by layer, and the heads of a layer differ only slightly."""
    keys = pd.MultiIndex.from_product([range(LAYERS), range(HEADS)], names=["layer", "head"])
    table = keys.to_frame(index=False)
    plain = dict.fromkeys(
        ("previous", "next", "self", "cls", "sep", "punct", "sep_sep", "entropy"), [0.1] * LAYERS
    )
    for name, values in (plain | columns).items():
        table[name] = np.repeat(values, HEADS) + 0.001 * table["head"]
    return table


def verdict(name: str, tables: Tables) -> str:
    return BY_ID[name].judge(tables)[1].verdict


def test_every_claim_is_complete():
    assert [*BY_ID] == [f"CL{number}" for number in range(1, 14)]
    assert all(" n: " in claim.definition and claim.published and claim.source for claim in CLAIMS)


def test_without_tables_every_claim_is_untestable():
    assert (claim_table(CLAIMS, evidence_of({}))["verdict"] == "untestable").all()
    assert evidence_of({TABLES["surface"]: surface().iloc[:0]}).surface is None


def test_neighbours():
    table = surface()
    table.loc[[3, 7], "previous"] = 0.6
    found = findings.neighbour_heads(Tables(surface=table))
    assert (found.value, found.n) == ("2 and 0 of 24 heads", 24)
    assert verdict("CL1", Tables(surface=table)) == "does not hold"
    table.loc[0, "next"] = 0.9
    assert verdict("CL1", Tables(surface=table)) == "undecided"  # one head of each kind may be drawn or not
    assert verdict("CL1", Tables(surface=table.assign(previous=0.6, next=0.9))) == "holds"


def test_separators_in_the_middle_layers():
    """Relative depth 5/12 to 10/12 of six layers: layers 3 and 4."""
    high = Tables(surface=surface(sep=[0, 0, 0, 0.6, 0.7, 0], sep_sep=[0, 0, 0, 0.95, 0.8, 0]))
    assert verdict("CL2", high) == "holds"
    assert verdict("CL3", high) == "does not hold"
    table = claim_table([BY_ID["CL3"]], high).iloc[0]
    assert (table["unit"], table["n"]) == ("layer 4", HEADS)
    assert table["low"] <= table["estimate"] <= table["high"]


def test_interval_draws_the_heads_of_the_layer():
    values = np.random.default_rng(1).uniform(0.3, 0.7, (1, 200))
    draws = findings.drawn_layer_means(values)
    assert draws[0] == pytest.approx(values.mean())
    assert draws[1:].std() == pytest.approx(values.std() / np.sqrt(200), rel=0.15)


def test_targets_move_with_depth():
    early = {"cls": [0.5, 0.4, 0.1, 0.1, 0.1, 0.1], "punct": [0.1, 0.1, 0.1, 0.1, 0.3, 0.5]}
    assert verdict("CL4", Tables(surface=surface(**early))) == "holds"
    late = early | {"punct": [0.9, 0.1, 0.1, 0.1, 0.3, 0.5]}
    assert verdict("CL4", Tables(surface=surface(**late))) == "does not hold"
    assert verdict("CL6", Tables(surface=surface(entropy=[4, 3, 2, 1, 1, 2]))) == "holds"
    assert verdict("CL6", Tables(surface=surface(entropy=[1, 3, 2, 2, 2, 2]))) == "does not hold"


def test_gradients_of_separators():
    def gradients(late: float) -> pd.DataFrame:
        keys = surface()[["layer", "head"]]
        groups = {"sep": np.where(keys["layer"] >= 3, late, 5.0), "other": 1.0, "cls": 9.0}
        return pd.concat([keys.assign(group=name, importance=value) for name, value in groups.items()])

    assert verdict("CL5", Tables(gradients=gradients(0.3))) == "holds"
    assert verdict("CL5", Tables(gradients=gradients(0.6))) == "does not hold"
    found = findings.separator_gradients(Tables(gradients=gradients(0.3)))
    assert found.value == "[SEP] over other words: layer 3 0.30, layer 4 0.30, layer 5 0.30"


def dependencies(**rows: tuple[float, float, float, float]) -> pd.DataFrame:
    columns = ["accuracy", "low", "high", "offset_accuracy"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("relation")
    return table.reset_index().assign(n=range(100, 100 + len(rows)))


def test_heads_against_offsets():
    good = {"obj": (0.8, 0.7, 0.9, 0.4), "det": (0.9, 0.8, 0.95, 0.5), "all": (0.4, 0.35, 0.45, 0.3)}
    assert verdict("CL7", Tables(dependencies=dependencies(**good))) == "holds"
    assert verdict("CL8", Tables(dependencies=dependencies(**good))) == "holds"
    close = Tables(dependencies=dependencies(**good, pobj=(0.42, 0.38, 0.46, 0.4)))
    table = claim_table(CLAIMS, close).assign(id=[*BY_ID]).set_index("id").loc["CL7"]
    assert (table["verdict"], table["unit"], table["n"]) == ("undecided", "pobj", 103)
    assert (table["estimate"], table["low"], table["high"]) == pytest.approx((0.02, -0.02, 0.06))
    assert table["control_value"].startswith("best offset: obj 40.0%")
    worse = dependencies(**good, pobj=(0.3, 0.25, 0.35, 0.4))
    assert verdict("CL7", Tables(dependencies=worse)) == "does not hold"
    perfect = dependencies(obj=(1.0, np.nan, np.nan, 0.4))
    assert verdict("CL7", Tables(dependencies=perfect)) == "holds"
    assert verdict("CL7", Tables(dependencies=dependencies(cop=(1, 1, 1, 0)))) == "untestable"


def test_antecedents_against_rules():
    rows = [
        (reading, system, scored_on, accuracy, accuracy - 0.05, accuracy + 0.05, 80)
        for reading, best in (("all_words", 0.6), ("mention_heads", 0.7))
        for scored_on in ("all documents", "both halves in turn")
        for system, accuracy in (
            ("head match", 0.5),
            ("rule-based", 0.68),
            ("best head, chosen on the other half", best),
        )
    ]
    columns = ["candidates", "system", "scored_on", "all", "low", "high", "n"]
    tables = Tables(coreference=pd.DataFrame(rows, columns=columns))
    found = findings.antecedents(tables, "head match")
    assert found.value == "all_words 60.0% against 50.0%, mention_heads 70.0% against 50.0%"
    assert found.n == 80
    assert verdict("CL9", tables) == "holds"
    assert verdict("CL10", tables) == "undecided"


def test_probes():
    def probes(*words: float) -> Tables:
        rows = [("attention + words", "tiny", seed, score) for seed, score in enumerate(words)]
        rows += [("attention + words", "tiny, random layers", seed, 0.2) for seed in range(len(words))]
        rows += [("distances + words", "none", seed, 0.5) for seed in range(len(words))]
        return Tables(probes=pd.DataFrame(rows, columns=["probe", "encoder", "seed", "uas_no_punct"]))

    assert verdict("CL11", probes(0.6, 0.61, 0.62)) == verdict("CL12", probes(0.6, 0.61, 0.62)) == "holds"
    assert verdict("CL11", probes(0.4, 0.41, 0.42)) == "does not hold"
    assert verdict("CL11", probes(0.45, 0.56)) == "undecided"
    assert verdict("CL11", probes(0.6)) == "undecided"  # one seed has no interval
    found = findings.probes_differ(probes(0.6, 0.61, 0.62), "attention + words", "")
    assert (found.value, found.n) == ("61.0% against 20.0% (3 seeds)", 3)


def test_layers_cluster():
    distances = pd.DataFrame(
        [
            (0, 0, 0, 1, 2.0),
            (1, 0, 1, 1, 4.0),
            (0, 0, 1, 0, 6.0),
            (0, 0, 1, 1, 6.0),
            (0, 1, 1, 0, 6.0),
            (0, 1, 1, 1, 6.0),
        ],
        columns=["layer", "head", "other_layer", "other_head", "distance"],
    )
    found = findings.layers_cluster(Tables(distances=distances))
    assert found.measures.values[0, 0] == pytest.approx(0.5)
    assert found.n == 4
    places = [(layer, head) for layer in range(3) for head in range(8)]
    pairs = [(*a, *b) for number, a in enumerate(places) for b in places[number + 1 :]]
    many = pd.DataFrame(pairs, columns=["layer", "head", "other_layer", "other_head"])
    same = many["layer"] == many["other_layer"]
    noise = np.random.default_rng(0).random(len(many))
    assert verdict("CL13", Tables(distances=many.assign(distance=6 - 4 * same + noise))) == "holds"
    assert verdict("CL13", Tables(distances=many.assign(distance=6 + 4 * same + noise))) == "does not hold"
    assert verdict("CL13", Tables(distances=many.assign(distance=1 + noise))) == "undecided"
