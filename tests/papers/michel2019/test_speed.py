from pathlib import Path

import pytest
from studies import error_of

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
