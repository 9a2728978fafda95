"""Claims are saved where they are measured, and judged from the units that are saved."""

import json
from pathlib import Path

import pytest

from analysis.statistics.claims import frame, not_applicable, with_control
from analysis.study.claims import judged, known_claims
from analysis.study.results import Results
from analysis.study.runs import VARIABLE, Run

CLAIMS = known_claims()["michel2019"]
UNITS = frame({"mrpc": (2 / 3, 0.6, 0.7), "qqp": (0.9, 0.8, 1.0)}, runs=3)


@pytest.fixture
def open_run(tmp_path: Path, monkeypatch):
    """Opens the results of a run of a profile, as its notebook does."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))

    def opened(notebook: str, profile: str = "glue-mpnet") -> Results:
        monkeypatch.setenv(VARIABLE, json.dumps(Run(notebook, {"profile": profile})._asdict()))
        return Results(profile)

    return opened


def test_units_of_several_notebooks_are_judged_together_and_the_others_were_not_run(open_run):
    first = open_run("06_michel_ablation")
    first.save_claim("M1", UNITS.head(1))
    first.save_claim("M1", with_control(UNITS, {"mrpc": (1 / 3, 0.3, 0.4)}))  # the cell ran again
    first.save_claim("M4", not_applicable("no two sets"))
    second = open_run("06_michel_pruning")
    second.save_claim("M5", frame({"": (0.5, 0.5, 0.5)}))
    table = judged(second, CLAIMS).set_index("claim")
    assert [*table.index] == [claim.id for claim in CLAIMS]
    assert table.loc["M1", ["verdict", "units", "runs"]].tolist() == ["supported", 2, 3]
    assert table.loc["M1", "reference"] == 0.333333
    second.save_table(judged(second, CLAIMS), "claims-michel2019")  # as 99_summary does
    columns = ["claim", "estimate", "reference"]
    assert second.load_table("claims-michel2019")[columns].equals(table.reset_index()[columns])
    assert table.loc["M1", "estimate"] == 0.783333
    assert table.loc["M4", "reason"] == "no two sets"
    assert table.loc["M5", ["verdict", "reason"]].tolist() == ["supported", "no spread"]
    assert table.loc[["M3", "M6", "M7", "M8"], "reason"].eq("not run").all()
    assert table["published"].notna().all()
    units = first.load_table("units-06_michel_ablation")
    assert {*units["claim"]} == {"M1", "M4"}
    assert {2 / 3, 0.9} <= {*units["value"]}  # all digits are saved


def test_claims_on_texts_that_are_made_up_have_no_published_values(open_run):
    results = open_run("06_michel_ablation", "offline")
    results.save_claim("M1", UNITS.assign(released=0.5))
    assert judged(results, CLAIMS)[["published", "published_estimate"]].isna().all(axis=None)
