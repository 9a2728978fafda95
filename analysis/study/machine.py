"""The cores that this process may use, and how many runs these and the memory allow: Make asks this script."""

import os
from pathlib import Path

GROUP = Path("/sys/fs/cgroup")  # in a container, its own control group
RUN_BYTES = 2.5e9  # memory of a run


def cores() -> int:
    """The cores of the process's affinity, or fewer if its control group has a quota (as in a container)."""
    number = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _limit("cpu.max") or _limit("cpu/cpu.cfs_quota_us") + _limit("cpu/cpu.cfs_period_us")
    if len(quota) == 2 and quota[0] > 0:  # of CPU time in a period, both in microseconds
        number = min(number, quota[0] // quota[1])
    return max(1, number)


def runs_at_once() -> int:
    """How many runs have a core and enough memory each."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [memory, *_limit("memory.max"), *_limit("memory/memory.limit_in_bytes")]
    return max(1, min(cores(), int(min(limits) / RUN_BYTES)))


def _limit(name: str) -> list[int]:
    """The numbers in a setting of the control group, of either version; none without a limit."""
    path = GROUP / name
    words = path.read_text().split() if path.exists() else ["max"]
    return [] if "max" in words else [int(word) for word in words]


if __name__ == "__main__":
    print(cores(), runs_at_once())
