"""What the runs of a profile cost when its committed results were made: `make plan`, which gives the rules of Make."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from analysis.errors import exit_status
from analysis.study.folders import Folders
from analysis.study.profiles import command_line


def needs(rules: str) -> dict[str, set[str]]:
    """The runs that each run waits for, from the rules as `make -np` prints them."""
    runs: dict[str, set[str]] = {}
    for run, files in re.findall(r"^\S+/done/(\S+): (.*)$", rules, re.MULTILINE):
        runs.setdefault(run, set()).update(re.findall(r"/done/(\S+)", files))
    return runs


def longest_chain(needs: Mapping[str, set[str]], seconds: Mapping[str, float]) -> list[str]:
    """The runs, each of which waits for the one before it, that take longest together."""

    @cache
    def chain_to(run: str) -> tuple[float, list[str]]:
        before = max((chain_to(earlier) for earlier in needs.get(run, ())), default=(0.0, []))
        return before[0] + seconds.get(run, 0.0), [*before[1], run]

    return max(map(chain_to, needs), default=(0.0, []))[1]


def print_plan(runs: Sequence[str], profile: str, rules: str) -> None:
    """Prints the CPU seconds of every run, their sum, and the longest chain of runs."""
    seconds = {}
    for run in runs:
        path = Folders(profile).provenance / f"{run}.json"
        record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        note = "  (all from its cache)" if record.get("cached") else ""
        if "cpu_seconds" in record:
            seconds[run] = record["cpu_seconds"]
        print(f"{run:40} {format(seconds[run], '9,.0f') if run in seconds else 'not recorded'}{note}")
    waits = {run: earlier & {*runs} for run, earlier in needs(rules).items() if run in runs}
    chain = longest_chain(waits, seconds)
    print(f"{len(runs)} runs, {len(seconds)} of them recorded: {sum(seconds.values()):,.0f} CPU seconds")
    print(f"longest chain: {sum(seconds.get(run, 0) for run in chain):,.0f} CPU seconds: {' > '.join(chain)}")


def main(arguments: list[str] | None = None) -> int:
    """Command line, with the rules on standard input; returns the exit status."""
    parser = command_line("analysis.study.plan", __doc__)
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args(arguments)
    return exit_status(lambda: print_plan(options.runs, options.profile, sys.stdin.read()))


if __name__ == "__main__":
    sys.exit(main())
