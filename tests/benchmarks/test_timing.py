"""What the benchmarks measured stands beside it as tables."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import timing  # noqa: E402

REPORTS = sorted(timing.RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_committed_table_holds_what_was_measured(path: Path):
    result = json.loads(path.read_text(encoding="utf-8"))
    assert path.with_suffix(".md").read_text(encoding="utf-8") == timing.table(result)
