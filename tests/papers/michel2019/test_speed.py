from pathlib import Path

import pytest
from studies import error_of

from analysis.papers.michel2019 import speed
from analysis.papers.michel2019.speed import cached_speed_table, most_speedup, speed_table


def test_bound_is_the_share_of_multiplications():
    """Half of (4 + 2T/d) of (12 + 2T/d)."""
    whole, attention = 12 + 256 / 384, 4 + 256 / 384
    assert most_speedup(384, 0.5) == pytest.approx(whole / (whole - attention / 2))


def test_speed_table_and_its_file(tmp_path: Path):
    table = cached_speed_table(tmp_path, ["tiny"], [1, 2], 2)
    assert table["heads"].tolist() == [6, 6]
    assert ((table["low"] <= table["speedup"]) & (table["speedup"] <= table["high"])).all()
    assert cached_speed_table(tmp_path, ["tiny"], [1, 2], 2).equals(table)
    assert "at least 2" in error_of(speed_table, ["tiny"], [1], 1)


def test_speed_up_is_the_geometric_mean_of_whole_over_pruned(monkeypatch):
    """Models that advance a clock: in the two rounds the whole one takes once and four times as long."""
    clock = [0.0]

    def model(*times: float):
        costs = iter((0.0, *times))  # the first pass does not count

        def run(input_ids):
            clock[0] += next(costs)

        return run

    monkeypatch.setattr(speed.time, "process_time", lambda: clock[0])
    ratios = speed._ratios([model(3, 8), model(3, 2)], 1, 2)
    assert ratios.tolist() == [1, 4]
    monkeypatch.setattr(speed, "_ratios", lambda *_: ratios)
    row = speed_table(["tiny"], [1], 2).iloc[0]
    assert (row["speedup"], row["low"] * row["high"]) == pytest.approx((2, 4))
