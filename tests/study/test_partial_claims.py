"""A profile that leaves out notebooks judges what it measures, and says that the other claims are not run."""

from pathlib import Path

import pandas as pd
import pytest

from analysis.study.partial_claims import PARTS, save_partial_claims
from analysis.study.profiles import not_run
from analysis.study.results import Results

PROFILE = "glue-mpnet"


@pytest.fixture
def tables(tmp_path: Path, monkeypatch) -> Path:
    """The tables of the profile, of which there are none yet."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    folder = tmp_path / PROFILE / "tables"
    folder.mkdir(parents=True)
    return folder


def saved(folder: Path, name: str) -> pd.DataFrame:
    table = pd.read_csv(folder / f"{name}.csv").set_index("claim")
    return table[["verdict", "reason", "estimate"]]


def test_claims_of_notebooks_that_are_left_out_are_not_run(tables: Path):
    assert {notebook for notebook, *_ in PARTS.values()} <= {*not_run(PROFILE)}
    results = Results(PROFILE)
    save_partial_claims(results)
    for name, (_, claims, *_) in PARTS.items():
        table = saved(results.tables, name)
        assert [*table.index] == [claim.id for claim in claims]
        assert (table["verdict"] == "not applicable").all()
        assert (table["reason"] == "not run").all()


HARMLESS = pd.DataFrame({
    "unit": ["head", "layer"], "task": "mrpc", "value": [0.9, 0.8], "low": [0.8, 0.7], "high": [1.0, 0.9],
    "runs": 3, "shown": [0.5, 0.4],
})  # fmt: skip
TRANSFER = pd.DataFrame({
    "data_a": ["mrpc", "mrpc, one half"], "data_b": ["qqp", "mrpc, the other half"], "metric": "auc",
    "correlation": "Spearman", "value": [0.2, 0.5], "low": [0.1, 0.4], "high": [0.3, 0.6],
})  # fmt: skip
CUES = pd.DataFrame({
    "rule": "expanded", "cue": "not", "split": ["train", "test"], "productivity": [0.7, 0.6], "value": [0.7, 0.6],
    "low": [0.6, 0.5], "high": [0.8, 0.7],
})  # fmt: skip


@pytest.mark.parametrize(
    ("name", "needed", "estimates"),
    [
        ("claims-michel2019", {"michel_tolerated": HARMLESS, "michel_transfer": TRANSFER},
         {"M1": 0.9, "M3": 0.8, "M4": 0.2}),
        ("claims-niven2019", {"niven_cues": CUES}, {"N4": 0.65}),
    ],
)  # fmt: skip
def test_claims_of_notebooks_that_ran_are_judged(tables: Path, name: str, needed: dict, estimates: dict):
    for table, rows in needed.items():
        rows.to_csv(tables / f"{table}.csv", index=False)
    results = Results(PROFILE)
    save_partial_claims(results)
    table = saved(results.tables, name)
    assert table.loc[[*estimates], "estimate"].to_dict() == pytest.approx(estimates)
    assert not (table.loc[[*estimates], "verdict"] == "not applicable").any()
    assert (table.drop([*estimates])["reason"] == "not run").all()


def test_a_profile_that_runs_all_saves_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    save_partial_claims(Results("glue-minilm"))
    assert not [*tmp_path.rglob("claims-*.csv")]
