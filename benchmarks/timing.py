"""Timing for the benchmarks: competitors take turns; medians go to a table and a JSON file."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from analysis.files import versions, write_text

RESULTS = Path(__file__).resolve().parent / "results"

Values = Mapping[str, float]


def medians(
    competitors: Mapping[str, Callable[[], object]],
    repeats: int,
    finish: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each competitor over rounds in which all take turns; the first round warms up.

    If the machine slows down, it slows all competitors alike. `finish` waits for a device that works asynchronously;
    `clock` as in `speeds`.
    """
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(repeats + 1):
        for name, run in competitors.items():
            start = clock()
            run()
            finish()
            seconds[name].append(clock() - start)
    return {name: median(values[1:]) for name, values in seconds.items()}


def speeds(
    reference: Callable[[], object],
    competitors: Mapping[str, Callable[[], object]],
    repeats: int,
    finish: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """How many times as fast as the reference each competitor is: the median over rounds of the ratio.

    In every round the reference runs right before the competitor, so that a slower machine slows both; the first round
    warms up. `finish` waits for a device that works asynchronously. `clock` is `time.process_time` if other programs
    use the same cores.
    """

    def seconds(run: Callable[[], object]) -> float:
        start = clock()
        run()
        finish()
        return clock() - start

    ratios: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(repeats + 1):
        for name, run in competitors.items():
            ratios[name].append(seconds(reference) / seconds(run))
    return {name: median(values[1:]) for name, values in ratios.items()}


def report(name: str, settings: Mapping[str, object], results: Mapping[str, Values]) -> None:
    """Writes results/<name>.json, with machine, versions and settings, and as a table <name>.md; prints the table."""
    about = {"machine": platform.machine(), "cores": os.cpu_count(), "versions": versions(), **settings}
    found = {**about, "results": results}
    write_text(RESULTS / f"{name}.json", json.dumps(found, indent=2) + "\n")
    write_text(RESULTS / f"{name}.md", table(found))
    print(table(found))


def table(found: Mapping[str, Any]) -> str:
    """The contents of a results file as a readable table."""
    rows = [
        (subject, what, _rounded(value))
        for subject, values in found["results"].items()
        for what, value in values.items()
    ]
    columns = {"headers": ["subject", "quantity", "value"], "colalign": ("left", "left", "right")}
    about = "; ".join(f"{name}: {value}" for name, value in found.items() if name != "results")
    return tabulate(rows, tablefmt="pipe", disable_numparse=True, **columns) + f"\n\n{about}\n"


def _rounded(value: float) -> str:
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}"
