"""Clark's claims on small tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.clark2019.measures import CLAIMS, MEASURES
from analysis.statistics.claims import UNTESTABLE, Verdict, judge

BY_ID = {claim.id: claim for claim in CLAIMS}
LAYERS, HEADS = 6, 4
COLUMNS = ("previous", "next", "self", "cls", "sep", "punct", "cls_cls", "sep_sep", "entropy")
UNIFORM = pd.DataFrame({"statistic": ["cls"], "uniform": [0.02]})


def surface(**columns: list[float]) -> pd.DataFrame:
    """A table of heads; a column is given by layer, and the heads of a layer differ only slightly."""
    table = pd.DataFrame(list(np.ndindex(LAYERS, HEADS)), columns=["layer", "head"])
    for name, values in (dict.fromkeys(COLUMNS, [0.1] * LAYERS) | columns).items():
        table[name] = np.repeat(values, HEADS) + 0.001 * table["head"]
    return table


def judged(name: str, **tables: pd.DataFrame) -> Verdict:
    frame = MEASURES[name]({"uniform": UNIFORM} | tables)
    return judge(frame, BY_ID[name].relation, BY_ID[name].bound, BY_ID[name].units)


def verdict(name: str, **tables: pd.DataFrame) -> str:
    return judged(name, **tables).verdict


def test_every_claim_has_a_measure():
    assert [*MEASURES] == [*BY_ID]


def extremes(**means: list[tuple[float, float]]) -> pd.DataFrame:
    """Mean and half an interval of each head, by statistic."""
    rows = [
        (statistic, 0, head, mean, mean - half, mean + half, 50)
        for statistic, heads in means.items()
        for head, (mean, half) in enumerate(heads)
    ]
    return pd.DataFrame(rows, columns=["statistic", "layer", "head", "mean", "low", "high", "n"])


def test_some_head_for_each_neighbour():
    sure, unsure, low = (0.9, 0.1), (0.52, 0.1), (0.1, 0.05)
    assert verdict("CL1", extremes=extremes(previous=[low, sure], next=[sure, low])) == "holds"
    assert verdict("CL1", extremes=extremes(previous=[low, sure], next=[low, low])) == "does not hold"
    assert verdict("CL1", extremes=extremes(previous=[sure], next=[unsure, low])) == "undecided"
    wide = extremes(previous=[sure], next=[(0.45, 0.01), (0.4, 0.3)])  # the lower head may be above
    assert verdict("CL1", extremes=wide) == "undecided"


def test_separators_in_the_middle_layers():
    """Relative depth 5/12 to 10/12 of six layers: layers 3 and 4."""
    high = surface(sep=[0, 0, 0, 0.6, 0.7, 0], sep_sep=[0, 0, 0, 0.95, 0.8, 0])
    assert verdict("CL2", surface=high) == "holds"
    found = judged("CL3", surface=high)
    assert (found.verdict, found.unit) == ("does not hold", "[SEP] to [SEP], layer 4")
    assert verdict("CL2", surface=high[high["layer"] < 3]) == UNTESTABLE  # one middle layer


def test_the_own_sink_is_the_special_token_with_most_attention():
    own = surface(cls=[0, 0.5, 0.5, 0.6, 0.7, 0.2], cls_cls=[0, 0, 0, 0.95, 0.97, 0])
    assert verdict("CL2b", surface=own) == verdict("CL3b", surface=own) == "holds"
    assert verdict("CL2", surface=own) == "does not hold"
    frame = MEASURES["CL2b"]({"surface": own, "uniform": UNIFORM})
    assert frame["control"].unique().tolist() == [0.02]


def test_targets_move_with_depth():
    early = {"cls": [0.5, 0.4, 0.1, 0.1, 0.1, 0.1], "punct": [0.1, 0.1, 0.1, 0.1, 0.3, 0.5]}
    assert verdict("CL4", surface=surface(**early)) == "holds"
    late = early | {"punct": [0.9, 0.1, 0.1, 0.1, 0.3, 0.5]}
    assert verdict("CL4", surface=surface(**late)) == "does not hold"
    assert verdict("CL6", surface=surface(entropy=[4, 3, 2, 1, 1, 2])) == "holds"
    assert verdict("CL6", surface=surface(entropy=[1, 1, 2, 2, 2, 2])) == "does not hold"


def gradients(late: float) -> pd.DataFrame:
    """Gradients of 1 on other words and [CLS]; on [SEP] 5 in the first three layers, then `late`."""
    keys = surface()[["layer", "head"]]
    groups = {"sep": np.where(keys["layer"] >= 3, late, 5.0), "other": 1.0, "cls": 1.0}
    return pd.concat([keys.assign(group=name, importance=value) for name, value in groups.items()])


def test_gradients_where_the_token_gets_most_attention():
    rests = surface(sep=[0.01, 0.01, 0.01, 0.5, 0.6, 0.5])
    assert verdict("CL5", surface=rests, gradients_heads=gradients(0.3)) == "holds"
    assert verdict("CL5", surface=rests, gradients_heads=gradients(0.6)) == "does not hold"
    assert judged("CL5", surface=rests, gradients_heads=gradients(0.3)).unit_count == 3


def test_gradients_of_attention_that_hardly_exists_are_untestable():
    tables = {"surface": surface(cls=[0.4] * LAYERS, sep=[0.02] * LAYERS), "gradients_heads": gradients(0.3)}
    assert verdict("CL5", **tables) == UNTESTABLE
    assert verdict("CL5b", **tables) == "does not hold"  # [CLS] has gradients like other words


def dependencies(**rows: tuple[float, float, float, float]) -> pd.DataFrame:
    columns = ["accuracy", "low", "high", "offset_accuracy"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("relation")
    return table.reset_index().assign(n=range(100, 100 + len(rows)), p_adjusted=0.01)


def test_heads_against_offsets():
    good = {"obj": (0.8, 0.7, 0.9, 0.4), "det": (0.9, 0.8, 0.95, 0.5), "all": (0.4, 0.35, 0.45, 0.3)}
    assert verdict("CL7", dependencies=dependencies(**good)) == "holds"
    assert verdict("CL8", dependencies=dependencies(**good)) == "holds"
    close = dependencies(**good, pobj=(0.42, 0.38, 0.46, 0.4))
    found = judged("CL7", dependencies=close)
    assert (found.verdict, found.unit, found.holding) == ("undecided", "pobj", 2)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.02, -0.02, 0.06))
    worse = dependencies(**good, pobj=(0.3, 0.25, 0.35, 0.4))
    assert verdict("CL7", dependencies=worse) == "does not hold"
    assert verdict("CL7", dependencies=dependencies(obj=(1.0, np.nan, np.nan, 0.4))) == "holds"
    assert verdict("CL7", dependencies=dependencies(cop=(1, 1, 1, 0))) == UNTESTABLE


def test_antecedents_in_both_readings():
    rows = [
        (reading, system, scored_on, accuracy, layer)
        for reading, best in (("all_words", 0.52), ("preceding_mention_heads", 0.7))
        for scored_on in ("all documents", "both halves in turn")
        for system, accuracy, layer in (
            ("head match", 0.5, None),
            ("rule-based", 0.68, None),
            ("head", best, 3),
        )
    ]
    table = pd.DataFrame(rows, columns=["candidates", "system", "scored_on", "all", "layer"])
    table = table.assign(low=table["all"] - 0.05, high=table["all"] + 0.05, n=80)
    verdicts = [verdict(name, coreference_readings=table) for name in ("CL9", "CL9b", "CL10", "CL10b")]
    assert verdicts == ["holds", "undecided", "holds", "does not hold"]
    assert judged("CL9", coreference_readings=table).estimate == pytest.approx(0.2)
    strict = table[table["candidates"] == "all_words"]
    assert verdict("CL9", coreference_readings=strict) == UNTESTABLE


def probes(*words: float) -> pd.DataFrame:
    rows = [("attention + words", "tiny", seed, score) for seed, score in enumerate(words)]
    rows += [("attention + words", "tiny, random layers", seed, 0.2) for seed in range(len(words))]
    rows += [("distances + words", "none", seed, 0.5) for seed in range(len(words))]
    return pd.DataFrame(rows, columns=["probe", "encoder", "seed", "uas_no_punct"])


def test_probes():
    for name in ("CL11", "CL12"):
        assert verdict(name, probes=probes(0.6, 0.61, 0.62)) == "holds"
    assert verdict("CL11", probes=probes(0.4, 0.41, 0.42)) == "does not hold"
    assert verdict("CL11", probes=probes(0.45, 0.56)) == "undecided"
    assert verdict("CL11", probes=probes(0.6)) == "undecided"  # one seed has no interval
    found = judged("CL12", probes=probes(0.6, 0.61, 0.62))
    half = 4.302653 * 0.01 / 3**0.5  # the quantile of t for two degrees of freedom
    assert (found.estimate, found.low, found.high) == pytest.approx((0.41, 0.41 - half, 0.41 + half))


def test_layers_cluster():
    places = [(layer, head) for layer in range(3) for head in range(8)]
    pairs = [(*a, *b) for number, a in enumerate(places) for b in places[number + 1 :]]
    many = pd.DataFrame(pairs, columns=["layer", "head", "other_layer", "other_head"])
    same = many["layer"] == many["other_layer"]
    flat = many.assign(distance=np.where(same, 3.0, 6.0))
    assert judged("CL13", distances=flat).estimate == pytest.approx(0.5)
    noise = np.random.default_rng(0).random(len(many))
    assert verdict("CL13", distances=many.assign(distance=6 - 4 * same + noise)) == "holds"
    assert verdict("CL13", distances=many.assign(distance=6 + 4 * same + noise)) == "does not hold"
    assert verdict("CL13", distances=many.assign(distance=1 + noise)) == "undecided"
