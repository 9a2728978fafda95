"""What the benchmarks measured stands beside it as tables, and competitors are timed alike."""

import json
import sys
import time
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


def test_medians_leave_out_the_first_round_and_take_turns():
    order: list[str] = []

    def slow_at_first() -> None:
        order.append("slow")
        time.sleep(0.2 if order.count("slow") == 1 else 0.01)

    result = timing.medians({"slow": slow_at_first, "none": lambda: order.append("none")}, repeats=3)
    assert order == ["slow", "none"] * 4
    assert 0.01 <= result["slow"] < 0.1
    assert result["none"] < result["slow"]


def test_speeds_compare_with_the_reference_right_before():
    """A machine that becomes slower and slower does not change the ratios."""
    order: list[str] = []

    def waits(name: str, share: float):
        def run() -> None:
            order.append(name)
            time.sleep(0.004 * share * (1 + len(order) / 4))

        return run

    result = timing.speeds(
        waits("bare", 2), {"half": waits("half", 4), "twice": waits("twice", 1)}, repeats=3
    )
    assert order == ["bare", "half", "bare", "twice"] * 4
    assert result["half"] == pytest.approx(0.5, rel=0.3)
    assert result["twice"] == pytest.approx(2, rel=0.3)
