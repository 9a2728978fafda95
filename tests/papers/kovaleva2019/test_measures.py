"""Kovaleva's claims on small tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.kovaleva2019 import measures
from analysis.papers.kovaleva2019.measures import CLAIMS
from analysis.papers.kovaleva2019.names import PATTERNS
from analysis.statistics.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE, Verdict, judge
from analysis.statistics.leads import trained_runs

BY_ID = {claim.id: claim for claim in CLAIMS}
TASKS = ("mrpc", "qqp", "rte", "qnli", "cola", "sts-b")
CONSTANTS = dict.fromkeys(TASKS, 0.5)
TRAINED = {(task, seed) for task in TASKS for seed in range(3)}
LAYERS, HEADS = 6, 4
PLACES = pd.MultiIndex.from_product([range(LAYERS), range(HEADS)], names=["layer", "head"]).to_frame(
    index=False
)


def judged(name: str, trained=TRAINED, **tables: pd.DataFrame) -> Verdict:
    frame = measures.measures(tables, trained, CONSTANTS)[name]
    return judge(frame, BY_ID[name].relation, BY_ID[name].bound, BY_ID[name].units)


def verdict(name: str, **tables: pd.DataFrame) -> str:
    return judged(name, **tables).verdict


def by_layer(values: list[float], column: str = "mean", **columns) -> pd.DataFrame:
    """A value of every head, given by layer; the heads of a layer differ only slightly."""
    places = PLACES[PLACES["layer"] < len(values)]
    spread = np.repeat(values, HEADS) + 0.001 * places["head"]
    return places.assign(**{column: spread}, **columns)


def test_every_claim_is_complete():
    assert len(CLAIMS) == 17
    assert {*measures.measures({}, TRAINED, CONSTANTS)} == {*BY_ID}
    assert all(claim.definition and claim.published and claim.source for claim in CLAIMS)


def test_without_tables_every_claim_is_untestable():
    assert all(verdict(name) == UNTESTABLE for name in BY_ID)


def patterns(**shares: float) -> pd.DataFrame:
    """Shares of the last pattern by task, 0.1 before fine-tuning, with narrow intervals; the others share the rest."""
    rows = []
    for task, share in shares.items():
        for state, last in (("pretrained", 0.1), ("finetuned", share)):
            for pattern in PATTERNS:
                value = last if pattern == PATTERNS[-1] else (1 - last) / 4
                rows.append((task, state, pattern, value, value - 0.01, value + 0.01, 50))
    return pd.DataFrame(rows, columns=["task", "state", "pattern", "share", "low", "high", "n"])


def test_heterogeneous_shares():
    assert verdict("K1", patterns=patterns(qqp=0.6, mrpc=0.3)) == "holds"
    assert verdict("K1", patterns=patterns(qqp=0.3, mrpc=0.6)) == "does not hold"
    assert verdict("K1", patterns=patterns(qqp=0.3, mrpc=0.299)) == "undecided"
    assert verdict("K1", patterns=patterns(mrpc=0.3)) == "untestable"


def test_moves_of_shares():
    assert verdict("K2", patterns=patterns(qqp=0.12, mrpc=0.09)) == "holds"
    assert verdict("K2", patterns=patterns(qqp=0.3, mrpc=0.09)) == "does not hold"


def test_difference_of_independent_values():
    """For equal, symmetric intervals the half width grows by the root of two."""
    found = judged("K1", patterns=patterns(qqp=0.6, mrpc=0.3))
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (0.3, 0.3 - 0.01 * 2**0.5, 0.3 + 0.01 * 2**0.5)
    )


def test_frame_heads():
    def links(heads: int) -> pd.DataFrame:
        p = np.where(np.arange(len(PLACES)) < heads, 0.001, 0.8)
        table = PLACES.assign(mode="all_pairs", n=40, mean=0.1, control=0.1, p=p, p_by=p)
        return pd.concat(
            [table.assign(direction=name) for name in ("element_to_target", "target_to_element")]
        )

    assert verdict("K3", links=links(0)) == "undecided"  # to find none refutes nothing
    assert verdict("K3", links=links(1)) == "holds"
    assert judged("K3", links=links(20)).estimate == 20


def test_last_layers():
    def cosines(*layers: float, task: str = "mrpc") -> pd.DataFrame:
        return by_layer([*layers], task=task, seed=0, padding="cropped")

    assert (
        verdict("K4", cosine=cosines(0.9, 0.9, 0.8, 0.8, 0.9, 0.4)) == "holds"
    )  # one of six is the last sixth
    assert verdict("K4", cosine=cosines(0.9, 0.9, 0.8, 0.8, 0.4, 0.6)) == "does not hold"
    assert verdict("K4", cosine=cosines(0.9, 0.4)) == "holds"  # an encoder of two layers
    assert verdict("K4", cosine=cosines(0.9)) == "untestable"
    assert verdict("K4", cosine=cosines(0.9, 0.4, task="qqp")) == "untestable"


def features(cls: list[float], sep: list[float], noun: float = 0.05, task: str = "mrpc") -> pd.DataFrame:
    base = {"mode": "aligned", "n": 30, "task": task}
    parts = []
    for state, value in (("pretrained", 0.05), ("finetuned", noun)):
        parts += [
            by_layer(values, feature=name, state=state, **base)
            for name, values in (("[CLS]", cls), ("[SEP]", sep))
        ]
        parts.append(by_layer([value] * LAYERS, feature="noun", state=state, **base))
    return pd.concat(parts)


def test_special_tokens_by_depth():
    early, late = [0.5, 0.4, 0.2, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.2, 0.4, 0.5]
    assert verdict("K5", features=features(early, late)) == "holds"
    assert verdict("K5", features=features(early, early)) == "does not hold"


def test_gains_beside_special_tokens():
    flat = [0.3] * LAYERS
    assert verdict("K6", features=features(flat, flat, noun=0.06)) == "holds"
    assert verdict("K6", features=features(flat, flat, noun=0.2)) == "does not hold"


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
    rows = [
        {"task": task, "seed": 0, "unit": "head", "variants": 24, "raised": 3, "raised_by_chance": 5, "beyond": 0,
         "rise": rise, "largest": "0-1", "low": rise - 0.01, "high": rise + 0.01, "highest_end": rise + 0.01,
         "mean_change": mean, "mean_low": mean - 0.01,
         "mean_high": mean + 0.01, "least": 0.05}
        for task, (rise, mean) in tasks.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


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
    assert verdict("K10", initialisation=starts([0.5, 0.6, 0.7], [0.5, 0.65, 0.8])) == "undecided"
    found = judged("K10", initialisation=starts([0.5] * 3, [0.6] * 3))
    assert found.estimate == pytest.approx(0.1)
    assert found.verdict == UNDECIDED  # without spread there is no interval
    one = starts([0.5], [0.7])
    assert judged("K10", initialisation=one[one["seed"] == 0]).verdict == UNDECIDED


def test_random_weights_beside_pre_trained_ones():
    well, badly = starts([0.6, 0.61, 0.62], [0.7, 0.71, 0.72]), starts([0.1, 0.11, 0.12], [0.7, 0.71, 0.72])
    assert verdict("K14", initialisation=well) == HOLDS
    assert verdict("K14", initialisation=badly) == FAILS
    assert verdict("K14b", initialisation=well) == UNTESTABLE
    similarity = badly.assign(task="sts-b", metric="pearson")
    assert verdict("K14b", initialisation=similarity) == HOLDS
    assert verdict("K14", initialisation=similarity) == UNTESTABLE


def test_failed_training_is_no_evidence():
    """RTE answers with one label: its rows are left out, and one run alone is too few."""
    rows = [("mrpc", 0, 0.8), ("qqp", 0, 0.75), ("rte", 0, 0.51)]
    finetune = pd.DataFrame(rows, columns=["task", "seed", "finetuned"]).assign(
        metric="accuracy", constant=0.5, dev=200
    )
    trained = trained_runs(finetune)
    assert trained == {("mrpc", 0), ("qqp", 0)}
    trained |= {("mrpc", 1), ("qqp", 1)}
    found = rises(mrpc=(0.05, 0.02), qqp=(0.03, 0), rte=(-0.2, -0.1))
    assert verdict("K8", rises=found) == FAILS
    assert judged("K8", trained, rises=found).verdict == HOLDS
    assert judged("K8", trained - {("qqp", 1)}, rises=found).unit_count == 1  # counted by task, not over all
    assert judged("K8", {("mrpc", 0)}, rises=found).verdict == UNTESTABLE
    lost = measures.measures({"rises": found}, trained, CONSTANTS)["K9"]
    assert lost["note"].iloc[0] == "not learnt, and left out: rte"
    assert judged("K9", trained, rises=found).verdict == HOLDS


def test_the_sink_is_the_special_token_that_gets_most():
    flat, rising = [0.05] * LAYERS, [0.3, 0.3, 0.4, 0.4, 0.5, 0.5]
    assert verdict("K5b", features=features(flat, rising)) == HOLDS
    assert verdict("K5b", features=features(rising[::-1], flat)) == FAILS


def test_heads_that_attend_mainly_to_special_tokens():
    half = [0.6, 0.6, 0.6, 0.1, 0.1, 0.1]
    frame = measures.measures({"features": features(half, [0.05] * LAYERS)}, TRAINED, CONSTANTS)["K11"]
    assert frame.loc[frame["replicate"] == 0, "value"].tolist() == [0.5]
    assert frame["control"].iloc[0] == 0.5
    assert verdict("K11", features=features([0.1] * LAYERS, [0.05] * LAYERS)) == FAILS


def disabled(unit: str, change: float, task: str = "mrpc") -> pd.DataFrame:
    """Heads or layers that all change accuracy alike, from .8."""
    places = PLACES if unit == "head" else PLACES[["layer"]].drop_duplicates().assign(head=None)
    ends = {"low": change - 0.01, "high": change + 0.01}
    return places.assign(task=task, seed=0, unit=unit, metric="accuracy", baseline=0.8, change=change, **ends)


def test_disabled_heads_with_frame_links_are_judged_by_the_lead():
    p = np.where(np.arange(len(PLACES)) < 2, 0.001, 0.8)
    links = PLACES.assign(
        mode="all_pairs", direction="element_to_target", n=40, mean=0.1, control=0.1, p_by=p
    )
    assert verdict("K12", links=links, disable=disabled("head", -0.03)) == HOLDS  # a tenth of the lead of .3
    assert verdict("K12", links=links, disable=disabled("head", -0.2)) == FAILS
    assert judged("K12", links=links, disable=disabled("head", -0.03)).unit_count == 2
    assert verdict("K12", links=links.assign(p_by=0.9), disable=disabled("head", 0)) == UNTESTABLE
