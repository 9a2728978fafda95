"""The cost of the corrected role table compared with the plain t tests, as ratios of medians from one run.

    python benchmarks/significance.py [--repeats 5] [--sequences 1000] [--resamples 999]

Synthetic scores of one task and state: ten roles, 12 x 12 heads, sequences without some relations, and pairs of
sequences that share a text. In every repetition all competitors take turns; the first warms up and does not count.
Memory is the peak that the table allocates in addition to the scores. Results go to benchmarks/results/ and, as a
table, to the screen.
"""

import argparse
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.roles import DIMENSIONS  # noqa: E402
from analysis.statistics.roles import RELATIONS, ROLES  # noqa: E402
from analysis.statistics.significance import Rule, published_table, role_table  # noqa: E402
from benchmarks.timing import medians, report  # noqa: E402

LAYERS, HEADS = 12, 12
PLAIN = "published_table (t tests)"


def scores(sequences: int) -> xr.DataArray:
    """Skewed scores of one task and state; each relation is absent from a quarter of the sequences."""
    rng = np.random.default_rng(0)
    values = rng.gamma(2, 2, size=(sequences, len(ROLES), LAYERS, HEADS)).astype(np.float32)
    for relation in RELATIONS:
        values[rng.random(sequences) < 0.25, [*ROLES].index(relation)] = np.nan
    coordinates = {
        "role": [*ROLES],
        "layer": range(LAYERS),
        "head": range(HEADS),
        "cluster": ("sequence", np.arange(sequences) // 2),
    }
    return xr.DataArray(values, coordinates, DIMENSIONS, attrs={"arithmetic": "corrected"})


def peak_memory(run: Callable[[], object]) -> int:
    """Most bytes allocated at once during a call."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    """Runs everything, prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=999)
    options = parser.parse_args()
    array = scores(options.sequences)
    competitors = {
        PLAIN: lambda: published_table(array),
        "role_table, sequences drawn": lambda: role_table(array, Rule(resamples=options.resamples)),
        "role_table, clusters drawn": lambda: role_table(
            array, Rule(resamples=options.resamples, unit="cluster")
        ),
    }
    seconds = medians(competitors, options.repeats)
    results = {
        name: {
            "seconds": seconds[name],
            "ratio to the t tests": seconds[name] / seconds[PLAIN],
            "peak memory, MB": peak_memory(run) / 1e6,
        }
        for name, run in competitors.items()
    }
    settings = {"sequences": options.sequences, "resamples": options.resamples, "tests": array[0].size}
    report("significance", settings, results)


if __name__ == "__main__":
    main()
