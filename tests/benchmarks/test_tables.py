"""The committed tables are what the benchmarks make of the committed measurements."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import scale, timing  # noqa: E402

BERT = {scale.RATE: 5.0, "tokens per sequence": 64.0, "sieves": 86}
CPU = {"versions": "torch 2", "threads": 2, "results": {"minilm": {scale.RATE: 40.0}, "bert-base": BERT}}
CUDA = {"results": {"bert-base": {scale.RATE: 500.0, "tokens per sequence": 128.0}}}


@pytest.mark.parametrize("path", sorted(timing.RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_committed_table_holds_what_was_measured(path: Path):
    result = json.loads(path.read_text(encoding="utf-8"))
    assert path.with_suffix(".md").read_text(encoding="utf-8") == timing.table(result)


def test_the_document_holds_what_the_committed_measurements_give():
    cpu = scale.load("extraction-cpu")
    if cpu is None:
        pytest.skip("benchmarks/results/extraction-cpu.json is missing: run make bench")
    document = scale.DOCUMENT.read_text(encoding="utf-8")
    assert f"<!-- cost -->\n{scale.section(cpu, scale.load('extraction-cuda')).strip()}\n" in document


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
