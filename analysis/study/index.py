"""The index of a profile, results/<profile>/README.md: verdicts, and the notebooks with their figures."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from analysis.errors import InputError
from analysis.files import write_text
from analysis.statistics.claims import VERDICTS
from analysis.study.claims import PAPERS, encoder_of, saved_claims
from analysis.study.parameters import source
from analysis.study.profiles import MADE_UP, command, in_machine_room, made_up
from analysis.study.provenance import records_in
from analysis.study.results import Results
from analysis.study.runs import Folders, short

FIRST = ("02_score", "03_test", "11_matching_all", "99_summary")  # what a newcomer reads first


def verdicts(profile: str) -> Iterator[str]:
    """A line for every paper: how many of its claims have each verdict."""
    tables = saved_claims(Results(profile))
    for name in PAPERS:
        counts = tables[name]["verdict"].value_counts() if name in tables else {}
        words = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts]
        yield f"{name}: {', '.join(words) or 'no verdicts'}"


def write_index(profile: str, runs: Sequence[str]) -> Path:
    """Writes the index: verdicts, and the notebooks of `runs` that have run, with their figures; returns its path.

    Raises InputError if none has run.
    """
    folders = Folders(profile)
    records = records_in(folders.folder)
    copies: dict[str, list[str]] = {}
    for run in runs:
        if not in_machine_room(run) and (folders.notebooks / f"{run}.ipynb").exists():
            copies.setdefault(run.split("-")[0], []).append(run)
    if not copies:
        raise InputError(
            f"{short(folders.notebooks)} has no executed copies: run make reproduce PROFILE={profile}"
        )
    lines = [f"# Results of profile `{profile}`", "", *([MADE_UP, ""] if made_up(profile) else [])]
    lines += [f"Encoder: {encoder_of(profile)}.", "", "## Read these first", ""]
    lines += [f"1. [{_title(name)}](notebooks/{copies[name][0]}.ipynb)" for name in FIRST if name in copies]
    lines += ["", "## Verdicts", "", *(f"- {line}" for line in verdicts(profile))]
    lines += ["", "## Notebooks and figures", ""]
    for name, names in copies.items():
        links = [f"[{run.partition('-')[2] or run}](notebooks/{run}.ipynb)" for run in names]
        lines.append(f"- **{_title(name)}** {' · '.join(links)}")
        figures = [figure for run in names for figure in records.get(run, {}).get("figures", {})]
        if figures:
            lines.append(f"  - {' · '.join(f'[{figure}](figures/{figure}.png)' for figure in figures)}")
    if (folders.folder / "explorer.html").exists():
        lines += ["", "[Head explorer](explorer.html): browse every head, its roles and its attention."]
    path = folders.folder / "README.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _title(notebook: str) -> str:
    """The first heading of a notebook."""
    return re.search(r"^# # (.+)$", source(notebook).read_text(encoding="utf-8"), re.MULTILINE)[1].strip()


if __name__ == "__main__":
    command(write_index, "runs")
