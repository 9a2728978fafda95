"""Cores and memory are those that the process may use, not those of the machine."""

import os
from pathlib import Path

import pytest

from analysis.study import machine

V1 = "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n"


@pytest.mark.parametrize(
    ("membership", "files", "cores", "runs"),
    [
        (None, {}, 8, 6),
        ("0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}, 8, 6),
        ("0::/a/b\n", {"a/cpu.max": "350000 100000", "a/b/cpu.max": "max 100000"}, 3, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "50000 100000"}, 1, 1),
        ("0::/a/b\n", {"a/memory.max": "6000000000"}, 8, 2),
        (V1, {"cpu,cpuacct/cpu.cfs_quota_us": "200000", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, 2, 2),
        (V1, {"cpu,cpuacct/cpu.cfs_quota_us": "-1", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, 8, 6),
        (V1, {"memory/docker/abc/memory.limit_in_bytes": "1000000000"}, 8, 1),
    ],
)
def test_limits(tmp_path: Path, monkeypatch, membership: str | None, files: dict, cores: int, runs: int):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    if membership:
        (tmp_path / "membership").write_text(membership)
    monkeypatch.setattr(machine, "GROUPS", tmp_path)
    monkeypatch.setattr(machine, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(8)}, raising=False)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 2**12, "SC_PHYS_PAGES": 2**22}.get)  # 17 GB
    assert (machine.cores(), machine.runs_at_once()) == (cores, runs)
