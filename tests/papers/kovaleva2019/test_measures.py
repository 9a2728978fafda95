"""Kovaleva's claims on small tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.kovaleva2019 import measures
from analysis.papers.kovaleva2019.measures import CLAIMS
from analysis.papers.kovaleva2019.names import PATTERNS
from analysis.statistics.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE, Verdict, judge
from analysis.statistics.training import trained_runs

BY_ID = {claim.id: claim for claim in CLAIMS}
TASKS = ("mrpc", "qqp", "rte", "qnli", "cola", "sts-b")
CONSTANTS = dict.fromkeys(TASKS, 0.5)
TRAINED = {(task, seed) for task in TASKS for seed in range(3)}
LAYERS, HEADS = 6, 4
PLACES = pd.DataFrame(list(np.ndindex(LAYERS, HEADS)), columns=["layer", "head"])


def judged(name: str, trained=TRAINED, **tables: pd.DataFrame) -> Verdict:
    frame = measures.measures(tables, trained, CONSTANTS)[name]
    return judge(frame, BY_ID[name].relation, BY_ID[name].bound, BY_ID[name].units)


def verdict(name: str, **tables: pd.DataFrame) -> str:
    return judged(name, **tables).verdict


def by_layer(values: list[float], **columns) -> pd.DataFrame:
    """The mean of every head, given by layer; the heads of a layer differ only slightly."""
    places = PLACES[PLACES["layer"] < len(values)]
    return places.assign(mean=np.repeat(values, HEADS) + 0.001 * places["head"], **columns)


def test_without_tables_every_claim_is_untestable():
    assert [*measures.measures({}, TRAINED, CONSTANTS)] == [*BY_ID]
    assert all(verdict(name) == UNTESTABLE for name in BY_ID)


def patterns(**shares: float) -> pd.DataFrame:
    """Shares of the last pattern by task, 0.1 before fine-tuning, with narrow intervals; the others share the rest."""
    rows = [
        (task, state, pattern, last if pattern == PATTERNS[-1] else (1 - last) / 4)
        for task, share in shares.items()
        for state, last in (("pretrained", 0.1), ("finetuned", share))
        for pattern in PATTERNS
    ]
    table = pd.DataFrame(rows, columns=["task", "state", "pattern", "share"])
    return table.assign(low=table["share"] - 0.01, high=table["share"] + 0.01, n=50)


def test_heterogeneous_shares():
    found = judged("K1", patterns=patterns(qqp=0.6, mrpc=0.3))
    assert found.verdict == "holds"
    half = 0.01 * 2**0.5  # both intervals reach as far to both sides
    assert (found.estimate, found.low, found.high) == pytest.approx((0.3, 0.3 - half, 0.3 + half))
    assert verdict("K1", patterns=patterns(qqp=0.3, mrpc=0.6)) == "does not hold"
    assert verdict("K1", patterns=patterns(qqp=0.3, mrpc=0.299)) == "undecided"
    assert verdict("K1", patterns=patterns(mrpc=0.3)) == "untestable"


def test_moves_of_shares():
    assert verdict("K2", patterns=patterns(qqp=0.12, mrpc=0.09)) == "holds"
    assert verdict("K2", patterns=patterns(qqp=0.3, mrpc=0.09)) == "does not hold"


def links(heads: int) -> pd.DataFrame:
    """Tests of links in both directions; this number of heads passes."""
    p = np.where(np.arange(len(PLACES)) < heads, 0.001, 0.8)
    table = PLACES.assign(mode="all_pairs", n=40, mean=0.1, control=0.1, p_by=p)
    return pd.concat([table.assign(direction=name) for name in ("element_to_target", "target_to_element")])


def test_frame_heads():
    assert verdict("K3", links=links(0)) == "undecided"  # to find none refutes nothing
    assert verdict("K3", links=links(1)) == "holds"
    assert judged("K3", links=links(20)).estimate == 20


def test_last_layers():
    def cosines(*layers: float, task: str = "mrpc") -> pd.DataFrame:
        return by_layer([*layers], task=task, seed=0, padding="cropped")

    # one of six is the last sixth
    assert verdict("K4", cosine=cosines(0.9, 0.9, 0.8, 0.8, 0.9, 0.4)) == "holds"
    assert verdict("K4", cosine=cosines(0.9, 0.9, 0.8, 0.8, 0.4, 0.6)) == "does not hold"
    assert verdict("K4", cosine=cosines(0.9, 0.4)) == "holds"  # an encoder of two layers
    assert verdict("K4", cosine=cosines(0.9, 0.4, task="qqp")) == "untestable"


def features(cls: list[float], sep: list[float], noun: float = 0.05) -> pd.DataFrame:
    """Attention to both special tokens by layer, in both states, and to nouns, 0.05 before fine-tuning."""
    base = {"mode": "aligned", "n": 30, "task": "mrpc"}
    return pd.concat(
        [
            by_layer(values, feature=name, state=state, **base)
            for state, value in (("pretrained", 0.05), ("finetuned", noun))
            for name, values in (("[CLS]", cls), ("[SEP]", sep), ("noun", [value] * LAYERS))
        ]
    )


def test_special_tokens_by_depth():
    early, late = [0.5, 0.4, 0.2, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.2, 0.4, 0.5]
    assert verdict("K5", features=features(early, late)) == "holds"
    assert verdict("K5", features=features(early, early)) == "does not hold"
    # K5b asks for the one that gets most.
    assert verdict("K5b", features=features([0.05] * LAYERS, late)) == HOLDS
    assert verdict("K5b", features=features(early, [0.05] * LAYERS)) == FAILS


def test_gains_beside_special_tokens():
    flat = [0.3] * LAYERS
    assert verdict("K6", features=features(flat, flat, noun=0.06)) == "holds"
    assert verdict("K6", features=features(flat, flat, noun=0.2)) == "does not hold"


def test_heads_that_attend_mainly_to_special_tokens():
    half = [0.6, 0.6, 0.6, 0.1, 0.1, 0.1]
    assert judged("K11", features=features(half, [0.05] * LAYERS)).estimate == 0.5
    assert verdict("K11", features=features([0.1] * LAYERS, [0.05] * LAYERS)) == FAILS


def test_adjacent_verbs():
    def verbs(control: float) -> pd.DataFrame:
        table = by_layer([0.1] * LAYERS, task="mrpc", state="pretrained", link="subject to verb", n=40)
        table.loc[5, "mean"] = 0.6
        difference = table["mean"] - control
        return table.assign(control=control, low=difference - 0.02, high=difference + 0.02)

    assert verdict("K7", verbs=verbs(0.5)) == "holds"
    assert verdict("K7", verbs=verbs(0.1)) == "does not hold"
    assert judged("K7", verbs=verbs(0.3)).estimate == pytest.approx(0.5)


def rises(**tasks: tuple[float, float]) -> pd.DataFrame:
    """The largest rise and the mean change of each task, with intervals of 0.01 to either side."""
    table = pd.DataFrame.from_dict(tasks, orient="index", columns=["rise", "mean_change"])
    table = table.rename_axis("task").reset_index()
    table = table.assign(seed=0, unit="head", variants=24, raised=3, raised_by_chance=5, largest="0-1")
    rise, mean = table["rise"], table["mean_change"]
    return table.assign(low=rise - 0.01, highest_end=rise + 0.01, mean_low=mean - 0.01, mean_high=mean + 0.01)


def test_disabling_helps():
    assert verdict("K8", rises=rises(mrpc=(0.05, 0), qqp=(0.03, 0))) == "holds"
    assert verdict("K8", rises=rises(mrpc=(0.05, 0), qqp=(0.005, 0))) == "undecided"
    assert verdict("K9", rises=rises(mrpc=(0, 0.02), rte=(0, 0.03))) == "holds"
    assert verdict("K9", rises=rises(mrpc=(0, -0.02), rte=(0, 0.03))) == "does not hold"
    assert verdict("K9", rises=rises(qqp=(0, 0.02))) == "untestable"


def starts(random: list[float], pretrained: list[float]) -> pd.DataFrame:
    named = {"random, 800 rows, 2 epochs": random, "pretrained, 800 rows, 2 epochs": pretrained}
    named["pretrained, 4,000 rows, 2 epochs"] = [0.9] * 3
    rows = [
        ("mrpc", start, seed, "accuracy", value, 0.8)
        for start, values in named.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["task", "start", "seed", "metric", "value", "constant"])


def test_starts_are_compared_after_the_same_training():
    assert verdict("K10", initialisation=starts([0.5, 0.51, 0.52], [0.7, 0.71, 0.72])) == "holds"
    assert verdict("K10", initialisation=starts([0.7, 0.71, 0.72], [0.5, 0.51, 0.52])) == "does not hold"
    found = judged("K10", initialisation=starts([0.5] * 3, [0.6] * 3))
    assert (found.estimate, found.verdict) == (pytest.approx(0.1), UNDECIDED)  # without spread, no interval
    one = starts([0.5], [0.7])
    assert verdict("K10", initialisation=one[one["seed"] == 0]) == UNDECIDED


def test_random_weights_beside_pre_trained_ones():
    well, badly = starts([0.6, 0.61, 0.62], [0.7, 0.71, 0.72]), starts([0.1, 0.11, 0.12], [0.7, 0.71, 0.72])
    assert verdict("K14", initialisation=well) == HOLDS
    assert verdict("K14", initialisation=badly) == FAILS
    assert verdict("K14b", initialisation=well) == UNTESTABLE
    similarity = badly.assign(task="sts-b", metric="pearson")
    assert verdict("K14b", initialisation=similarity) == HOLDS


def test_failed_training_is_no_evidence():
    """RTE answers with one label: its rows are left out, and one run alone is too few."""
    rows = [("mrpc", 0, 0.8), ("qqp", 0, 0.75), ("rte", 0, 0.51)]
    finetune = pd.DataFrame(rows, columns=["task", "seed", "finetuned"])
    trained = trained_runs(finetune.assign(trained=finetune["finetuned"] > 0.6))
    trained |= {(task, 1) for task, _ in trained}
    found = rises(mrpc=(0.05, 0.02), qqp=(0.03, 0), rte=(-0.2, -0.1))
    assert verdict("K8", rises=found) == FAILS
    assert judged("K8", trained, rises=found).verdict == HOLDS
    assert judged("K8", trained - {("qqp", 1)}, rises=found).unit_count == 1  # counted by task, not over all
    assert judged("K8", {("mrpc", 0)}, rises=found).verdict == UNTESTABLE
    assert judged("K9", trained, rises=found).verdict == HOLDS


def disabled(unit: str, change: float, task: str = "mrpc") -> pd.DataFrame:
    """Heads or layers that all change accuracy alike, from .8."""
    places = PLACES if unit == "head" else PLACES[["layer"]].drop_duplicates().assign(head=None)
    ends = {"low": change - 0.01, "high": change + 0.01}
    return places.assign(task=task, seed=0, unit=unit, metric="accuracy", baseline=0.8, change=change, **ends)


def test_disabled_heads_with_frame_links_are_judged_by_the_lead():
    found = judged("K12", links=links(2), disable=disabled("head", -0.03))  # a tenth of the lead of .3
    assert (found.verdict, found.unit_count) == (HOLDS, 2)
    assert verdict("K12", links=links(2), disable=disabled("head", -0.2)) == FAILS
    assert verdict("K12", links=links(0), disable=disabled("head", 0)) == UNTESTABLE


def test_disabled_layers():
    assert verdict("K13a", disable=disabled("layer", 0.03, "rte")) == HOLDS
    assert verdict("K13a", disable=disabled("layer", -0.03, "rte")) == FAILS
