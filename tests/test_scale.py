"""A corpus scored on Ray gives the role table of one process, and a killed run resumes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pandas as pd
import pyarrow.dataset
import pytest

from analysis.encoders.models import load_encoder
from analysis.files import ROOT
from analysis.scale import main
from analysis.scores.extraction import extract
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.statistics.significance import published_table
from analysis.texts.examples import Example

WORDS = "the old dog saw a red cat , and it ran away from there".split()
TEXTS = [" ".join((WORDS * 9)[start : start + 5 + start % 60]) for start in range(60)]
SMALL_BLOCKS = "import sys, analysis.scale as scale; scale.BLOCK = 4; sys.exit(scale.main(sys.argv[1:]))"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with two files of one name, of pairs of texts."""
    for name, texts in (("a", TEXTS[:25]), ("b", TEXTS[25:])):
        folder = tmp_path / "corpus" / name
        folder.mkdir(parents=True)
        rows = [{"one": text, "two": "It ran ."} for text in texts]
        (folder / "c.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "corpus"


def scored_ids(output: Path) -> list[str]:
    return sorted(pyarrow.dataset.dataset(output / "scores").to_table(columns=["id"])["id"].to_pylist())


def test_killed_run_resumes_and_gives_the_table_of_one_process(
    corpus: Path, tmp_path: Path, monkeypatch, capsys
):
    """Every text has one row of scores; a third command scores nothing, and another encoder is refused.

    Paths are relative to the folder of the shell.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    output = Path("output")
    arguments = [corpus.name, str(output), "--columns", "one", "two"]
    command = [sys.executable, "-c", SMALL_BLOCKS, *arguments]
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    while running.poll() is None and len([*output.glob("scores/*.parquet")]) < 2:
        sleep(0.05)
    assert running.poll() is None, (tmp_path / "log").read_text()[-2000:]
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    ids = sorted(f"{name}/c.jsonl, row {row}" for name, rows in (("a", 25), ("b", 35)) for row in range(rows))
    assert 0 < len(scored_ids(output)) < len(ids)

    assert main(arguments) == 0
    assert scored_ids(output) == ids
    files = {path: path.stat().st_mtime_ns for path in output.glob("scores/*")}
    assert main(arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in output.glob("scores/*")} == files

    examples = [Example(str(number), text, "It ran .") for number, text in enumerate(TEXTS)]
    relations = {example.id: () for example in examples}
    whole = extract(load_encoder("minilm"), examples, relations, PUBLISHED_ROLES, progress=False)
    expected = published_table(whole)
    table = pd.read_csv(output / "roles.csv", keep_default_na=False, na_values=[""])
    table["assigned"] = table["assigned"].astype("boolean")
    columns = "layer head role n mean p assigned".split()  # t and sd lose digits where scores hardly vary
    pd.testing.assert_frame_equal(table[columns], expected[columns], rtol=1e-6, atol=1e-6, check_dtype=False)

    capsys.readouterr()
    assert main([*arguments, "--encoder", "tiny"]) == 1
    assert capsys.readouterr().err.endswith("run.json is of another run: name another folder\n")
