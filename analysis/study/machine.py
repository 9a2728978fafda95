"""The cores that this process may use, and how many runs these and the memory allow: Make asks this script."""

import os
from collections.abc import Iterator
from pathlib import Path

GROUPS, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
RUN_BYTES = 2.5e9  # memory of a run


def cores() -> int:
    """The cores of the process's affinity, or fewer if its control groups have a quota (as in a container)."""
    affinity = getattr(os, "sched_getaffinity", None)
    limits = [len(affinity(0)) if affinity else os.cpu_count() or 1]
    for quota, period in (path.read_text().split() for path in _settings("cpu.max")):
        limits += [int(quota) / int(period)] if quota != "max" else []
    for path in _settings("cpu.cfs_quota_us"):
        quota, period = int(path.read_text()), int(path.with_name("cpu.cfs_period_us").read_text())
        limits += [quota / period] if quota > 0 else []
    return max(1, int(min(limits)))


def runs_at_once() -> int:
    """How many runs have a core and enough memory each."""
    limits = [cores() * RUN_BYTES]
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in (*_settings("memory.max"), *_settings("memory.limit_in_bytes")):
        limit = path.read_text().strip()
        limits += [int(limit)] if limit != "max" else []
    return max(1, int(min(limits) / RUN_BYTES))


def _settings(name: str) -> Iterator[Path]:
    """The files of a setting in the control groups of this process and in those around them, of both versions."""
    for line in MEMBERSHIP.read_text().splitlines() if MEMBERSHIP.exists() else ():
        _, controllers, group = line.split(":", 2)
        top = GROUPS / controllers
        place = top / group.strip("/")
        folders = (folder for folder in (place, *place.parents) if folder.is_relative_to(top))
        yield from (folder / name for folder in folders if (folder / name).exists())


if __name__ == "__main__":
    print(cores(), runs_at_once())
