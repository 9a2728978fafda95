"""results/<profile>/README.md: every notebook and figure of a profile with a line each, and the verdicts."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import jupytext

from analysis.files import write_text
from analysis.study.discovery import papers
from analysis.study.folders import Folders
from analysis.study.plan import plan
from analysis.study.profiles import source
from analysis.study.results import Results
from analysis.study.runs import Run

HEADING = re.compile(r"^#{1,2} +(.+)$", re.MULTILINE)
PLURALS = {
    "holds": "hold",
    "does not hold": "do not hold",
    "undecided": "undecided",
    "untestable": "untestable",
}


def verdicts(profile: str) -> Iterator[str]:
    """A line for every paper: how many of its claims have each verdict."""
    results = Results(profile)
    for name, paper in papers().items():
        counts = Counter(paper.summary(results)["verdict"])
        words = [
            f"{counts[verdict]} {verdict if counts[verdict] == 1 else several}"
            for verdict, several in PLURALS.items()
            if verdict in counts
        ]
        yield f"{name}: {', '.join(words) or 'no verdicts'}"


def write_index(profile: str) -> Path:
    """Writes the index: verdicts, and the notebooks in reading order with their figures; returns its path."""
    folders = Folders(profile)
    lines = [f"# Results of profile `{profile}`", "", "## Verdicts", ""]
    lines += [f"- {line}" for line in verdicts(profile)]
    lines += ["", "## Notebooks and figures", ""]
    for run in plan(profile):
        if (folders.notebooks / f"{run.name}.ipynb").exists():
            lines.append(f"- [{run.name}](notebooks/{run.name}.ipynb): {title(run.notebook)}")
            lines += [
                f"  - [{stem}](figures/{stem}.png): {heading}" for stem, heading in figures(run, folders)
            ]
    path = folders.folder / "README.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def title(notebook: str) -> str:
    """The first heading of a notebook."""
    cells = jupytext.read(source(notebook)).cells
    return next(found[1] for cell in cells if (found := HEADING.search(cell.source))).strip()


def figures(run: Run, folders: Folders) -> Iterator[tuple[str, str]]:
    """The figures that a run has saved, each with the heading above it."""
    heading = ""
    for cell in jupytext.read(source(run.notebook)).cells:
        if cell.cell_type == "markdown":
            heading = ([heading] + HEADING.findall(cell.source))[-1]
        else:
            for pattern in _saved(cell.source, dict(run.settings)):
                yield from ((path.stem, heading) for path in sorted(folders.figures.glob(f"{pattern}.png")))


def _saved(code: str, values: Mapping[str, str]) -> Iterator[str]:
    """The names under which a cell saves figures; `*` stands for parts that only the notebook knows."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "results.save_figure":
            name = node.args[1]
            parts = name.values if isinstance(name, ast.JoinedStr) else [name]
            yield "".join(
                part.value if isinstance(part, ast.Constant) else values.get(ast.unparse(part.value), "*")
                for part in parts
            )
