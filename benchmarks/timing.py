"""Timing for the benchmarks: competitors take turns, medians count, results go to a table and a JSON file."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from analysis.store import versions, write_text

RESULTS = Path(__file__).resolve().parent / "results"

Values = Mapping[str, float]


def medians(
    competitors: Mapping[str, Callable[[], object]], repeats: int, finish: Callable[[], object] = lambda: None
) -> dict[str, float]:
    """Median seconds of each competitor over rounds in which all take turns; the first round warms up.

    A machine that slows down slows them alike. `finish` waits for a device that works asynchronously.
    """
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(repeats + 1):
        for name, run in competitors.items():
            start = time.perf_counter()
            run()
            finish()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values[1:]) for name, values in seconds.items()}


def report(name: str, settings: Mapping[str, object], results: Mapping[str, Values]) -> None:
    """Prints a table and writes it with the machine, the versions and the settings to results/<name>.json."""
    about = {"machine": platform.machine(), "cores": os.cpu_count(), "versions": versions(), **settings}
    write_text(RESULTS / f"{name}.json", json.dumps({**about, "results": results}, indent=2) + "\n")
    for subject, values in results.items():
        for what, value in values.items():
            print(f"{subject:32} {what:58} {value:12.2f}")
