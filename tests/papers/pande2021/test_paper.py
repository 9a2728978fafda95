"""The first paper in the profile `paper`, for one task; a Hub on the loopback address serves its encoder and data.

The encoder has BERT-base's 12 layers of 12 heads, so that the comparison with the released maps runs too; spaCy's
pipeline is an empty one made by the test, whose parses contain no relations.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import spacy
from hub import HubServer, client_environment, write_glue, write_tiny_bert
from studies import copy_parts

from analysis.files import ROOT

ENCODER = "test/bert-of-144-heads"
SMALL = """
03_test_calibration: {runs: 500, families: 2, simulated_n: [20, 30]}
03_test_sensitivity: {sizes: [10, 20], draws: 4, control_n: 10}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the profile, with the encoder's, the parser's and the tasks' names replaced."""
    folder = tmp_path_factory.mktemp("paper")
    write_tiny_bert(folder / "served" / "models" / ENCODER, layers=12, heads=12)
    write_glue(folder / "served" / "datasets" / "nyu-mll" / "glue")
    spacy.blank("en").to_disk(folder / "pipeline")
    copy_parts(folder / "study", "analysis", "data", "notebooks", "profiles")
    shutil.copy2(ROOT / "Makefile", folder / "study")
    profile = folder / "study" / "profiles" / "paper.yaml"
    text, encoders = re.subn("encoder: bert-base-uncased", f"encoder: {ENCODER}", profile.read_text())
    text, parsers = re.subn("parser: en_core_web_sm", f"parser: {folder / 'pipeline'}\n  tasks: [mrpc]", text)
    text, runs = re.subn(r"(?m)^  seeds: \[.*\]", "  seeds: [0, 1]", text)
    assert encoders == parsers == runs == 1
    text, common = re.subn(r"(?m)^common:$", "common:\n  resamples: 99\n  permutations: 99", text)
    text, drawn = re.subn("04_verdicts:", "04_verdicts:\n  replicates: 99", text)
    assert common == drawn == 1
    profile.write_text(text + SMALL)
    with HubServer(folder / "served") as endpoint:
        environment = client_environment(endpoint, folder / "home")
        environment.pop("PYTHONPATH", None)  # it would name another package
        variables = [f"PYTHON={sys.executable}", f"RESULTS_DIR={folder / 'results'}"]
        done = subprocess.run(
            ["make", "reproduce", "PROFILE=paper", "PAPERS=pande2021", *variables],
            cwd=folder / "study", env=environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "results" / "paper"


def test_every_head_of_both_states_is_tested(results: Path):
    for state in ("pretrained", "finetuned"):
        table = pd.read_csv(results / "tables" / f"roles-mrpc-{state}.csv")
        assert len(table) == 10 * 144
        seen = table.groupby("role")["n"].max()
        assert (seen[["local", "delimiter", "block", "cls", "sep"]] == 20).all()
        assert (seen[["syntactic", "nsubj", "dobj", "amod", "advmod"]] == 0).all()


def test_mean_scores_are_compared_with_the_released_maps(results: Path):
    maps = pd.read_csv(results / "tables" / "published.csv")
    assert set(maps["state"]) == {"pretrained", "finetuned"}
    assert {"local", "cls", "sep", "delimiter", "block"} <= set(maps["role"])
    assert maps["correlation"].between(-1, 1).all()
    assert set(maps.loc[maps["layers"] == "0-5", "layer"]) <= set(range(6))


def test_claims_about_relations_are_untestable_without_relations(results: Path):
    claims = pd.read_csv(results / "tables" / "claims.csv").set_index("claim")["verdict"]
    assert claims.filter(like="C3:").tolist() == ["untestable"]
    assert claims.filter(like="C2a:").isin(["holds", "does not hold", "undecided"]).all()
