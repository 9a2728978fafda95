import os
from pathlib import Path

import pytest

from analysis.study import machine


@pytest.mark.parametrize(
    ("files", "cores", "runs"),
    [
        ({}, 8, 6),
        ({"cpu.max": "max 100000", "memory.max": "max"}, 8, 6),
        ({"cpu.max": "350000 100000"}, 3, 3),
        ({"cpu.max": "50000 100000"}, 1, 1),
        ({"memory.max": "6000000000"}, 8, 2),
        ({"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2, 2),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8, 6),
        ({"memory/memory.limit_in_bytes": "1000000000"}, 8, 1),
    ],
)
def test_limits(tmp_path: Path, monkeypatch, files: dict[str, str], cores: int, runs: int):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(machine, "GROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(8)}, raising=False)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 2**12, "SC_PHYS_PAGES": 2**22}.get)  # 17 GB
    assert (machine.cores(), machine.runs_at_once()) == (cores, runs)
