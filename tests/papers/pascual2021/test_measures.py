from itertools import product

import pandas as pd
import pytest

from analysis.papers.pascual2021 import measures
from analysis.papers.pascual2021.measures import CLAIMS, JSD, MIXING, RATIO, VALUES, WHOLE
from analysis.statistics.claims import claim_table

RUNS = [("mrpc", "pretrained"), ("mrpc", "finetuned"), ("qqp", "finetuned")]
MAPS = ("attention", "effective", "effective_sum", "local_attribution", "attribution")


def ends(value: float, half: float = 0.01) -> dict[str, float]:
    return {"value": value, "low": value - half, "high": value + half}


def discrepancy(divergence=(0.05, 0.3, 0.4), ratio: float = 4.0) -> pd.DataFrame:
    """A table of discrepancy with these values in every run; without special tokens half of them."""
    rows = []
    for (task, state), (tokens, part) in product(RUNS, (("all", 1), ("text", 0.5))):
        run = {"task": task, "state": state, "tokens": tokens, "n": 20, "pair": WHOLE}
        for layer, value in enumerate(divergence):
            at = run | {"layer": layer, "measure": JSD}
            rows.append(at | {"measure": RATIO} | ends(part * ratio))
            rows += [at | {"pair": pair} | ends(part * value) for pair in (WHOLE, VALUES, MIXING)]
            rows.append(at | {"head": 0} | ends(0.0))  # of one head: left out
    return pd.DataFrame(rows)


def survival(role: str, heads: int = 1, kappa: float = 0.8, n: int = 50) -> pd.DataFrame:
    """10 heads have the role on attention, `heads` on effective attention, 9 where rows keep their sums."""
    counts = dict(zip(MAPS, (10, heads, 9, 5, 5), strict=True))
    return pd.DataFrame(
        [{"task": task, "state": state, "role": role, "map": name, "heads": count, "kappa": kappa, "low": kappa - 0.05,
          "high": kappa + 0.05, "heads_low": count - 0.5, "heads_high": count + 0.5, "n": n}
         for task, state in RUNS for name, count in counts.items()]
    )  # fmt: skip


SINKS = pd.DataFrame(RUNS, columns=["task", "state"]).assign(map="effective", changed=0.5)
TABLES = {
    "discrepancy": discrepancy(),
    "effective": survival("delimiter", heads=0),
    "survival": survival("syntactic"),
    "sinks": SINKS,
}


def judged(**tables: pd.DataFrame) -> pd.DataFrame:
    """The claims of the notebook, from its tables."""
    tables = TABLES | tables
    return claim_table(CLAIMS, {
        "P1": measures.divergence(tables["discrepancy"]),
        "P2": measures.share_of_mixing(tables["discrepancy"]),
        "P5": measures.delimiter_labels_left(tables["effective"]),
        "P6": measures.agreement_of_syntactic_labels(tables["survival"], tables["sinks"]),
    }).set_index("claim")  # fmt: skip


def test_tables_that_support_the_claims():
    table = judged()
    expected = {"P1": 0.35, "P2": 2.0, "P5": 0.9, "P6": 0.8}  # without layer 0; the least favourable unit
    assert table["estimate"].dropna().to_dict() == pytest.approx(expected)
    assert table.loc[["P1", "P2", "P6"], "verdict"].unique().tolist() == ["supported"]
    assert table.loc[["P1", "P2", "P5", "P6"], "units"].tolist() == [2] * 4
    assert table.loc[["P1", "P2", "P5", "P6"], "runs"].tolist() == [1] * 4
    # Delimiter heads vanish by one definition alone; a pattern has none.
    assert table.loc[["P4", "P5"], "verdict"].tolist() == ["not applicable", "mixed"]
    assert table.loc["P5", "smallest"] == 0


def test_tables_that_contradict_claims_do_not_support_them():
    weak = {"discrepancy": discrepancy((0.5, 0.05, 0.05), 1.8), "survival": survival("syntactic", kappa=0.2)}
    table = judged(**weak, effective=survival("delimiter", 5))
    verdicts = table.loc[["P1", "P2", "P5", "P6"], "verdict"].tolist()
    assert verdicts == ["not supported", "mixed", "not supported", "not supported"]


def test_what_the_sequences_cannot_show_is_not_applicable():
    table = judged(effective=survival("delimiter", n=5), survival=survival("local"))
    assert table.loc[["P5", "P6"], "verdict"].tolist() == ["not applicable"] * 2
    same = judged(sinks=SINKS.assign(changed=0.0))  # effective attention is attention
    assert pd.isna(same.loc["P6", "units"])
