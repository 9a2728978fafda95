"""`make plan`: the CPU seconds of the runs of a profile when its results were made."""

from collections.abc import Sequence

from analysis.study.profiles import command_line
from analysis.study.provenance import records_in, whole_cost
from analysis.study.runs import Folders


def print_plan(runs: Sequence[str], profile: str) -> None:
    """Prints the CPU seconds of every run without its cache, and their sum."""
    records = records_in(Folders(profile).folder)
    costs = {run: whole_cost(records.get(run, {})) for run in runs}
    seconds = {run: cost for run, cost in costs.items() if cost is not None}
    for run in runs:
        print(f"{run:40} {format(seconds[run], '9,.0f') if run in seconds else 'not recorded'}")
    print(f"{len(runs)} runs, {len(seconds)} of them recorded: {sum(seconds.values()):,.0f} CPU seconds")


if __name__ == "__main__":
    parser = command_line("analysis.study.plan", __doc__)
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args()
    print_plan(options.runs, options.profile)
