"""What the benchmarks measured stands beside it as tables, and competitors are timed alike."""

import json
import sys
from functools import partial
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


def test_speeds_compare_with_the_reference_right_before():
    """A machine that is slower in every round does not change the ratios."""
    seconds, order = [0.0], []

    def run(name: str, share: float) -> None:
        seconds.append(seconds[-1] + share * 2 ** (len(order) // 4))
        order.append(name)

    competitors = {"half": partial(run, "half", 2), "twice": partial(run, "twice", 0.5)}
    result = timing.speeds(partial(run, "bare", 1), competitors, repeats=3, clock=lambda: seconds[-1])
    assert order == ["bare", "half", "bare", "twice"] * 4
    assert result == {"half": 0.5, "twice": 2}
