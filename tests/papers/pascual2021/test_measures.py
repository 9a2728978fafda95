from itertools import product

import pandas as pd
import pytest

from analysis.papers.pascual2021.measures import CLAIMS, JSD, MIXING, SHARE, VALUES, WHOLE, measures
from analysis.statistics.claims import claim_table

RUNS = [("mrpc", "pretrained"), ("mrpc", "finetuned"), ("qqp", "finetuned")]
MAPS = ("attention", "effective", "effective_sum", "local_attribution", "attribution")


def ends(value: float, half: float = 0.01) -> dict[str, float]:
    return {"value": value, "low": value - half, "high": value + half}


def discrepancy(divergence=(0.05, 0.3, 0.4), share: float = 0.8) -> pd.DataFrame:
    """A table of discrepancy with these values in every run; without special tokens half of them."""
    rows = []
    for (task, state), (tokens, part) in product(RUNS, (("all", 1), ("text", 0.5))):
        run = {"task": task, "state": state, "tokens": tokens, "n": 20, "pair": WHOLE}
        for layer, value in enumerate(divergence):
            at = run | {"layer": layer, "measure": JSD}
            rows.append(at | {"measure": SHARE} | ends(part * share))
            rows += [at | {"pair": pair} | ends(part * value) for pair in (WHOLE, VALUES, MIXING)]
            rows.append(at | {"head": 0} | ends(0.0))  # of one head: left out
    return pd.DataFrame(rows)


def persistence(weakest: int) -> pd.DataFrame:
    """Every layer has `weakest` heads or more with cls; only layer 0 has heads with sep."""
    patterns = [("sep", 0, 0, 5, 1), ("cls", weakest, weakest, weakest + 1, weakest + 3)]
    return pd.DataFrame(
        [(*run, layer, *pattern) for run in RUNS for layer in range(3) for pattern in patterns],
        columns="task state layer pattern weakest low high attribution".split(),
    )


def survival(role: str, heads: int = 1, kappa: float = 0.8, n: int = 50) -> pd.DataFrame:
    """10 heads have the role on attention, `heads` on effective attention, 9 where rows keep their sums."""
    counts = dict(zip(MAPS, (10, heads, 9, 5, 5), strict=True))
    return pd.DataFrame(
        [{"task": task, "state": state, "role": role, "map": name, "heads": count, "kappa": kappa, "low": kappa - 0.05,
          "high": kappa + 0.05, "heads_low": count - 0.5, "heads_high": count + 0.5, "n": n}
         for task, state in RUNS for name, count in counts.items()]
    )  # fmt: skip


SINKS = pd.DataFrame(
    [{"task": task, "state": state, "map": "effective", "changed": 0.5} for task, state in RUNS]
)
TABLES = {
    "discrepancy": discrepancy(),
    "patterns": pd.DataFrame({"head": range(12)}),
    "persistence": persistence(3),
    "effective": survival("delimiter", heads=0),
    "survival": survival("syntactic"),
    "sinks": SINKS,
}


def judged(**tables: pd.DataFrame) -> pd.DataFrame:
    return claim_table(CLAIMS, measures(TABLES | tables)).set_index("claim")


def test_every_claim_is_supported_by_tables_that_support_it():
    table = judged()
    expected = {"P1": 0.35, "P2": 0.8, "P4": 0.25, "P5": 0.0, "P6": 0.8}  # layer 0 does not count
    assert table["estimate"].to_dict() == pytest.approx(expected)
    assert table["verdict"].unique().tolist() == ["supported"]
    assert table["units"].tolist() == [2] * 5
    assert table.loc[["P4", "P5", "P6"], "control"].tolist() == pytest.approx([0, 0.9, 0])


def test_tables_that_contradict_claims_do_not_support_them():
    weak = {"discrepancy": discrepancy((0.5, 0.05, 0.05), 0.2), "persistence": persistence(0)}
    table = judged(**weak, effective=survival("delimiter", 5), survival=survival("syntactic", kappa=0.2))
    assert table.loc[["P1", "P2", "P5", "P6"], "verdict"].tolist() == ["not supported"] * 4
    assert table.loc["P4", "estimate"] == 0


def test_what_the_sequences_cannot_show_is_not_applicable():
    few = survival("delimiter", n=5)
    table = judged(effective=few, survival=survival("local"), persistence=persistence(1).head(0))
    assert table.loc[["P4", "P5", "P6"], "verdict"].tolist() == ["not applicable"] * 3
    same = judged(sinks=SINKS.assign(changed=0.0))  # effective attention is attention
    assert pd.isna(same.loc["P6", "units"])
