"""Role tables, other head tables and claims as the page keeps them."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from analysis.explorer.payload import claim_tables, head_tables, role_tables, scores_of
from analysis.study import paper_titles
from analysis.study.folders import Folders
from analysis.study.results import Results

SHAPE = LAYERS, HEADS = 3, 4


def test_scores_stand_by_layer_and_head(tables):
    scores = scores_of(tables, SHAPE)
    entry = scores["mrpc"]["finetuned"]["nsubj"]
    for row in tables.query("task == 'mrpc' and state == 'finetuned' and role == 'nsubj'").itertuples():
        place = row.layer * HEADS + row.head
        assert entry["mean"][place] == pytest.approx(row.mean, rel=1e-3)
        assert entry["n"][place] == row.n
        assert entry["published"][place] == str(int(row.assigned))
        assert entry["audited"][place] == str(int(row.assigned_audited))
    assert "status" not in entry


def test_untestable_and_absent_are_not_the_same(tables):
    entry = scores_of(tables, SHAPE)["sst-2"]["pretrained"]["block"]
    assert entry["published"] == "?" * 12
    assert entry["status"][0].startswith("untestable: ")
    assert entry["mean"] == [None] * 12
    assert entry["n"] == 0
    part = tables[(tables["layer"] > 0) & (tables["role"] == "local")]
    assert scores_of(part, SHAPE)["mrpc"]["pretrained"]["local"]["published"].startswith("----")


def heads(**columns) -> pd.DataFrame:
    return pd.DataFrame({"layer": [0, 1], "head": [1, 2], **columns})


def test_every_table_of_heads_is_taken(tables):
    given = {
        "roles-mrpc-pretrained": tables,
        "importance-mrpc": heads(drop=[0.1, 0.2]),
        "importance-sst-2": heads(drop=[0.3, 0.4]),
        "parts-mrpc-finetuned": heads(part=["x", None]),
        "pairs": heads(other_layer=[1, 1], other_head=[0, 0]),
        "layers": pd.DataFrame({"layer": [0]}),
        "best": pd.DataFrame({"layer": [np.nan, 1], "head": [np.nan, 2], "relation": ["a", "b"]}),
    }
    found = head_tables(given, ["mrpc", "sst-2"], ["pretrained", "finetuned"])
    assert found.keys() == {"importance", "parts", "best"}
    assert found["importance"]["columns"] == ["task", "layer", "head", "drop"]
    assert found["importance"]["rows"][2] == ["sst-2", 0, 1, 0.3]
    assert found["parts"]["rows"] == [["mrpc", "finetuned", 0, 1, "x"], ["mrpc", "finetuned", 1, 2, None]]
    assert found["best"]["rows"] == [[1, 2, "b"]]


def test_role_tables_of_other_maps_are_tables_of_heads(tables):
    one = tables.query("task == 'mrpc' and state == 'finetuned'").drop(columns=["task", "state"])
    given = {"roles-mrpc-finetuned": one, "roles-attribution-mrpc-finetuned": one.assign(skewness=1.0)}
    states = ["pretrained", "finetuned"]
    assert len(role_tables(given, ["mrpc"], states)) == len(one)
    found = head_tables(given, ["mrpc"], states)
    assert found.keys() == {"roles-attribution"}
    columns = found["roles-attribution"]["columns"]
    assert {"role", "mean", "assigned", "assigned_audited"} <= {*columns}
    assert "skewness" not in columns
    assert len(found["roles-attribution"]["rows"]) == len(one)


def test_claims_are_grouped_by_paper():
    claims = pd.DataFrame({"claim": ["C1"]})
    given = {
        "claims_seeds": claims,
        "claims": claims,
        "claims-niven2019": claims,
        "claims_seeds-clark2019": claims,
        "claims_x": pd.DataFrame({"a": [1]}),
        "claimsmade": claims,
        "heads": heads(),
    }
    papers = {"pande2021": "The Heads Hypothesis", "clark2019": "What Does BERT Look At?", "none2020": "None"}
    found = claim_tables(given, papers)
    assert [(group["title"], [*group["tables"]]) for group in found] == [
        ("The Heads Hypothesis", ["claims_seeds", "claims"]),
        ("What Does BERT Look At?", ["claims_seeds"]),
        ("niven2019", ["claims"]),
    ]
    assert found[0]["tables"]["claims"] == {"columns": ["claim"], "rows": [["C1"]]}
    assert len(claim_tables(given)) == 3


@pytest.mark.parametrize("profile", ["glue-minilm", "offline"])
def test_committed_page_shows_the_committed_claims(profile: str, monkeypatch):
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    folder = Folders(profile).folder
    page = (folder / "explorer.html").read_text(encoding="utf-8")
    shown = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    results = Results(profile)  # it takes the marks of made-up texts away
    tables = {path.stem: results.load_table(path.stem) for path in folder.glob("tables/claims*.csv")}
    there = {group["title"]: group["tables"] for group in claim_tables(tables, paper_titles())}
    assert {group["title"]: group["tables"] for group in json.loads(shown[1])["claims"]} == there
