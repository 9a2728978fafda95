"""`make plan`: the CPU seconds of the runs of a profile when its results were made, and their longest chain."""

import re
import sys
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from analysis.study.profiles import command_line
from analysis.study.provenance import records_in, whole_cost
from analysis.study.runs import Folders


def prerequisites(rules: str, runs: Sequence[str]) -> dict[str, set[str]]:
    """The runs that each run waits for, from the rules as `make -np` prints them."""
    waits: dict[str, set[str]] = {run: set() for run in runs}
    for run, files in re.findall(r"^\S+/done/(\S+): (.*)$", rules, re.MULTILINE):
        if run in waits:
            waits[run] |= {*re.findall(r"/done/(\S+)", files)} & {*runs}
    return waits


def longest_chain(waits: Mapping[str, set[str]], seconds: Mapping[str, float]) -> list[str]:
    """The runs, each of which waits for the one before it, that take longest together."""

    def cost(chain: Sequence[str]) -> float:
        return sum(seconds.get(run, 0) for run in chain)

    chains: dict[str, list[str]] = {}
    for run in TopologicalSorter(waits).static_order():
        chains[run] = [*max((chains[earlier] for earlier in sorted(waits[run])), key=cost, default=[]), run]
    return max(chains.values(), key=cost, default=[])


def print_plan(runs: Sequence[str], profile: str, rules: str) -> None:
    """Prints the CPU seconds of every run without its cache, their sum, and the longest chain of runs."""
    records = records_in(Folders(profile).folder)
    costs = {run: whole_cost(records.get(run, {})) for run in runs}
    seconds = {run: cost for run, cost in costs.items() if cost is not None}
    for run in runs:
        print(f"{run:40} {format(seconds[run], '9,.0f') if run in seconds else 'not recorded'}")
    chain = longest_chain(prerequisites(rules, runs), seconds)
    print(f"{len(runs)} runs, {len(seconds)} of them recorded: {sum(seconds.values()):,.0f} CPU seconds")
    print(f"longest chain: {sum(seconds.get(run, 0) for run in chain):,.0f} CPU seconds: {' > '.join(chain)}")


if __name__ == "__main__":
    parser = command_line("analysis.study.plan", __doc__)
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args()
    print_plan(options.runs, options.profile, sys.stdin.read())
