"""The tables of docs/scale.md are what the benchmark's script makes of the committed measurements."""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analysis.encoders.models import load_encoder
from analysis.scale.loop import Settings, extract_shard
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.texts.corpora import open_corpus

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import scale  # noqa: E402

CPU = {
    "versions": "torch 2, commit 0123",
    "threads": 2,
    "results": {
        "minilm": {scale.RATE: 40.0},
        "bert-base": {
            scale.RATE: 5.0,
            "tokens per sequence": 64.0,
            "sieves": 86,
            "tokenise, sequences/s": 2000.0,
            "find word pairs, sequences/s": 4000.0,
            "build sieves, sequences/s": 1000.0,
        },
    },
}
CUDA = {"results": {"bert-base": {scale.RATE: 500.0, "tokens per sequence": 128.0}}}


def test_the_document_holds_what_the_committed_measurements_give():
    cpu = scale.load("extraction-cpu")
    if cpu is None:
        pytest.skip("benchmarks/results/extraction-cpu.json is missing: run make bench")
    shown = scale.DOCUMENT.read_text(encoding="utf-8").split("<!-- cost -->\n")[1].split("<!-- /cost -->")[0]
    assert shown.strip() == scale.section(cpu, scale.load("extraction-cuda")).strip()


def test_times_and_costs_follow_from_the_rates():
    table = scale.table(scale.rates(CPU, CUDA), cpu_price=0.1, gpu_price=2.0).set_index("sequences")
    million = table.loc["1e6"]
    assert million["1 CPU"] == "2.3 days"  # 1e6 / 5 a second
    assert million["MiniLM, 1 CPU"] == "6.9 h"
    assert million["1 GPU"] == "17 min"  # 500 of 128 tokens are 1000 of 64
    assert million["64 GPUs"] == "16 s"
    assert million["cost, CPU"] == "$11"  # 55.6 hours of two cores
    assert million["cost, GPU"] == "$0.56"
    assert million["maps, not stored"] == "9.4 TB"
    assert table.loc["1e3", "64 GPUs"] == "under 1 s"
    assert list(table.index) == [f"1e{power}" for power in range(3, 10)]


def test_a_gpu_without_measurement_is_called_an_estimate_bounded_by_what_an_actor_prepares():
    found = scale.rates(CPU, None)
    preparing, forward = (
        1 / 2000 + 1 / 4000 + 1 / 1000,
        (11e9 / 150e12, 11e9 / 25e12),
    )  # 22 GFLOP per 128 tokens
    assert found.gpu[1] == pytest.approx([1 / (preparing + forward[1]), 1 / (preparing + forward[0])])
    assert found.gpu[4].low == pytest.approx(1 / max(forward[1], (preparing + forward[1]) / 4))
    read = {"corpus": {"rows passed over, rows/s": 8.04e6}}
    text = scale.section(CPU | {"results": CPU["results"] | read}, None)
    assert "| 8,000,000 rows/s " in text
    assert "**estimate**, not measured" in text
    assert "the GPU is an estimate" in text
    assert "estimate" not in scale.section(CPU, CUDA)
    [hour] = scale.hour(scale.rates(CPU, CUDA), 2.0).to_dict("records")
    assert hour["sequences"] == "3,600,000"
    assert hour["tokens"] == "230,000,000"


def test_storage_is_that_of_the_files(tmp_path: Path):
    """Bytes of the columns before compression, ids left out."""
    path = tmp_path / "a.txt"
    path.write_text("one dog saw two dogs\n" * 200)
    encoder = load_encoder("tiny")
    heads = encoder.layers * encoder.heads
    for keep, expected in (
        ("scores", 200 * scale.score_bytes(len(PUBLISHED_ROLES), heads)),
        ("moments", scale.moment_bytes(len(PUBLISHED_ROLES), heads)),
    ):
        shard = extract_shard(
            open_corpus(path), tmp_path / keep, encoder, Settings(keep=keep), 0, progress=False
        )
        table = pq.read_table(shard)
        table = table.drop_columns({"scores": ["sequence"], "moments": ["role"]}[keep])
        bits = sum(-(-len(column) // 8) for column in table.columns)  # validity of each value
        assert table.nbytes == pytest.approx(expected, rel=0.05, abs=bits)


def test_a_damaged_or_missing_measurement_is_named(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(scale, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["scale.py"])
    assert scale.main() == 1
    assert "extraction-cpu.json is missing: run benchmarks/extraction.py" in capsys.readouterr().err
    (tmp_path / "extraction-cpu.json").write_text("{")
    assert scale.main() == 1
    assert "extraction-cpu.json is damaged" in capsys.readouterr().err
    (tmp_path / "extraction-cpu.json").write_text(json.dumps(CPU))
    document = tmp_path / "scale.md"
    document.write_text("before\n<!-- cost -->\nold\n<!-- /cost -->\nafter\n")
    monkeypatch.setattr(scale, "DOCUMENT", document)
    assert scale.main() == 0
    assert (
        document.read_text() == f"before\n<!-- cost -->\n{scale.section(CPU, None)}\n<!-- /cost -->\nafter\n"
    )
