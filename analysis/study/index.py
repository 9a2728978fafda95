"""results/<profile>/README.md: what to read first, the verdicts, and every notebook and figure of a profile."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from analysis.errors import exit_status
from analysis.files import write_text
from analysis.statistics.judge import VERDICTS
from analysis.study.folders import Folders
from analysis.study.front_page import encoder_of, papers, saved_claims
from analysis.study.profiles import PROFILES, command_line, reading_order
from analysis.study.results import Results

HEADING = re.compile(r"^#{1,2} +(.+)$", re.MULTILINE)
FIRST = ("99_summary", "03_test", "04_compare", "11_matching", "10_synthesis")  # what a newcomer reads first


def verdicts(profile: str) -> Iterator[str]:
    """A line for every paper: how many of its claims have each verdict."""
    tables = saved_claims(Results(profile))
    for name in papers():
        counts = Counter(tables[name]["verdict"] if name in tables else [])
        words = [f"{count} {verdict}" for verdict in VERDICTS if (count := counts[verdict])]
        yield f"{name}: {', '.join(words) or 'no verdicts'}"


def write_index(profile: str) -> Path:
    """Writes the index: verdicts, and the notebooks in reading order with their figures; returns its path."""
    folders = Folders(profile)
    lines = [f"# Results of profile `{profile}`", ""]
    lines += [f"Encoder: {encoder_of(profile)}.", ""] if (PROFILES / f"{profile}.yaml").exists() else []
    runs: dict[str, list[Path]] = {}
    for name in reading_order(path.stem for path in folders.notebooks.glob("*.ipynb")):
        runs.setdefault(name.split("-")[0], []).append(folders.notebooks / f"{name}.ipynb")
    first = [
        f"{number}. {_linked(runs[name][0])}"
        for number, name in enumerate((n for n in FIRST if n in runs), 1)
    ]
    lines += ["## Read these first", "", *first] if first else []
    lines += ["", "## Verdicts", "", *(f"- {line}" for line in verdicts(profile))]
    lines += ["", "## Notebooks and figures", ""]
    for name, paths in runs.items():
        title, figures = _headings(paths[0])[0], {}
        for path in paths:
            headings = _headings(path)[1]
            for figure, heading in zip_longest(_figures(folders, path.stem), headings):
                if figure:
                    figures.setdefault(heading or title, []).append(f"[{figure}](figures/{figure}.png)")
        links = [f"[{path.stem.partition('-')[2] or name}](notebooks/{path.name})" for path in paths]
        lines.append(f"- **{title}** {' · '.join(links)}")
        lines += [f"  - {heading}: {' · '.join(named)}" for heading, named in figures.items()]
    if (folders.folder / "explorer.html").exists():
        lines += ["", "[Head explorer](explorer.html): browse every head, its roles and its attention."]
    path = folders.folder / "README.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _linked(path: Path) -> str:
    return f"[{path.stem}](notebooks/{path.name}): {_headings(path)[0]}"


def _figures(folders: Folders, run: str) -> list[str]:
    """The figures that a run has saved, in their order."""
    path = folders.provenance / f"{run}.json"
    return [*json.loads(path.read_text(encoding="utf-8"))["figures"]] if path.exists() else []


def _headings(path: Path) -> tuple[str, list[str]]:
    """The title of an executed notebook, and the heading above each picture that it shows."""
    found, pictures = [path.stem], []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            found += HEADING.findall("".join(cell["source"]))
        pictures += [found[-1] for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    return found[min(1, len(found) - 1)].strip(), pictures


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    profile = command_line("analysis.study.index", __doc__).parse_args(arguments).profile
    return exit_status(lambda: write_index(profile))


if __name__ == "__main__":
    sys.exit(main())
