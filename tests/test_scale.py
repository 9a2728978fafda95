"""A corpus scored on Ray gives the role table of one process, and a killed run resumes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from studies import error_of

from analysis.encoders.models import load_encoder
from analysis.files import ROOT
from analysis.scale import main, save_with_ids, scores_table, texts_with_ids
from analysis.scores.extraction import extract
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.statistics.significance import published_table
from analysis.texts.examples import Example

pytestmark = pytest.mark.slow
WORDS = "the old dog saw a red cat , and it ran away from there".split()
TEXTS = [" ".join((WORDS * 9)[start : start + 5 + start % 60]) for start in range(60)]
NUMBERED = (
    '{"id": 12, "text": "2026-11-27"}\n{"id": "2026-11-27", "text": "12"}\n{"id": "x", "text": "NA"}\n\n'
)
IDENTIFIED = [("12", "2026-11-27"), ("2026-11-27", "12"), ("x", "NA")]
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


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.jsonl", NUMBERED.encode(), IDENTIFIED),
        ("a.jsonl", b"\xef\xbb\xbf" + NUMBERED.encode(), IDENTIFIED),
        (
            "a.txt",
            b"\xef\xbb\xbf2026-11-27\r\n\r\n12\n",
            [("a.txt, row 0", "2026-11-27"), ("a.txt, row 1", "12")],
        ),
        ("a.jsonl", json.dumps({"text": "ha " * 700_000}).encode(), [("a.jsonl, row 0", "ha " * 700_000)]),
    ],
)
def test_texts_and_ids_are_the_strings_of_the_file(tmp_path: Path, name: str, content: bytes, texts: list):
    """No dates, numbers or missing values, and no byte order mark; a row may be long."""
    (tmp_path / name).write_bytes(content)
    (tmp_path / "texts").mkdir()
    save_with_ids({name: tmp_path / name}, ["text"], tmp_path / "texts")
    rows = pyarrow.dataset.dataset(tmp_path / "texts").to_table().to_pylist()
    assert [(row["id"], row["text"]) for row in rows] == texts


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_strings_of_a_parquet_file(tmp_path: Path, kind: pa.DataType):
    table = pa.table({"id": pa.array([7, 8]), "text": pa.array(["a", "b"]).cast(kind)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    rows = texts_with_ids("a.parquet", tmp_path / "a.parquet", ["text"])
    assert [*rows] == [{"id": "7", "text": "a"}, {"id": "8", "text": "b"}]


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

    path = corpus / "a/c.jsonl"
    content = path.read_text()
    changed = content.replace("It ran .", "It sat .", 1)
    for text, options in ((content, ["--encoder", "tiny"]), (changed, [])):  # of the same size
        path.write_text(text)
        capsys.readouterr()
        assert main([*arguments, *options]) == 1
        assert capsys.readouterr().err.endswith("run.json is of another run: name another folder\n")
    path.write_text(content)
    first, record = min(files), json.loads((output / "run.json").read_text())
    saved = first.read_bytes()
    first.write_bytes(saved[:-9])
    assert "are damaged: " in error_of(scores_table, output, record)
    first.unlink()
    assert f" of {len(ids)} texts: delete it, and run again" in error_of(scores_table, output, record)
