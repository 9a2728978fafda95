"""Kovaleva's claims on small tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.kovaleva2019 import findings
from analysis.papers.kovaleva2019.claims import CLAIMS, TABLES, evidence_of
from analysis.papers.kovaleva2019.findings import Limited, Tables
from analysis.papers.kovaleva2019.names import PATTERNS
from analysis.statistics.leads import trained_runs
from analysis.statistics.verdicts import claim_table

BY_ID = {claim.id: claim for claim in CLAIMS}
LAYERS, HEADS = 6, 4
PLACES = pd.MultiIndex.from_product([range(LAYERS), range(HEADS)], names=["layer", "head"]).to_frame(
    index=False
)


def verdict(name: str, **tables: pd.DataFrame) -> str:
    return BY_ID[name].judge(Tables(**tables))[1].verdict


def by_layer(values: list[float], column: str = "mean", **columns) -> pd.DataFrame:
    """A value of every head, given by layer; the heads of a layer differ only slightly."""
    places = PLACES[PLACES["layer"] < len(values)]
    spread = np.repeat(values, HEADS) + 0.001 * places["head"]
    return places.assign(**{column: spread}, **columns)


def test_every_claim_is_complete():
    assert [*BY_ID] == [f"K{number}" for number in range(1, 11)]
    assert all(" n: " in claim.definition and claim.published and claim.source for claim in CLAIMS)


def test_without_tables_every_claim_is_untestable():
    assert (claim_table(CLAIMS, evidence_of({}))["verdict"] == "untestable").all()
    assert evidence_of({TABLES["links"]: pd.DataFrame({"n": []})}).links is None


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
    found = Limited(0.6, 0.5, 0.7).minus(Limited(0.3, 0.2, 0.4))
    assert found == pytest.approx((0.3, 0.3 - np.sqrt(0.02), 0.3 + np.sqrt(0.02)))
    assert Limited(-0.1, -0.3, 0.05).size() == Limited(0.1, 0, 0.3)
    assert Limited(-0.2, -0.3, -0.1).size() == Limited(0.2, 0.1, 0.3)


def test_frame_heads():
    def links(heads: int) -> pd.DataFrame:
        p = np.where(np.arange(len(PLACES)) < heads, 0.001, 0.8)
        table = PLACES.assign(mode="all_pairs", n=40, mean=0.1, control=0.1, p=p, p_by=p)
        return pd.concat(
            [table.assign(direction=name) for name in ("element_to_target", "target_to_element")]
        )

    assert verdict("K3", links=links(0)) == "undecided"  # to find none refutes nothing
    assert verdict("K3", links=links(1)) == "holds"
    assert "20 of 24 heads" in findings.frame_heads(Tables(links=links(20))).value


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


def test_gains_need_a_fine_tuned_state():
    flat = [0.3] * LAYERS
    before = features(flat, flat)
    before = before[before["state"] == "pretrained"]
    assert verdict("K6", features=before) == "untestable"
    both = pd.concat([before.assign(task="qqp"), features(flat, flat, noun=0.06)])
    assert verdict("K6", features=both) == "holds"


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
    found = findings.adjacent_verbs(Tables(verbs=verbs(0.3)))
    assert found.measures.values == pytest.approx(0.5)


def rises(**tasks: tuple[float, float]) -> pd.DataFrame:
    """The largest rise and the mean change of each task, with intervals of 0.01 to either side."""
    rows = [
        {"task": task, "seed": 0, "unit": "head", "variants": 24, "raised": 3, "raised_by_chance": 5, "beyond": 0,
         "rise": rise, "low": rise - 0.01, "high": rise + 0.01, "highest_end": rise + 0.01,
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
    found = findings.pretraining_helps(Tables(initialisation=starts([0.5] * 3, [0.6] * 3)))
    assert found.measures.values == pytest.approx(0.1)


def test_starts_are_compared_by_the_first_metric_of_the_task():
    accuracy, matthews = (
        starts([0.6, 0.7, 0.8], [0.6, 0.7, 0.8]),
        starts([-0.1, 0, 0.1], [0.1, 0.2, 0.3]).assign(metric="matthews"),
    )
    found = findings.pretraining_helps(
        Tables(initialisation=pd.concat([accuracy, matthews]).assign(task="cola"))
    )
    assert found.value == "cola 0.20 against 0.00 (matthews)"


def test_failed_training_is_no_evidence():
    """RTE answers with one label: its rows are left out, and one run alone is too few."""
    rows = [("mrpc", 0, 0.8), ("qqp", 0, 0.75), ("rte", 0, 0.51)]
    finetune = pd.DataFrame(rows, columns=["task", "seed", "finetuned"]).assign(
        metric="accuracy", constant=0.5, dev=200
    )
    trained = trained_runs(finetune)
    assert trained == {("mrpc", 0), ("qqp", 0)}
    tables = {"kovaleva_rises": rises(mrpc=(0.05, 0), qqp=(0.03, 0), rte=(-0.2, 0))}
    claim = BY_ID["K8"]
    assert claim.judge(evidence_of(tables))[1].verdict == "does not hold"
    assert claim.judge(evidence_of(tables, trained))[1].verdict == "holds"
    assert claim.judge(evidence_of(tables, {("mrpc", 0)}))[1].verdict == "untestable"
