"""A profile that leaves out notebooks judges what it measures, and says that the other claims are not run."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.files import ROOT
from analysis.study.partial_claims import NOTEBOOKS, PARTS, save_partial_claims
from analysis.study.profiles import not_run
from analysis.study.results import Results

PROFILE = "glue-mpnet"
COMMITTED = ROOT / "results" / "glue-minilm" / "tables"


@pytest.fixture
def tables(tmp_path: Path, monkeypatch) -> Path:
    """The tables of the profile, of which there are none yet."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    folder = tmp_path / PROFILE / "tables"
    folder.mkdir(parents=True)
    return folder


def saved(folder: Path, name: str) -> pd.DataFrame:
    """The verdicts and estimates of a table of claims."""
    table = pd.read_csv(folder / f"{name}.csv").set_index("claim")
    return table[["verdict", "reason", "estimate"]]


def test_claims_of_notebooks_that_are_left_out_are_not_run(tables: Path):
    assert {*NOTEBOOKS.values()} <= {*not_run(PROFILE)}
    results = Results(PROFILE)
    save_partial_claims(results)
    for name, (claims, *_) in PARTS.items():
        table = saved(results.tables, name)
        assert [*table.index] == [claim.id for claim in claims]
        assert (table["verdict"] == "not applicable").all()
        assert (table["reason"] == "not run").all()


@pytest.mark.parametrize(
    ("name", "needed", "measured"),
    [
        ("claims-michel2019", ["michel_tolerated", "michel_transfer"], ["M1", "M3", "M4"]),
        ("claims-niven2019", ["niven_cues"], ["N4"]),
    ],
)
def test_claims_of_notebooks_that_ran_are_judged(tables: Path, name: str, needed: list, measured: list):
    """From the tables of the notebooks that ran, here those of another profile."""
    for table in needed:
        shutil.copy(COMMITTED / f"{table}.csv", tables)
    results = Results(PROFILE)
    save_partial_claims(results)
    table = saved(results.tables, name)
    assert np.isfinite(table.loc[measured, "estimate"]).all()
    assert not (table.loc[measured, "verdict"] == "not applicable").any()
    assert (table.drop(measured)["reason"] == "not run").all()


def test_a_profile_that_runs_all_saves_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    save_partial_claims(Results("glue-minilm"))
    assert not [*tmp_path.rglob("claims-*.csv")]
