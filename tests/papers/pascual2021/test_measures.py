"""Measures of the claims on small tables with obvious answers."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from analysis.papers.pascual2021.measures import CLAIMS, JSD, MIXING, SHARE, SLOPE, VALUES, WHOLE, measures
from analysis.statistics.claim_tables import claim_table

RUNS = [("mrpc", "pretrained"), ("mrpc", "finetuned")]
LAYERS = 3
MAPS = ("attention", "effective", "effective_sum", "local_attribution", "attribution")


def row(name: str, **tables: pd.DataFrame) -> pd.Series:
    """The row of a claim in the table of claims; tables that are not given have no rows."""
    known = {"discrepancy": discrepancy, "persistence": lambda: persistence(1, 1), "effective": survival}
    known |= {"survival": survival, "sinks": sinks}
    full = {table: tables.get(table, make().iloc[:0]) for table, make in known.items()}
    return claim_table(CLAIMS, measures(full)).set_axis([claim.id for claim in CLAIMS]).loc[name]


def verdict(name: str, **tables: pd.DataFrame) -> str:
    return row(name, **tables)["verdict"]


def interval(value: float, half: float = 0.01) -> dict[str, float]:
    return {"value": value, "low": value - half, "high": value + half}


def discrepancy(divergence=(0.05, 0.3, 0.4), share: float = 0.8, slope: float = 0.1) -> pd.DataFrame:
    """A table of discrepancy with these values in every run; without special tokens half of them."""
    rows = []
    for (task, state), (tokens, part) in product(RUNS, (("all", 1), ("text", 0.5))):
        run = {"task": task, "state": state, "tokens": tokens, "n": 20, "pair": WHOLE}
        rows.append(run | {"measure": SLOPE} | interval(part * slope))
        for layer, value in enumerate(divergence):
            at = run | {"layer": layer, "measure": JSD}
            rows.append(at | {"measure": SHARE} | interval(part * share))
            rows += [at | {"pair": pair} | interval(part * value) for pair in (WHOLE, VALUES, MIXING)]
            rows.append(at | {"head": 0} | interval(0.0))  # of one head: left out
    return pd.DataFrame(rows)


def persistence(weakest: int, low: int) -> pd.DataFrame:
    """Every layer has `weakest` heads with cls; only layer 0 has heads with sep, but many."""
    best = {"pattern": "cls", "weakest": weakest, "low": low, "high": weakest + 1, "verdict": "in all layers"}
    other = {"pattern": "sep", "weakest": 0, "low": 0, "high": 5, "verdict": "lost"}
    return pd.DataFrame(
        [
            {"task": task, "state": state, "layer": layer} | each
            for task, state in RUNS
            for layer in range(LAYERS)
            for each in (other | {"attribution": 9 * (layer == 0)}, best | {"attribution": weakest})
        ]
    )


def survival(role: str = "delimiter", effective: int = 0, kappa: float = 0.9) -> pd.DataFrame:
    heads = dict.fromkeys(MAPS, 10) | {"effective": effective}
    rows = [
        {"task": task, "state": state, "role": role, "map": name, "heads": count, "heads_low": count}
        | {"heads_high": count + 1, "n": 50, "kappa": kappa, "low": kappa - 0.1, "high": kappa + 0.05}
        for task, state in RUNS
        for name, count in heads.items()
    ]
    return pd.DataFrame(rows).astype({"heads": "Int64"})


def sinks(changed: int = 1) -> pd.DataFrame:
    return pd.DataFrame(
        [{"task": task, "state": state, "map": "effective", "changed": changed} for task, state in RUNS]
    )


def test_without_tables_every_claim_is_untestable():
    assert {verdict(claim.id) for claim in CLAIMS} == {"untestable"}


def test_discrepancy():
    table = discrepancy()
    assert [verdict(name, discrepancy=table) for name in ("P1", "P1b", "P2", "P3")] == ["holds"] * 4
    found = row("P1", discrepancy=table)
    # layer 0 does not count
    assert (found["estimate"], found["pooled"], found["unit_count"]) == pytest.approx((0.3, 0.35, 4))
    assert row("P1b", discrepancy=table)["estimate"] == pytest.approx(0.15)
    assert row("P2", discrepancy=table)["estimate"] == pytest.approx(0.8)
    assert row("P3", discrepancy=discrepancy(slope=0.3))["estimate"] == pytest.approx(0.3)
    assert verdict("P1", discrepancy=discrepancy([0.5, 0.105, 0.4])) == "undecided"
    assert verdict("P1", discrepancy=discrepancy([0.5, 0.3, 0.02])) == "does not hold"
    assert verdict("P2", discrepancy=discrepancy(share=0.4)) == "does not hold"
    assert verdict("P3", discrepancy=discrepancy(slope=-0.1)) == "does not hold"


def test_persistence_of_patterns():
    assert verdict("P4", persistence=persistence(3, 2)) == "holds"
    assert verdict("P4", persistence=persistence(2, 0)) == "undecided"
    assert verdict("P4", persistence=persistence(0, 0).assign(high=0)) == "does not hold"


def test_delimiters():
    gone = survival()
    found = row("P5", effective=gone)
    assert found["verdict"] == "holds"  # the interval ends at the bound
    assert found["control_value"] == "rows that keep their sums: mrpc, finetuned 100%, mrpc, pretrained 100%"
    found = row("P5", effective=survival(effective=5))
    assert (found["estimate"], found["verdict"]) == (0.5, "does not hold")
    assert verdict("P5", effective=survival().assign(heads=0)) == "untestable"
    gone.loc[gone["state"] == "finetuned", "n"] = 19  # too few: the other state decides
    assert row("P5", effective=gone)["unit_count"] == 1


def test_syntactic_roles():
    verdicts = {0.9: "holds", 0.62: "undecided", 0.3: "does not hold", np.nan: "untestable"}
    for kappa, expected in verdicts.items():
        assert verdict("P6", survival=survival("syntactic", 9, kappa), sinks=sinks()) == expected
    table = survival("syntactic", 9, 0.3)
    table.loc[table["map"] == "attribution", ["kappa", "low", "high"]] = 0.9
    found = row("P6", survival=table, sinks=sinks())
    assert (found["pooled"], found["holding"], found["unit_count"]) == (pytest.approx(0.6), 2, 4)
    assert verdict("P6", survival=table, sinks=sinks(0)) == "holds"  # effective attention tells nothing
